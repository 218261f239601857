"""Personas come from a generator with send, turns are interleaved with zip_longest and cycle."""

from itertools import cycle, islice, zip_longest

import sgc

PERSONAS = ("pirate", "poet", "robot")


def turn_order(names, n):
    yield from islice(cycle(names), n)


@sgc.function
def program(s, topics: list[str], n: int = 4):
    said: dict[str, list[str]] = {p: [] for p in PERSONAS}
    for topic, who in zip_longest(topics, list(turn_order(PERSONAS, n)), fillvalue=None):
        if who is None:
            break
        s += f"{who} on {topic or 'anything'}:" + sgc.gen("line", max_tokens=12, stop="\n") + "\n"
        said[who].append(s["line"].strip())
    longest = max(PERSONAS, key=lambda p: sum(len(x) for x in said[p]))
    quiet = [p for p, lines in said.items() if not any(lines)]
    return longest, quiet, {p: len(v) for p, v in said.items()}


ARGUMENTS = [
    {"topics": ["gold", "rain"]},
    {"topics": [], "n": 2},
    {"topics": ["a", "b", "c"], "n": 1},
]
REPLIES = [" Arr!", " O rain.", "", " Beep boop."]
