"""Best of n: several replies at once, rules and a vote choose the one that is sent."""

import random
import re
from collections import Counter

import sgc

RULES = [
    ("too long", lambda text: len(text.split()) > 25),
    ("a link", lambda text: "http" in text),
    ("shouting", lambda text: text.isupper()),
    ("empty", lambda text: not text.strip()),
]


def violations(text: str) -> list[str]:
    return [name for name, broken in RULES if broken(text)]


def key(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()


@sgc.function
def program(s, question: str, n: int = 5, seed: int = 7):
    s += sgc.user(question)
    s += sgc.assistant(sgc.gen("replies", n=n, max_tokens=48, temperature=1.0))
    replies = s["replies"] if isinstance(s["replies"], list) else [s["replies"]]

    reasons = Counter()
    good = []
    for reply in replies:
        broken = violations(reply)
        reasons.update(broken)
        if not broken:
            good.append(reply)
    if not good:
        worst, times = reasons.most_common(1)[0]
        s += sgc.user(f"{times} of your replies had: {worst}. One more try.")
        s += sgc.assistant(sgc.gen("last", max_tokens=48))
        return s["last"], 0

    votes = Counter(key(reply) for reply in good)
    winner, count = votes.most_common(1)[0]
    if count == 1:
        # nobody agrees: one of the two shortest
        return random.Random(seed).choice(sorted(good, key=len)[:2]), 1
    return next(reply for reply in good if key(reply) == winner), count


ARGUMENTS = [
    {"question": "Which bus goes to the harbour?"},
    {"question": "??", "n": 1},
]
REPLIES = ["Bus 7.", "bus 7", "See http://bus.example", "TAKE THE BUS", "", "The 7, I think."]
