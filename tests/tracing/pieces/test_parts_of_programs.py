"""Pieces around which the program asks: in comprehensions, in cases of `match`, and of streams."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from statistics import mean
from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.tracing.paths.exploration import Budget

REPLIES = ("a b", "b 7", "yes", "a=2", "c=d", "", "x. y! Z?")


def without(words: list[str], text: str) -> list[str] | None:
    """A copy that changes is the helper's own."""
    rest = list(words)
    try:
        rest.remove(text.split()[0])
    except (ValueError, IndexError):
        return None
    return [*rest, re.sub(r"\d+", lambda m: str(int(m[0]) + 1), text)]


def bag(text: str) -> Counter[str]:
    return Counter(word for word in text.split() if word not in STOPWORDS)


STOPWORDS = {"the", "a"}
CHECKS = [
    ("digit", lambda t: any(c.isdigit() for c in t)),
    ("short", lambda t: len(t) < 3),
]


def broken_by(text: str) -> list[str]:
    return [name for name, ok in CHECKS if not ok(text)]


@sgc.function
def comprehension_over_forks(s, q: str):
    words = [*q.split(), "c", "="]
    tries = s.fork(2)
    for t in tries:
        t += sgc.gen("step", max_tokens=4)
    options = [(t["step"].strip(), without(words, t["step"])) for t in tries]
    legal = [rest for _, rest in options if rest is not None]
    s += str(len(legal)) + (" ".join(legal[0]) if legal else "none")
    return legal


@sgc.function
def counter_of_children(s, q: str):
    forks = s.fork(1 + len(q.split()))
    for f in forks:
        f += q + sgc.gen("p", max_tokens=8)
    found: Counter[str] = Counter()
    for f in forks:
        found += bag(f["p"])
    s += ", ".join(word for word, _ in found.most_common(2))
    return dict(found)


@sgc.function
def dict_of_one(s, q: str):
    s += q + sgc.gen("a", max_tokens=8)
    drafts = [s["a"]]
    broken = {d: broken_by(d) for d in drafts}
    best = min(broken, key=lambda d: len(broken[d]))
    s += best + str(len(broken[best]))
    return {d for d in broken if broken[d]}


@sgc.function
def names_of_cases(s, q: str):
    s += q + sgc.gen("a", max_tokens=8)
    found = {}
    for part in s["a"].split():
        match part.split("="):
            case [key, value] if value.isdigit():
                found[key] = int(value) + 1
            case [other]:
                s += f"({other}?)"
    return found


@sgc.function
def sets_of_choices(s, q: str):
    groups: dict[str, list[str]] = defaultdict(list)
    for part in s_parts(s, q):
        kinds = set()
        for _ in range(2):
            s += part + sgc.select("kind", ["good", "bad"])
            kinds.add(s["kind"])
        if "bad" in kinds:
            groups["bad"].append(part)
        else:
            groups[str(len(part))].append(part)
    wrong = groups["bad"] + groups["1"]
    return {k: len(v) for k, v in groups.items()}, wrong


def s_parts(s: Any, q: str) -> list[str]:
    s += q + sgc.gen("a", max_tokens=8)
    return [part for part in re.split(r"(?<=[.!?])\s+", s["a"]) if part]


@sgc.function
def ask(s, x: str):
    s += x + sgc.gen("y", max_tokens=4)
    return s["y"].strip()


@sgc.function
def answers_by_key(s, q: str):
    s += q + sgc.gen("a", max_tokens=8)
    sections: dict[str, list[str]] = defaultdict(list)
    for part in s["a"].split():
        kind = part[:1].upper()
        if kind == "Y":
            continue
        sections[kind].append(ask(part).ret_value)
    for kind, lines in sorted(sections.items()):
        s += f"{kind}: {', '.join(lines)}\n"
    return len(sections), sections.get("A")


@sgc.function
def empty_tuples(s, q: str):
    states = [()]
    for _ in range(2):
        s += sgc.gen("a", max_tokens=8)
        if s["a"].strip():
            states.append((*states[-1], s["a"].strip()))
    s += "; ".join("/".join(state) or "-" for state in states)
    return len(states[-1])


PROGRAMS = (
    comprehension_over_forks, counter_of_children, dict_of_one, names_of_cases, sets_of_choices,
    answers_by_key, empty_tuples,
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_graph_does_what_the_program_does(program):
    agree(program, REPLIES, n=5, budget=Budget(), q="a b")


@sgc.function
def in_formats(s, q: str):
    s += q + sgc.gen("words", max_tokens=8)
    lengths = [3, len(s["words"])]
    s += f"{mean(lengths):.2f} of {max(lengths):>{len(q)}}" + sgc.gen("end", max_tokens=2)


def test_of_texts_with_formats() -> None:
    """Python 3.11 says that the format is where the whole text is."""
    agree(in_formats, REPLIES, n=6, q="xyz")
