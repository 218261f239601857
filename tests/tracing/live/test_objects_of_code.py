"""Objects that the program changes, and that only code of it has made, are references too."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from control_flow import agree

import sgc

STEP = re.compile(r"^#(\d+) (Ask|Do)\[(.*)\]$", re.MULTILINE)
POOL = (
    "#1 Ask[a]",
    "#1 Do[b c]\n#2 Ask[#1]\n",
    "#3 Do[]",
    "no plan",
    "x",
    "",
    "#2 Do[y]\nz\n#2 Ask[z]",
)


@dataclass
class Step:
    number: int
    kind: str
    query: str
    result: str = ""


@dataclass
class Plan:
    steps: list[Step] = field(default_factory=list)

    @classmethod
    def parse(cls, text: str) -> Plan:
        return cls([Step(int(n), kind, query) for n, kind, query in STEP.findall(text)])

    def evidence(self) -> str:
        return "\n".join(f"#{x.number} = {x.result}" for x in self.steps if x.result)


@sgc.function
def of_groups(s: Any, q: str) -> Any:
    s += q + sgc.gen("plan", max_tokens=20)
    steps = [Step(int(n), kind, query) for n, kind, query in STEP.findall(s["plan"])]
    for step in steps:
        s += step.query + sgc.gen("r", max_tokens=4)
        step.result = s["r"].strip()
    return [(x.number, x.result) for x in steps]


@sgc.function
def of_a_class_method(s: Any, q: str) -> Any:
    s += q + sgc.gen("plan", max_tokens=20)
    plan = Plan.parse(s["plan"])
    if not plan.steps:
        s += "Once more." + sgc.gen("plan", max_tokens=20)
        plan = Plan.parse(s["plan"])
    last = plan.steps[-1] if plan.steps else None
    for step in plan.steps:
        f = s.fork(1)[0]
        f += f"{step.kind}: {step.query}" + sgc.gen("result", max_tokens=4)
        step.result = f["result"].strip()
    s += plan.evidence() + sgc.gen("answer", max_tokens=4)
    return None if last is None else last.result


@pytest.mark.parametrize(
    "program", [of_groups, pytest.param(of_a_class_method, marks=pytest.mark.slow)]
)
def test_what_code_has_made_is_changed_for_all_that_have_it(program):
    agree(program, POOL, 6, q="x")
