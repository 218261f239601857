"""`asdict` of live objects, loops whose test goes over them, and programs
whose runs would fail without."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import pytest
from control_flow import agree
from traced_at_once import live_at_once

import sgc
from sgc.tracing import tracer

REPLIES = ("a bb ccc", "", "dddd ee", "bb")


@dataclass
class Part:
    name: str
    cost: float
    tags: list[str] = field(default_factory=list)


@dataclass
class Plan:
    number: int
    parts: list[Part] = field(default_factory=list)
    best: Part | None = None
    by_name: dict[str, Part] = field(default_factory=dict)
    pair: tuple[str, int] = ("x", 1)

    @property
    def cost(self) -> float:
        return sum(part.cost for part in self.parts)


def planned(number: int, text: str) -> Plan:
    plan = Plan(number)
    for word in text.split():
        part = Part(word, float(len(word)))
        plan.parts.append(part)
        plan.by_name[word] = part
        if plan.best is None or plan.best.cost < part.cost:
            plan.best = part
    return plan


@sgc.function
def shown_as_data(s: Any, n_plans: int) -> Any:
    plans = []
    for number in range(n_plans):
        s += sgc.gen("a", max_tokens=9)
        plans.append(planned(number, s["a"]))
    for plan in plans:
        if plan.best is not None:
            plan.best.tags.append("best")
    bests = [astuple(plan.best) for plan in plans if plan.best]
    if plans:
        data = asdict(plans[-1])
        data["number"] += 1
        s += f"{data['best']} {data['by_name']} {data['number']} {plans[-1].number}"
    return {"bests": bests, "plans": [asdict(plan) for plan in plans]}


def test_they_are_shown_as_data(monkeypatch: Any) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(shown_as_data, REPLIES, n=3, n_plans=2)


@sgc.function
def cut(s: Any, most: float = 4.0) -> Any:
    s += sgc.gen("a", max_tokens=9)
    plan = Plan(1, [Part(word, float(len(word))) for word in s["a"].split()[:4]])
    dropped = []
    while sum(part.cost for part in plan.parts) > most:
        dearest = max(plan.parts, key=lambda part: part.cost)
        plan.parts.remove(dearest)
        dearest.tags.append("cut")
        dropped.append(dearest)
    return [part.name for part in plan.parts], [(part.name, len(part.tags)) for part in dropped]


@pytest.mark.slow
def test_a_while_whose_test_goes_over_objects(monkeypatch: Any) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(cut, REPLIES, n=6)


@sgc.function
def marked(s: Any) -> Any:
    s += sgc.gen("a", max_tokens=9)
    parts = [Part(word, float(len(word))) for word in sorted(s["a"].split(), key=len)]
    if not parts:
        return None
    dearest = max(parts, key=lambda part: part.cost)
    dearest.tags.append("best")
    return [(part.name, len(part.tags)) for part in parts]


def test_runs_that_would_fail_have_references_instead() -> None:
    agree(marked, REPLIES, n=6, graph=marked.compile().graph)
