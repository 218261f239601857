"""What `argparse` gives is data: programs that read it compile, and its changes are seen."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace

import pytest
from control_flow import replying

import sgc

ARGS = Namespace(prefix="a", rows=[1, 2])


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    monkeypatch.setitem(globals(), "ARGS", Namespace(prefix="a", rows=[1, 2]))


@sgc.function
def reads(s, x):
    s += ARGS.prefix + str(len(ARGS.rows)) + x


def test_a_change_of_it_is_seen_and_compiled_anew():
    endpoint = replying(1, ["a"])
    assert reads("!", backend=endpoint).text() == "a2!"
    ARGS.prefix = "b"
    ARGS.rows.append(3)
    assert reads("!", backend=endpoint).text() == "b3!"
    assert reads.explain() == "reads(x: text): compiled"


@sgc.function
def writes(s, x):
    ARGS.prefix += x
    s += ARGS.prefix


def test_a_program_that_changes_it_is_interpreted_and_changes_it_once_a_run():
    for expected in ("ax", "axx"):
        assert writes("x", backend=replying(1, ["a"])).text() == expected == ARGS.prefix
    assert "changes 'ARGS'" in writes.explain()


@sgc.function
def given(s, settings, x):
    s += settings.prefix + x


def test_as_an_argument_it_is_guarded_by_value():
    endpoint = replying(1, ["a"])
    for prefix in ("a", "b", "a"):
        assert given(SimpleNamespace(prefix=prefix), "!", backend=endpoint).text() == prefix + "!"
    assert given.explain().count(": compiled") == 2


def test_one_with_an_object_in_it_is_not_data():
    ARGS.rows = object()
    assert reads("!", backend=replying(1, ["a"])).error() is not None
    assert "whose changes are not seen" in reads.explain()
