"""`d[k] += x` by values known only at run time: numbers, texts, Decimals, lists of others."""

from __future__ import annotations

import datetime
import heapq
import json
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from control_flow import agree_or_refuse, agree_saved

import sgc
from sgc.errors import TraceError
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.tracing.tracer import trace

POOL = (
    '{"a":1,"b":[2],"c":"y"}', "{}", '{"a":[1],"b":[[1]]}', '{"b":[[3],4],"a":[]}', '{"a":"z"}',
    '{"d":{}}', '{"b":"xy","a":2.5}', '{"a":[[1],[2]],"b":[[1]]}', '{"a":2,"b":3,"ab":7}',
)  # fmt: skip


def to_known_items(s, data):
    left = {"a": 1, "b": [0], "c": "x", "d": {}}
    for key, value in data.items():
        s += "."
        if key in left:
            left[key] += value
    return left


def amounts(s, data):
    owes = {key: Decimal(0) for key in [*data, "all"]}
    for key, value in data.items():
        if isinstance(value, int):
            share = Decimal(value) / 3
            for each in (key, "all"):
                s += "."
                owes[each] += share
    return {key: str(value) for key, value in owes.items()}


def days(s, data):
    due = {key: datetime.date(2024, 2, 27) for key in data}
    for key, value in data.items():
        if isinstance(value, int):
            step = datetime.timedelta(days=value)
            for each in sorted(data):
                s += key
                due[each] += step
    return {key: str(value) for key, value in due.items()}


def totals(s, data):
    sums = dict.fromkeys(["a", "b"], 0)
    prices = {key: value for key, value in data.items() if isinstance(value, int)}
    for key in data:
        s += "."
        if key in sums:
            sums[key] += sum(prices[name] for name in prices if name >= key)
    return sums


def program(body: Callable[..., Any]) -> Any:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        found = body(s, json.loads(s["a"]))
        s += f"{found}" + sgc.gen("b", max_tokens=3)
        return found

    return shown


def pushed(s, data):
    heap, path = [(0, [])], []
    for key in data:
        s += "."
        n, path = heapq.heappop(heap)
        for each in (key, "z"):
            s += f"{path}"
            heapq.heappush(heap, (n + len(each), path + [each]))  # noqa: RUF005
    return heap, path


@pytest.mark.sweep
@pytest.mark.parametrize("body", [to_known_items, amounts, days, totals, pushed])
def test_items_are_added_to(body: Callable[..., Any]) -> None:
    agree_saved(program(body), POOL, n=16, q="x")


def changed_later(s, data):
    left = {key: [] for key in data}
    for key, value in data.items():
        s += "."
        left[key] += value
    for key in data:
        s += "."
        if left[key]:
            first = left[key][0]
            if isinstance(first, list):
                first.append(7)
    return left, data


def pushed_and_changed_later(s, data):
    heap = [(0, [["a"]])]
    for key in data:
        n, path = heapq.heappop(heap)
        heapq.heappush(heap, (n + len(key), path + [[key]]))  # noqa: RUF005
        s += f"{heap}"
        path[0].append(key)
    return heap


@pytest.mark.parametrize(
    "body", [pytest.param(changed_later, marks=pytest.mark.slow), pushed_and_changed_later]
)
def test_what_both_hold_is_not_changed_later(body: Callable[..., Any]) -> None:
    held = program(body)
    with suppress(TraceError):  # else runs refuse it
        agree_or_refuse(held, Program(optimize(trace(held, is_full=True), 0)), POOL, n=24)


def held_by_another_name(s, data):
    left = {key: [] for key in data}
    for key, value in data.items():
        s += "."
        items = left[key]
        left[key] += value
        s += f"{items}"
    return left


@pytest.mark.slow
def test_an_item_that_another_name_has_ends_the_run() -> None:
    held = program(held_by_another_name)
    agree_or_refuse(held, Program(optimize(trace(held, is_full=True), 0)), POOL, n=24)
