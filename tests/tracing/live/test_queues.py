"""Deques of objects and rows that are known only at run time. Nothing here relies on the trace
check."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import pytest
from control_flow import agree
from traced_at_once import live_at_once

import sgc
from sgc.tracing import tracer

REPLIES = ("a,bb,ccc", "", "dddd,e", "bb", "yes")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)


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
