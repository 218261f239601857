"""Deques of objects and rows that are known only at run time. Nothing here relies on the trace
check."""

from __future__ import annotations

import ast
from collections import deque
from dataclasses import dataclass

import pytest
from control_flow import agree
from traced_at_once import at_once

import sgc
from sgc.tracing import tracer
from sgc.tracing.code.modules.deques import deques_of

REPLIES = ("a,bb,ccc", "", "dddd,e", "bb", "yes")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(tracer, "_found", at_once)


@dataclass
class Task:
    name: str
    depth: int = 0
    state: str = "open"


@sgc.function
def planned(s):
    queue = deque([Task("goal")])
    done = []
    while queue and len(done) < 5:
        task = queue.popleft()
        s += task.name + sgc.gen("split", stop="\n")
        for part in s["split"].split(","):
            if part and task.depth < 2:
                queue.append(Task(part, task.depth + 1))
        task.state = "done"
        done.append(task)
    s += f"{len(queue)} " + ",".join(task.name + task.state for task in done)
    return [task.name for task in queue]


def test_a_queue_of_objects():
    agree(planned, REPLIES, n=8)


@sgc.function
def turned(s):
    queue: deque = deque()
    queue.append({"name": "first", "depth": 0})
    seen, order = set(), []
    for _ in sgc.turns(6):
        if not queue:
            break
        if "b" in queue[0]["name"]:
            queue.append(queue.popleft())
        row = queue.popleft()
        row["depth"] += 1
        s += row["name"] + sgc.gen("more", stop="\n")
        if s["more"] not in seen:
            seen.add(s["more"])
            queue.appendleft({"name": s["more"], "depth": row["depth"]})
            queue.append(row)
        order.append(f"{row['name']}{row['depth']}")
    try:
        s += queue[-1]["name"]
        last = queue.pop()
        s += last["name"]
        s += queue.pop()["name"]
    except IndexError as error:
        s += str(error)
    return order


def test_both_ends_of_a_queue_of_rows():
    agree(turned, REPLIES, n=8)


HEAD = "from collections import deque\ndef f(xs, g):\n"
LISTS = (
    "q = deque(xs)\nwhile q:\n    q.popleft()",
    "q = deque()\nq.append(1)\nfor x in q:\n    g(x)\nreturn len(q), list(q), q[0], 1 in q",
    "q: deque = deque([1])\nif not q and xs:\n    q.extend(xs)",
)
OTHERS = (
    "q = deque(xs, maxlen=3)\nq.append(1)",
    "q = deque(xs)\nq.rotate(1)",
    "q = deque(xs)\nreturn q",
    "q = deque(xs)\nreturn f'{q}'",
    "q = deque(xs)\ng(q)",
    "q = deque(xs)\nr = q",
    "q = deque(xs)\nreturn q == xs",
    "q = deque(xs)\nreturn q[1]",
    "q = deque(xs)\nfor x in q:\n    q.append(x)",
    "q = deque(xs)\nfor n, x in enumerate(q):\n    q.popleft()",
    "q = deque(xs)\nreturn lambda: q.popleft()",
    "q = deque(xs)\nq = xs",
    "q = deque(xs)\nreturn q or xs",
    "deque = g\nq = deque(xs)\nq.append(1)",
)


def _names(body: str) -> set[str]:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return {name for *_, name in deques_of(ast.parse(HEAD + lines))}


@pytest.mark.parametrize("body", LISTS)
def test_deques_that_could_be_lists(body: str):
    assert _names(body) == {"q"}


@pytest.mark.parametrize("body", OTHERS)
def test_deques_that_no_list_could_be(body: str):
    assert not _names(body)
