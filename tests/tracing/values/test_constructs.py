"""What Python's own constructs do to abstract values: every one is computed or refused.

Each row is an expression, or statements that set `v`. A row of COMPUTED or AS_CODE must give
compiled what it gives interpreted, on nasty values; one of REFUSED must not compile, naming its
line and a way out. Together they hold every method and operator of `str`, `int` and `float`. What a
program reads of its surroundings is in `test_surroundings.py`.
"""

from __future__ import annotations

import json
import linecache
import math
import operator
import re
import textwrap
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from tests_support import by_c, results
from tracing.values.constructs import AS_CODE, COMPUTED, REFUSED

import sgc
from sgc.errors import SgcError, TraceError
from sgc.lang.table import join, table
from sgc.runtime.executor.run.options import RunOptions

TEXTS = (
    "", " ", "abc", " a,b ", "Straße İ", "e\u0301é", "xy" * 300, "٣²½", "12", "-3.5e1",
    "ab\nc\r\nd",
    "ABC def", "{x}%s\\1", '{"a": [1, "b", null], "n": 2.5, "t": "T"}', "[1]", "null", "ıſK\u212a",
)  # fmt: skip


INTS = (0, 3, -2, 10**20, 1, 255)


FLOATS = (2.5, 0.0, -1.5, float("nan"), float("inf"), 1e300, -0.0)


# Names that are Python's own for any object, or for making and describing one.
OF_OBJECTS = set(dir(object)) - {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}


OF_OBJECTS |= {"__getnewargs__", "__getformat__", "__setformat__", "__format__"}


REFUSED_METHODS = {
    match[1]
    for key in ("methods of ints", "methods of floats")
    for row in (*REFUSED[key], *AS_CODE[key])
    if (match := re.match(r"\w\.(\w+)", row))
}


def test_every_name_of_pythons_types_is_here():
    for of in (str, int, float):
        names = set(dir(of)) - OF_OBJECTS - REFUSED_METHODS
        assert sorted(names - COMPUTED.keys() - AS_CODE.keys() - REFUSED.keys()) == []


HEAD = """
def helper(text):
    return text.strip() + str(len(text))

def program(s, x, y, n: int, r: float, b: bool, xs: list[str]):
    s += "q" + sgc.select("choice", ["yes", "no"])
    try:
"""


TAIL = """
    except Exception as error:
        s += f"{type(error).__name__}: {error}"
        return None
    return v
"""


OTHER = """
def other_helper(x):
    return len(x)

def other_number(n):
    return int(n)
"""


_other: dict[str, Any] = {"__name__": "other_module"}


exec(compile(OTHER, "other_module.py", "exec"), _other)


def made(row: str) -> tuple[Any, int]:
    """A program of a row, and the row's first line in it."""
    body = row if "\n" in row else f"v = {row}"
    source = HEAD + textwrap.indent(body, " " * 8) + TAIL
    file = f"construct_{abs(hash(row))}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {
        "__name__": "constructs", "sgc": sgc, "re": re, "json": json, "math": math, "table": table,
        "join": join, "textwrap": textwrap, "PATTERN": re.compile(r"[a-c]+"), "PLAIN": "a b",
        "operator": operator,
        "by_c": by_c,
        "copy": __import__("copy"), "pickle": __import__("pickle"), **{
            name: _other[name] for name in ("other_helper", "other_number")
        },
    }  # fmt: skip
    exec(compile(source, file, "exec"), namespace)
    return sgc.function(namespace["program"]), HEAD.count("\n") + 1


def rows(of: dict[str, list[str]]) -> list[Any]:
    """Of each kind every third is quick, the first among them; the others are slow tests."""
    return [
        pytest.param(row, id=f"{key}: {row}", marks=pytest.mark.slow if number % 3 else ())
        for key, found in of.items()
        for number, row in enumerate(found)
    ]


def outcome(run: Any) -> Any:
    """A run's texts and values, as they are printed: nan is itself, and 1 is not True."""
    try:
        return repr(results(run()))
    except SgcError as error:
        return f"fails: {error.message}"


@pytest.mark.sweep
@pytest.mark.parametrize("row", [*rows(COMPUTED), *rows(AS_CODE)])
def test_compiled_is_interpreted(row, scripted):
    program, _ = made(row)
    compiled = program.compile(check=False)
    reads, seen = set(re.findall(r"\w+", row)), set()
    for number, text in enumerate(TEXTS):
        arguments = {
            "x": text,
            "y": TEXTS[(number * 5 + 2) % len(TEXTS)],
            "n": INTS[number % len(INTS)],
            "r": FLOATS[number % len(FLOATS)],
            "b": number % 2 == 0,
            "xs": [t for t in text.split(",") if t][: number % 4],
        }
        choice = number % 2
        read = repr([value for name, value in arguments.items() if name in reads]), choice
        if read in seen:
            continue  # what differs is not read
        seen.add(read)
        endpoint = scripted(prefer=lambda prompt, choices, choice=choice: choice)
        options = RunOptions(seed=3)
        ours = outcome(partial(compiled.run_once, arguments, options, endpoint))
        theirs = outcome(partial(program.run_once, arguments, options, endpoint))
        assert ours == theirs, arguments


@pytest.mark.full_check
@pytest.mark.parametrize("row", rows(REFUSED))
def test_what_is_refused_names_its_line_and_a_way_out(row):
    program, line = made(row)
    with pytest.raises(TraceError) as caught:
        program.compile()
    assert caught.value.hint
    if row in REFUSED["what a library does to texts"]:
        return
    n_lines = row.count("\n") + 1
    file, _, where = caught.value.where.rpartition(":")
    if file == "other_module.py":
        return  # the helper's own line
    assert line <= int(where) < line + n_lines, caught.value


@pytest.mark.sweep
@pytest.mark.full_check
@pytest.mark.parametrize("row", rows(REFUSED))
def test_what_is_refused_is_interpreted_and_says_why(row, scripted):
    """Called rather than compiled, a program runs all the same; the values of lists are known."""
    program, _ = made(row)
    given = {"x": "abc", "y": "b", "n": 2, "r": 2.5, "b": True, "xs": ["p", "q"]}
    with pytest.raises(TraceError) as refused:
        program.compile()
    called = outcome(partial(jitted, program, deepcopy(given), scripted()))
    assert called == outcome(partial(program.run_once, given, RunOptions(seed=3), scripted()))
    how = program.explain()
    if "xs" not in row:
        assert "interpreted: " in how
        assert refused.value.message in how


def jitted(program, given, endpoint):
    return program(**given, seed=3, backend=endpoint).result()
