"""A chat with long-term memory: facts are pulled out of each message and used later."""

import sgc


class Memory:
    def __init__(self, facts: dict[str, str] | None = None, size: int = 5):
        self.facts = dict(facts or {})
        self.size = size

    def update(self, lines: str) -> int:
        n = 0
        for line in lines.splitlines():
            if ":" not in line:
                continue
            key, value = (part.strip() for part in line.split(":", 1))
            if value.lower() in ("", "unknown", "none"):
                self.facts.pop(key.lower(), None)
            else:
                self.facts[key.lower()] = value
                n += 1
        while len(self.facts) > self.size:
            oldest = next(iter(self.facts))
            del self.facts[oldest]
        return n

    def __str__(self):
        if not self.facts:
            return "You know nothing about the user."
        return "About the user: " + ", ".join(f"{k} is {v}" for k, v in self.facts.items()) + "."


@sgc.function
def extract(s, message: str):
    s += "Write facts about the speaker as 'key: value' lines, or 'none'.\n"
    s += f"Message: {message}\nFacts:\n"
    s += sgc.gen("facts", max_tokens=40, stop="\n\n")
    return s["facts"]


@sgc.function
def program(s, messages: list[str], known: dict[str, str] | None = None):
    memory = Memory(known, size=3)
    learnt = 0
    for facts in sgc.map(extract, messages).returns:
        learnt += memory.update(facts)
    s += sgc.system(str(memory))
    if messages:
        *_, last = messages
        s += sgc.user(last)
    else:
        s += sgc.user("What do you know about me?")
    s += sgc.assistant(sgc.gen("answer", max_tokens=64))
    used = [key for key, value in memory.facts.items() if value.lower() in s["answer"].lower()]
    return {"learnt": learnt, "memory": memory.facts, "used": used}


ARGUMENTS = [
    {"messages": ["I am Kofi and I live in Accra.", "I have moved to Kumasi.", "Any tips?"]},
    {"messages": [], "known": {"name": "Ida", "dog": "Bo", "city": "Bern", "food": "pizza"}},
]
REPLIES = [
    "Name: Kofi\nCity: Accra",
    "city: Kumasi\nhobby: chess\npet: cat\nshoe size: 44",
    "city: unknown",
    "none",
    "Kofi, try the market in Kumasi.",
]
