"""Answers meet in a knockout bracket until one is left; an odd one out has a bye."""

import sgc


@sgc.function
def match(s, task: str, left: str, right: str):
    s += f"Task: {task}\n\nAnswer 1: {left}\n\nAnswer 2: {right}\n\n"
    s += "The better answer is Answer " + sgc.select("winner", choices=["1", "2"])
    return left if s["winner"] == "1" else right


def pairs(entries):
    """Yields two at a time; the last one alone if the number is odd."""
    it = iter(entries)
    for a in it:
        yield a, next(it, None)


def bracket(task, entries, log, depth=3):
    """The champion and the number of rounds; calls itself with the survivors."""
    if len(entries) < 2 or depth == 0:
        return (entries[0] if entries else "(nobody)"), 0
    survivors = []
    for a, b in pairs(entries):
        if b is None:
            log.append(f"{a[:20]!r} has a bye")
            survivors.append(a)
            continue
        winner = match(task, a, b).ret_value
        log.append("%r beats %r" % (winner[:20], (b if winner == a else a)[:20]))
        survivors.append(winner)
    champion, rounds = bracket(task, survivors, log, depth - 1)
    return champion, rounds + 1


@sgc.function
def program(s, task: str, n: int = 4, wildcards: list[str] = []):
    s += f"Task: {task}\nAnswer:"
    drafts = s.fork(n)
    for i, d in enumerate(drafts):
        d += sgc.gen("draft", max_tokens=64, temperature=0.5 + 0.1 * i, stop="\n\n")
    entries = [d["draft"].strip() for d in drafts] + wildcards
    entries = list(dict.fromkeys(e for e in entries if e))  # unique, in order

    log = []
    champion, rounds = bracket(task, entries, log)
    s += " " + champion
    s += "\n\nHow it came to this:\n" + "\n".join(log) + "\nIn one sentence:"
    s += sgc.gen("comment", max_tokens=40, stop="\n")
    return champion, rounds


ARGUMENTS = [
    {"task": "Write a slogan for a bakery.", "n": 4, "wildcards": ["Bread is life."]},
    {"task": "Write a slogan for a bank.", "n": 1},
]
REPLIES = [
    " Fresh every morning.",
    " The bread you knead.",
    " ",
    " Rise with us.\n\nOr not.",
    " A crust above the rest",
]
