"""What is refused without live objects is equal with them, or refused too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from control_flow import agree_or_refuse, equal_or_refused
from traced_at_once import live_at_once
from tracing.control_flow import test_generators as generators
from tracing.control_flow import test_in_expressions as expressions
from tracing.pieces import test_set_displays as displays

import sgc
from sgc.errors import TraceError
from sgc.programs.program import Program
from sgc.tracing import tracer
from sgc.tracing.tracer import trace

ORDERS = (*displays.REFUSED, *displays.EQUAL)
METHODS = (expressions.of_an_object, expressions.of_a_slot)


@pytest.fixture(autouse=True)
def _alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


@pytest.mark.sweep
@pytest.mark.parametrize("body", ORDERS)
def test_the_order_of_a_set_is_pythons(body: Callable[..., Any]) -> None:
    equal_or_refused(displays.around(body), displays.POOL, n=12)


@pytest.mark.sweep
@pytest.mark.parametrize(("generator", "use"), generators.CASES)
def test_generators_that_are_left(generator: str, use: str) -> None:
    program = generators._program(generators.GENERATORS[generator][1], generators.USES[use][1])
    _is_equal_or_refused(program, generators.POOL)


@pytest.mark.parametrize("program", METHODS, ids=lambda each: each.name)
def test_methods_are_looked_up_before_their_arguments(program: Any) -> None:
    _is_equal_or_refused(program, expressions.POOL)


def test_the_type_of_a_live_object_is_not_told() -> None:
    @sgc.function
    def program(s, q: str):
        rows = [{"a": q}]
        s += q + sgc.gen("x", max_tokens=3)
        rows.append(s["x"])
        return type(rows[1]).__name__

    _is_equal_or_refused(program, ("yes", "no", ""))


def _is_equal_or_refused(program: Any, pool: tuple[str, ...]) -> None:
    try:
        compiled = Program(trace(program, is_full=True))
    except TraceError:
        return
    agree_or_refuse(program, compiled, pool, 8)
