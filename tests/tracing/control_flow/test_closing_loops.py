"""Loops whose states must become equal, so that they are traced as loops."""

from __future__ import annotations

from collections import deque

import pytest
from control_flow import agree

import sgc
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace

POOL = ("yes", "no", "a,b", "b,c,a", "")


@sgc.function
def lists_held_again_and_again(s, q: str):
    tasks, done = deque([q]), []
    for _ in range(2):
        if not tasks:
            break
        task = tasks.popleft()
        s += task + sgc.gen("a", max_tokens=5)
        done.append({"task": task})
        for new in s["a"].split(","):
            if new and new not in tasks and all(new != each["task"] for each in done):
                tasks.append(new)
    return done, len(tasks)


@sgc.function
def a_list_before_one_with_a_shared_part(s, q: str):
    frontier, found = [(0, [])], []
    for _, path in frontier:
        s += q + sgc.gen("a", max_tokens=5)
        for word in s["a"].split(","):
            if word:
                found.append((len(word), [*path, word]))
    return found, frontier


@sgc.function
def children_after_a_decision(s, q: str):
    s += q + sgc.gen("a", max_tokens=5)
    n = 1 if s["a"] == "yes" else 0
    for v in s.fork(4):
        v += sgc.gen("b", max_tokens=3)
        if v["b"] == "no":
            n += 1
    return n


@sgc.function
def words(s, q: str):
    s += q + sgc.gen("a", max_tokens=5)
    return s["a"].split(",")


@sgc.function
def loops_over_what_calls_give(s, q: str):
    n = 0
    if q == "x":
        words(q)
        n = 1
    for word in words(q).ret_value:
        s += word
        if word == "b":
            s += sgc.gen("b", max_tokens=3)
        if word == "c":
            n += 1
    return n


PROGRAMS = (
    lists_held_again_and_again, a_list_before_one_with_a_shared_part, children_after_a_decision,
    loops_over_what_calls_give,
)  # fmt: skip
# In steps; otherwise they take 39,000 or so, or never end.
WORK = (80_000, 30_000, 32_000, 30_000)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("program", "work"),
    [*zip(PROGRAMS, WORK, strict=True)],
    ids=[each.name for each in PROGRAMS],
)
def test_the_loop_closes(program, work):
    agree(program, POOL, n=6, budget=Budget(work=work), q="x")


def joined(text: str) -> str:
    lines = [text]
    for part in text.split():
        lines.append(part)
    if "a" in text:
        lines.append("x")
    return "/".join(lines)


@sgc.function
def remembered(s, words: list[str]):
    found: list[str] = []
    for word in words:
        s += word + "/".join(joined(each) for each in found[-2:]) + sgc.gen("g", stop="\n")
        found.append(s["g"])
    return found


def test_a_state_that_a_run_merges_into_counts_where_its_loop_is_widened():
    """A wider state in the loop of `joined` had made unreachable what followed it, until its run
    merged with that."""
    graph = trace(remembered, budget=Budget(work=200_000), is_full=True)
    assert not any(node.op == "evaluate" for node in graph.nodes())
    agree(remembered, ("", "a", "b a", "c b"), n=4, graph=graph, words=["p", "q", "r", "s"])
