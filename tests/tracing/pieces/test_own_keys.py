"""Reading a `defaultdict` by a key that it has adds nothing to it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from control_flow import agree, equal_or_refused

import sgc

REPLIES = ("a,b,ab,b", "", "c", "ab,c,a")


@sgc.function
def ordered(s: Any) -> Any:
    s += "q" + sgc.gen("a", stop="\n")
    groups = defaultdict(list)
    for word in s["a"].split(","):
        groups[word[:1]].append(word)
    for name in sorted(groups, key=lambda name: (-len(groups[name]), name)):
        s += name + sgc.gen("b", stop="\n")
    if len(max(groups, key=lambda name: len(groups[name]))) > 0:
        s += "named"
    for size in [len(groups[name]) for name in groups if groups[name]]:
        s += str(size)
    return groups["a"], len(groups)


def test_its_own_keys_are_looked_up():
    agree(ordered, REPLIES, n=8)


@sgc.function
def others(s: Any, q: str) -> Any:
    s += "q" + sgc.gen("a", stop="\n")
    groups = defaultdict(list)
    for word in s["a"].split(","):
        groups[word[:1]].append(word)
    for name in sorted([*groups], key=lambda name: len(groups[name + "b"])):
        s += name + sgc.gen("b", stop="\n")
    return len(groups)


def test_other_keys_are_added():
    assert equal_or_refused(others, REPLIES)
