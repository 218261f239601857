"""Code changes what another variable has a part of: a run refuses that, unless nothing can see it
because the variable is not read again."""

from __future__ import annotations

import linecache
from collections import defaultdict
from typing import Any

import pytest
from control_flow import agree, agree_or_refuse
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.tracing.tracer import trace

WORDS = ("yes", "no", "a")

HEAD = """
from collections import defaultdict
import sgc

@sgc.function
def program(s, q: str, words: list[str]):
    ends = defaultdict(list)
    kept, box = [], [[]]
    for word in words:
        s += word + sgc.gen("x", max_tokens=4)
        {early}
        {read}
        {change}
        {late}
    {after}
    return len(ends), s["x"]
"""
READS = (
    "kept = ends[s['x']]",
    "kept = ends.setdefault(s['x'], [])",
    "box = [ends[s['x']]]; kept = box[0]",
    "kept = ends.get(s['x'], []); box = [kept]",
    "kept = next(iter(ends.values()), []); box = [ends['a']]",
)
CHANGES = (
    "ends[s['x']].append(word)",
    "ends[s['x']] += [word, word]",
    "ends['yes'].append(word); ends['a'].append(q)",
    "ends[s['x']].extend(kept); ends['a'].append(word)",
)
SEEN = "s += str(len(kept))"
PLACES = ("none", "late", "early", "after", "box")


def program_of(read: str, change: str, place: str) -> Any:
    lines = dict.fromkeys(("early", "late", "after"), "pass")
    lines |= {} if place == "none" else {"late" if place == "box" else place: SEEN}
    if place == "box":
        lines["late"] = "s += str([len(each) for each in box])"
    source = HEAD.format(read=read, change=change, **lines)
    file = f"unseen_{READS.index(read)}_{CHANGES.index(change)}_{place}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "unseen_changes"}
    exec(compile(source, file, "exec"), names)
    return names["program"]


@pytest.mark.sweep
@pytest.mark.parametrize(("read", "change"), one_in(2, READS, CHANGES))
def test_what_is_seen_is_as_interpreted_or_refused(read: str, change: str) -> None:
    for place in PLACES:
        function = program_of(read, change, place)
        try:
            graph = trace(function, is_full=True)
        except TraceError:
            continue
        for level in (0, 2):
            compiled = Program(optimize(graph, level))
            agree_or_refuse(function, compiled, WORDS, 8, words=["b", "c", "d", "e"])


@pytest.mark.parametrize("change", CHANGES[:2])
def test_what_nothing_sees_is_no_reason_to_refuse(change: str) -> None:
    function = program_of(READS[0], change, "none")
    agree(function, WORDS, q="x", words=["b", "c", "d", "e"])


@sgc.function
def rhymed(s, words: list[str]):
    """What is not read after the change is read before it."""
    ends = defaultdict(list)
    for word in words:
        s += word + sgc.gen("x", max_tokens=4)
        partners = ends[s["x"]]
        if not partners or any(each in word for each in partners):
            s += "new"
        else:
            s += "like " + partners[0]
        ends[s["x"]].append(word)
    return len(ends)


@sgc.function
def ended_by(s, lines: list[str]):
    """`words` is read after the change, which has only taken an item of it."""
    ends = defaultdict(list)
    for line in lines:
        s += line + sgc.gen("x", max_tokens=8)
        words = s["x"].split()
        if not words:
            continue
        kept = ends[line]
        if not kept:
            s += "new"
        ends[line].append(words[-1])
        s += "-".join(words)
    return [*ends]


def test_a_list_of_texts_may_be_used_again_of_which_code_has_taken_an_item() -> None:
    agree(ended_by, ("yes no", "no", ""), lines=["b", "c", "b"])


@sgc.function
def held_whole(s, lines: list[str]):
    """Here `words` itself becomes a part."""
    ends = defaultdict(list)
    for line in lines:
        s += line + sgc.gen("x", max_tokens=8)
        words = s["x"].split()
        ends[line].append(words)
        ends[line][0].append("more")
        s += "-".join(words)
    return len(ends)


def test_but_not_one_that_has_become_a_part() -> None:
    try:
        graph = trace(held_whole, is_full=True)
    except TraceError:
        return
    agree_or_refuse(held_whole, Program(graph), ("yes no", "no", ""), 8, lines=["b", "c", "b"])


def test_parts_may_be_read_before_the_change() -> None:
    agree(rhymed, WORDS, words=["b", "c", "d", "e", "bc"])
