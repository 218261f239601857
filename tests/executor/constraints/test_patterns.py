"""Patterns that replies are held to: they mean what they mean in `re`, in bounded time."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from executor.free_backend import Free, ask, simple
from waiting import BOUND_S

import sgc
from sgc.errors import SgcError, UsageError
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.patterns.timed_regex import Pattern


@pytest.mark.slow
def test_a_pattern_that_takes_for_ever_is_an_error_and_stops_no_other_run():
    async def both() -> Any:
        @sgc.function
        def slow(s):
            s += "a" + sgc.gen("x", regex="(a|aa)+b?$")

        graph, other = slow.compile(check=False).graph, simple.compile(check=False).graph
        work = asyncio.ensure_future(run_graph(graph, Free("a" * 60 + "!"), {}))
        await asyncio.sleep(0.2)
        await run_graph(other, Free("r"), {})
        assert not work.done(), "the other run had to wait for it"
        return (await asyncio.gather(work, return_exceptions=True))[0]

    failed = asyncio.run(asyncio.wait_for(both(), BOUND_S))
    assert type(failed) is UsageError
    assert "cannot be checked" in str(failed)
    assert failed.where.startswith("test_patterns.py:")


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "(" * 3000 + ")" * 3000, "[z-a]"])
def test_a_pattern_that_is_none_is_an_error_before_anything_is_asked(pattern):
    @sgc.function
    def given(s, pattern: str):
        s += "a" + sgc.gen("x", regex=pattern)

    backend = Free("r")
    graph = given.compile(check=False).graph
    with pytest.raises(UsageError, match="is invalid"):
        asyncio.run(run_graph(graph, backend, {"pattern": pattern}))
    assert backend.samplings == []


@pytest.mark.parametrize(
    "pattern", ["((a{1000}){1000}){1000}", "(?:a{500}b){201}", "a{9999999999}"]
)
def test_repeats_that_would_fill_the_memory_are_refused(pattern):
    with pytest.raises(UsageError, match="repeats too much"):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\d{4}-\d{2}", "2024-05"),
        ("a{e}", "a{e}"),  # the package's inexact matching is no part of `re`
        (r"\{e\}[{}]{2}", "{e}{}"),
        (r"a{,2}b{0}(x|y){1,1000}", "aaxyx"),
        (r"[^]a]\]" + "(ab){3}" * 100, "b]" + "ababab" * 100),
        (r"\\{e<=1}", r"\{e<=1}"),
    ],
)
def test_patterns_mean_what_they_mean_in_re(pattern, text):
    assert Pattern(pattern).is_whole(text)
    assert not Pattern(pattern).is_whole(text + "\n")


def test_the_package_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(SgcError, match="pip install regex"):
        ask(Free("r"), regex="never compiled [0-9]")
