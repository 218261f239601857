"""Values known only at run time that C code looks at by Python's own types: it takes them for
something else, and its errors are not the program's."""

from __future__ import annotations

import fractions
import math
from collections import deque
from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.errors import RaisedInTrace, TraceError
from sgc.tracing.tracer import trace


@sgc.function
def the_last_few(s, q: str, k: int = 2):
    recent: deque[tuple[str, str]] = deque(maxlen=k)
    for x in q.split(","):
        s += x + sgc.gen("r", max_tokens=3)
        recent.append((x, s["r"]))
    s += "\n".join(f"{a}: {b}" for a, b in recent)
    return {"n": len(recent), "most": recent.maxlen, "kept": [*recent]}


def test_a_queue_may_have_a_length_of_run_time() -> None:
    graph = agree(the_last_few, ("a", "b"), q="p,q,r", k=2)
    agree(the_last_few, ("a", "b"), graph=graph, q="p,q", k=0)


def takes_an_int(n: int) -> Any:
    return math.ldexp(2.0, n)


def librarys(n: int) -> Any:
    return fractions.Fraction(1, 2).limit_denominator(n)


@pytest.mark.parametrize("body", [takes_an_int, librarys])
def test_no_error_of_c_code_is_told_as_the_programs(body: Any) -> None:
    @sgc.function
    def shown(s, k: int):
        kept = [body(k)]
        s += f"{len(kept)}" + sgc.gen("a", max_tokens=3)

    try:
        trace(shown, is_full=True)  # as code
    except TraceError as error:
        assert not isinstance(error, RaisedInTrace)  # noqa: PT017
