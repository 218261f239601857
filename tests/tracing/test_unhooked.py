"""`unhooked`: what the package itself does is not seen by the hooks that watch a program."""

from __future__ import annotations

import contextlib
import cProfile
import sys
from collections.abc import Iterator

import pytest
from control_flow import replying

import sgc
from sgc.core.watching import unhooked
from sgc.runtime.executor.run.options import RunOptions


def inner() -> None:
    pass


@unhooked
def plain(fails: bool = False) -> None:
    inner()
    if fails:
        raise ValueError("fails")


@pytest.fixture
def seen() -> Iterator[list[str]]:
    """The functions that are called, as a trace function and a profile function see them."""
    found: list[str] = []

    def trace(frame, event, arg):
        found.append(frame.f_code.co_name)

    def profile(frame, event, arg):
        if event == "call":
            found.append(frame.f_code.co_name)

    trace.__module__, profile.__module__ = "sgc.tracing.paths.loops", "sgc.tracing.watch.hook"
    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    yield found
    sys.settrace(before[0])
    sys.setprofile(before[1])


@pytest.mark.parametrize("fails", [False, True])
def test_hooks_see_the_calls_around_it_only(seen, fails):
    with contextlib.suppress(ValueError):
        plain(fails)
    inner()
    sys.setprofile(None)
    assert seen.count("inner") == 2  # of the last call: its trace and its profile


def test_hooks_that_it_sets_itself_stay(seen):
    calls = []

    @unhooked
    def setting():
        sys.settrace(lambda frame, event, arg: calls.append(frame.f_code.co_name))

    setting()
    before, n_calls = list(seen), len(calls)
    inner()
    sys.settrace(None)
    assert calls[n_calls:] == ["inner"]
    assert seen.count("inner") == before.count("inner") + 1  # its profile


def test_without_hooks_it_sets_none():
    before = sys.gettrace(), sys.getprofile()
    sys.settrace(None)
    sys.setprofile(None)
    try:
        plain()
        assert (sys.gettrace(), sys.getprofile()) == (None, None)
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])


def test_hooks_of_others_stay():
    calls = []
    before = sys.gettrace(), sys.getprofile()
    sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_name))
    try:
        plain()
    finally:
        sys.setprofile(before[1])
    assert "inner" in calls


def test_a_program_runs_under_a_profiler():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=4)
        return s["a"]

    profiler = cProfile.Profile()
    profiler.enable()
    try:
        result = program.run_once({"q": "x"}, RunOptions(seed=1), replying(1, ("yes",)))
        assert result.ret_value == "yes"
    finally:
        profiler.disable()
    assert any("text_parts" in str(each.code) for each in profiler.getstats())
