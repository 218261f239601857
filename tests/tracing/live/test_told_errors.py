"""Which error is told of a program that is whole neither with live objects nor without them."""

from __future__ import annotations

import pytest

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import _told, trace
from sgc.tracing.watch.objects import ChangedOutside


@sgc.function
def hashes(s, q: str):
    s += q + sgc.gen("x")
    s += str(hash(s["x"]))
    s += str({s["x"]: q})


def test_the_first_error_is_told():
    with pytest.raises(TraceError) as told:
        trace(hashes, is_full=True)
    assert "hash" in told.value.message


LIFTED = "q is looked up in a dict or set"


def _error(message, where="a.py:3", kind=TraceError):
    error = kind(message, where=where)
    error.needs = frozenset({message})
    return error


def test_what_live_objects_do_is_not_told():
    found = _told(_error(LIFTED), _error("hash() reads a value", "a.py:9"))
    assert found.message == "hash() reads a value"
    assert found.needs == {LIFTED}


@pytest.mark.parametrize(
    ("first", "live"),
    [
        (LIFTED, None),
        (LIFTED, _error("another at the same line")),
        (LIFTED, _error("without a line", "")),
        (LIFTED, _error("what is around changed", "a.py:9", ChangedOutside)),
        ("what live objects do not do", _error("another", "a.py:9")),
    ],
)
def test_all_else_is_told(first, live):
    assert _told(_error(first), live).message == first
