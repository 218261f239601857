"""A bot made of closures: a counter with nonlocal, a memory, callbacks in a list."""

import sgc


def make_counter(start=0):
    n = start

    def step(by=1):
        nonlocal n
        n += by
        return n

    def value():
        return n

    return step, value


@sgc.function
def program(s, name: str, turns: int = 3):
    swears, n_swears = make_counter()
    questions, n_questions = make_counter(10)
    facts = []

    def on_fact(text):
        if text.lower().startswith("my "):
            facts.append(text[3:])
            return f"I will remember {text[3:]}. "
        return ""

    def on_question(text):
        if text.endswith("?"):
            questions()
            return "Good question. "
        return ""

    def on_swear(text):
        if "damn" in text:
            swears(by=2)
            return "Mind your language. "
        return ""

    hooks = [on_fact, on_question, on_swear]
    s += f"A chat with {name}.\n"
    for _ in range(turns):
        s += f"{name}:" + sgc.gen("line", max_tokens=16, stop="\n") + "\n"
        text = s["line"].strip()
        reaction = "".join(hook(text) for hook in hooks)
        s += "Bot: " + (reaction or "I see.") + "\n"
        if n_swears() > 3:
            s += "Goodbye.\n"
            break
    return n_swears(), n_questions(), facts


ARGUMENTS = [{"name": "Eve"}, {"name": "Bob", "turns": 1}]
REPLIES = ["my cat is red", "why?", "damn it", "damn, why?", "hello"]
