"""`match` on sequences: lists known only at run time, plain ones, and what is none."""

from __future__ import annotations

import linecache
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from control_flow import outcome, replying
from tests_support import one_in

import sgc
from sgc.runtime.executor.run.options import RunOptions

POOL = ("go north", "go", "take the big lamp", "", "look", "a=1", "a=b=c", "look at me")
HEAD = """
import json
from dataclasses import dataclass
import sgc

NORTH = "north"

class Names:
    go = "go"

@dataclass
class Order:
    kind: str
    amount: int

    @property
    def is_large(self):
        return self.amount > 1

@sgc.function
def program(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    x, y, rest, found = "x0", "y0", "rest0", "none"
    match {subject}:
{cases}
    s += str(found) + sgc.gen("b", max_tokens=3)
    return x, y, rest, found
"""
SUBJECTS = (
    "s['a'].split()", "s['a'].split('=')", "[s['a'], 'b']", "(s['a'], q)", "s['a'].split()[:2]",
    "s['a']", "len(s['a'])", "['go', s['a'].split()]", "[1, 2]", "q",
)  # fmt: skip
CASES = (
    "case []:\n    found = 'empty'\ncase ['go', x]:\n    found = f'go {x}'\ncase [x]:\n"
    "    found = x\ncase _:\n    found = 'other'",
    "case [x, *rest] if x != 'go':\n    found = 'long'\ncase [*rest, y]:\n    found = y",
    "case ['take', *_, ('lamp' | 'sword') as x]:\n    found = x\ncase ['go' | 'look', *rest]:\n"
    "    found = 'at'\ncase [x, y]:\n    found = f'{x}{y}'",
    "case [Names.go, y] | ['look', 'at', y]:\n    found = y\ncase x:\n    found = 'any'",
    "case ['go', ['go', x]] | ['go', [x, _, *_]]:\n    found = x\ncase ['go', [*rest]]:\n"
    "    found = 'deep'",
    "case [x, y, *rest] as found:\n    found = f'{len(rest)}{x}'\n"
    "case 'look' | None:\n    found = 'text'",
    "case (x, 'b') if x == 'look':\n    found = 'b'\ncase [_, _]:\n    found = 'two'",
)  # fmt: skip


BOTH = [(subject, cases) for subject in SUBJECTS for cases in CASES]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("subject", "cases"),
    [
        pytest.param(*each, marks=[] if n % 3 == 0 else pytest.mark.slow)
        for n, each in enumerate(BOTH)
    ],
)
def test_a_match_is_what_it_is_interpreted(subject: str, cases: str) -> None:
    run_both(f"{SUBJECTS.index(subject)}_{CASES.index(cases)}", subject, cases, POOL)


def run_both(name: str, subject: str, cases: str, pool: Sequence[str]) -> None:
    source = HEAD.replace("{subject}", subject).replace("{cases}", textwrap.indent(cases, " " * 8))
    file = f"match_{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    module: Any = ModuleType("matches")
    module.__file__ = file
    sys.modules["matches"] = module  # where `dataclass` looks for a class's names
    exec(compile(source, file, "exec"), vars(module))
    program = module.program
    compiled = program.compile(check=False)
    for seed in range(16):
        runs = [
            outcome(partial(each.run_once, {"q": "x"}, RunOptions(seed=seed), replying(seed, pool)))
            for each in (program, compiled)
        ]
        assert repr(runs[0]) == repr(runs[1]), seed


JSONS = (
    '{"role": "user", "text": "hi"}', '{"role": "bot", "text": 7}', '{"text": ["a", "b"], "n": 1}',
    '{"role": null}', "[1, {}]", "7", '"role"', "null", "{}", '{"n": {"role": "user", "n": 2.5}}',
)  # fmt: skip
OF_DICTS = (
    "case {'role': 'user', 'text': str(x)}:\n    found = x\ncase {'text': int() | float()}:\n"
    "    found = 'number'\ncase {'role': y}:\n    found = f'role {y}'\ncase _:\n"
    "    found = 'other'",
    "case {'n': {'role': ('user' | 'bot') as x, 'n': y}}:\n    found = f'{x}{y}'\n"
    "case {'text': [x, *rest]} if x:\n    found = 'listed'\ncase dict(x):\n    found = 'dict'",
    "case {}:\n    found = 'any dict'\ncase None | [_, dict()]:\n    found = 'none'\n"
    "case str(x) | int(x):\n    found = x",
)


DICTS = ("json.loads(s['a'])", "{'role': s['a'], 'text': [q, 'x'], 'n': {'role': 'user', 'n': q}}")


@pytest.mark.parametrize(("cases", "subject"), one_in(2, OF_DICTS, DICTS))
def test_a_match_that_looks_into_a_dict(subject: str, cases: str) -> None:
    run_both(f"dict_{DICTS.index(subject)}_{OF_DICTS.index(cases)}", subject, cases, JSONS)


OF_OBJECTS = (
    "case Order('go' | 'look' as x, amount=y) if y:\n    found = f'{x}{y}'\n"
    "case Order(kind='') | Order(kind='take'):\n    found = 'none'\n"
    "case Order(is_large=True, kind=x):\n    found = f'large {x}'\n"
    "case Order(missing=_):\n    found = 'never'\ncase Order(_, y):\n    found = y",
    "case Names() | [Order()]:\n    found = 'names'\ncase Order(x):\n    found = 'one'\n"
    "case _:\n    found = 'other'",
)
OBJECTS = (
    "Order(s['a'], 2)",
    "[Order(word, n) for n, word in enumerate(s['a'].split())][-1]",
    "max([Order(word, len(word)) for word in s['a'].split()], key=lambda each: each.amount)",
    "s['a']",
)


@pytest.mark.parametrize(("cases", "subject"), one_in(2, OF_OBJECTS, OBJECTS))
def test_a_match_that_looks_into_an_object(subject: str, cases: str) -> None:
    run_both(f"object_{OBJECTS.index(subject)}_{OF_OBJECTS.index(cases)}", subject, cases, POOL)


def test_a_match_on_objects_that_are_given() -> None:
    program = match_orders.compile()
    orders = [Order("go", 3), Order("look", 0), Order("stay", 1)]
    for each in (match_orders, program):
        run = each.run_once({"orders": orders}, RunOptions(), replying(0, POOL))
        assert run.streams[0].text == "3no looknone"


@dataclass
class Order:
    kind: str
    amount: int


@sgc.function
def match_orders(s: sgc.ProgramState, orders: list[Order]) -> None:
    for each in orders:
        match each:
            case Order("go", amount=n):
                s += str(n)
            case Order(kind=kind) if kind.startswith("l"):
                s += f"no {kind}"
            case Order():
                s += "none"
