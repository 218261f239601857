"""Fits a chat history into a budget: the newest messages stay whole, the rest is summarised."""

import sgc


def n_tokens(text: str) -> int:
    """A rule of thumb, good enough here."""
    return max(1, len(text) // 4)


def split_history(history, budget):
    kept, used = [], 0
    for message in reversed(history):
        cost = n_tokens(message["content"])
        if used + cost > budget:
            break
        kept.insert(0, message)
        used += cost
    return history[: len(history) - len(kept)], kept, used


@sgc.function
def summarise(s, old: list[dict[str, str]], words: int):
    s += "Conversation:\n"
    s += "".join(f"{m['role'].upper():>10}: {m['content']}\n" for m in old)
    s += f"Summary in {words} words:" + sgc.gen("summary", max_tokens=words * 2, stop="\n")
    return s["summary"].strip()


@sgc.function
def program(s, system: str, history: list[dict[str, str]], budget: int = 30):
    old, kept, used = split_history(history, budget)
    if old:
        room = max(budget - used, 5)
        summary = summarise(old, room).ret_value
        system = f"{system}\nEarlier: {summary}" if summary else system
    with s.system():
        s += system.strip() or "You are a helpful assistant."
    roles = {"user": sgc.user, "assistant": sgc.assistant}
    for message in kept:
        s += roles[message["role"]](message["content"])
    if kept and kept[-1]["role"] == "assistant":
        s += sgc.user("Go on.")
    s += sgc.assistant(sgc.gen("reply", max_tokens=64))
    cost = used + n_tokens(s["reply"])
    return {"dropped": len(old), "kept": len(kept), "over": cost > budget}


ARGUMENTS = [
    {
        "system": "You plan trips.",
        "history": [
            {"role": "user", "content": "We are four people who want to see the north of Italy."},
            {"role": "assistant", "content": "How about Turin, Bergamo and Trieste by train?"},
            {"role": "user", "content": "Fine. How many days?"},
        ],
        "budget": 20,
    },
    {"system": "", "history": [], "budget": 0},
    {"system": "Hi.", "history": [{"role": "assistant", "content": "One day or two?"}]},
]
REPLIES = [" Four people, northern Italy, by train.", "", "Seven days. " * 12, "Two."]
