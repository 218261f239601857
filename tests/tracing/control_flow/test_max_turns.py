"""`max_turns` bounds the same turns interpreted, compiled and from a file."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import pytest

import sgc
from sgc.errors import TurnsExceeded, UsageError
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

OPTIONS = RunOptions(seed=1)


def outcome(program: Any, given: dict[str, Any], backend: Any) -> tuple[Any, int]:
    """What a run returns or raises, and how many requests it has made."""
    asked: list[str] = []

    def reply(prompt: Any, sampling: Any) -> str:
        asked.append(str(prompt))
        return "stop" if "!" in str(prompt) else "go"

    try:
        found = program.run_once(given, OPTIONS, backend(reply)).ret_value
    except TurnsExceeded as error:
        found = error.message
    return found, len(asked)


def both(program: sgc.Function, given: dict[str, Any], scripted: Any) -> tuple[Any, int]:
    found = outcome(program, given, scripted)
    assert outcome(Program(trace(program, is_full=True)), given, scripted) == found
    assert outcome(program.compile(), given, scripted) == found
    return found


BEYOND = "a loop goes on beyond max_turns=3"


@sgc.function(max_turns=3)
def until_told(s, n: int):
    i, said = 0, ""
    while said != "stop":
        i += 1
        if i == 2:
            continue
        s += ("!" if i == n else "?") + sgc.gen("x")
        said = s["x"]
    return i


@sgc.function(max_turns=3)
def handles(s, n: int):
    i = 0
    try:
        while True:
            s += "?" + sgc.gen("x")
            assert s["x"]
            i += 1
            if i > n:
                break
    except TurnsExceeded as error:
        return f"{i}: {error.message}"
    else:
        return i


@sgc.function(max_turns=3)
def in_another(s, n: int):
    i = 0
    for k in range(n):
        while i < 3 * (k + 1):
            s += "?" + sgc.gen("x")
            assert s["x"]
            i += 1
    return i


@sgc.function(max_turns=3)
def counting(s, n: int):
    for i in itertools.count(1):
        s += "?" + sgc.gen("x")
        assert s["x"]
        if i >= n:
            return i


@sgc.function(max_turns=3)
def over_items(s, n: int):
    squares = 0
    while squares < 50:  # it asks nothing
        squares += 1
    for _ in range(n):
        s += "?" + sgc.gen("x")
        assert s["x"]
    for _ in sgc.turns(5):
        s += "." + sgc.gen("y")
    return squares


@sgc.function
def asks_on(s, n: int):
    i = 0
    while i < n:
        s += "?" + sgc.gen("x")
        assert s["x"]
        i += 1
    return i


@sgc.function(max_turns=3)
def calls(s, n: int):
    return asks_on(n=n).ret_value


@sgc.function(max_turns=3)
def maps(s, n: int):
    return sgc.map(asks_on, [n - 1, n]).returns


def has_said(s) -> int:
    return 1 if s["x"] else 0


@sgc.function(max_turns=3)
def nested(s, n: int):
    def ask(i: int) -> int:
        while i < n:
            i += has_said(s)
        return i

    s += sgc.gen("x")
    assert s["x"]
    return ask(0)


def loudly(function):
    @functools.wraps(function)
    def wrapped(s, n: int):
        s += "loud "
        return function(s, n)

    return wrapped


@sgc.function(max_turns=3)
@loudly
def wrapped(s, n: int):
    i = 0
    while i < n:
        s += "?" + sgc.gen("x")
        assert s["x"]
        i += 1
    return i


@pytest.mark.parametrize(
    ("program", "n", "wanted"),
    [
        (until_told, 1, (1, 1)),
        (until_told, 3, (3, 2)),
        (until_told, 4, (BEYOND, 2)),
        (handles, 2, (3, 3)),
        (handles, 3, (f"3: {BEYOND}", 3)),
        (in_another, 2, (6, 6)),
        (in_another, 4, (12, 12)),
        (counting, 3, (3, 3)),
        (counting, 4, (BEYOND, 3)),
        (over_items, 7, (50, 12)),
        (calls, 3, (3, 3)),
        (calls, 4, (BEYOND, 3)),
        (maps, 3, ([2, 3], 5)),
        (maps, 4, (BEYOND, 6)),
        (nested, 3, (3, 1)),
        (nested, 4, (BEYOND, 1)),
        (wrapped, 3, (3, 3)),
        (wrapped, 4, (BEYOND, 3)),
    ],
)
def test_a_loop_takes_at_most_so_many_turns(program, n, wanted, scripted):
    assert both(program, {"n": n}, scripted) == wanted


def test_a_function_without_its_source_says_so(scripted):
    names: dict[str, Any] = {"sgc": sgc}
    text = "def program(s):\n    while True:\n        s += sgc.gen('x')\n"
    exec(compile(text, "<told>", "exec"), names)
    with pytest.raises(UsageError, match="max_turns, and its loops cannot be read"):
        sgc.function(names["program"], max_turns=2).run(backend=scripted())
