"""`range` of numbers known only at run time: loops over them, and what is refused."""

from __future__ import annotations

import contextlib
import runpy
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from control_flow import agree, outcome, replying
from tests_support import one_in, written

import sgc
from sgc.runtime.executor.run.options import RunOptions

NUMBERS = (-3, 0, 1, 2, 5)
POOL = ["go", "stop", "3"]


Made = Callable[[str], sgc.Function]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """The program of a file with that text."""

    def make(body: str) -> sgc.Function:
        function: sgc.Function = runpy.run_path(written(tmp_path, "@sgc.function\n" + body))["p"]
        return function

    return make


def agree_on(function: sgc.Function, names: str) -> sgc.Program:
    """The program compiled once, which for all numbers does what the interpreter does."""
    program = function.compile()
    assert not any(node.op == "deopt" for node in program.graph.all_nodes())
    for seed, values in enumerate(product(NUMBERS, repeat=len(names))):
        arguments = dict(zip(names, values, strict=True))
        wanted, found = (
            outcome(partial(each.run_once, arguments, RunOptions(seed=seed), replying(seed, POOL)))
            for each in (function, program)
        )
        assert found == wanted, arguments
    return program


@sgc.function
def counts(s, n: int):
    last = None
    for i in range(n):
        s += f"{i}: " + sgc.gen("a", max_tokens=4)
        last = i
        if s["a"] == "stop":
            break
    else:
        s += "all of them"
    return last


def test_a_range_to_an_argument_is_a_loop():
    program = agree_on(counts, "n")
    assert sum(node.op == "gen" for node in program.graph.all_nodes()) == 1


@sgc.function
def from_to(s, a: int, b: int):
    for i in range(a, b):
        s += f"<{i}>"
    for i in range(b + 1, a, -2):
        s += f"[{i}]"
    for i in reversed(range(a, b + 1)):
        s += f"({i})" + sgc.gen("x", max_tokens=2)
    for i in reversed(range(b, 0, -1)):
        s += f"-{i}"


def test_ranges_count_up_and_down():
    agree_on(from_to, "ab")


@sgc.function
def by_steps(s, a: int, b: int):
    try:
        for i in range(a, 3 - a, b):
            s += f"{i}: " + sgc.gen("x", max_tokens=2)
            if s["x"] == "stop":
                break
        else:
            s += "all"
        s += " ".join(str(i) for i in range(4, b, a))
        for i in range(-5, 5, a * b):
            s += f"{i};"
    except ValueError as error:
        s += str(error)
    for k in range(2):
        for i in range(2 * k, 5, abs(b) + 1):
            s += f"{k}{i}"


@pytest.mark.full_budget
def test_steps_known_only_at_run_time():
    graph = agree_on(by_steps, "ab").graph
    assert sum(node.op == "gen" for node in graph.all_nodes()) == 4  # up and down, first and later


@sgc.function
def of_replies(s, n: int):
    s += "How many?" + sgc.gen("n", regex="[0-9]", max_tokens=1)
    for _ in range(min(int(s["n"]), n)):
        for j in range(n > 1):
            s += f"{j}" + sgc.gen("x", max_tokens=2)


def test_a_range_of_what_was_generated():
    agree_on(of_replies, "n")


AS_CODE = (
    "xs = list(range(n))", "x = len(range(1, n))", "x = 2 in range(n)",
    "xs = {i for i in range(n)}",
    "for i in reversed(range(0, n, 3)): pass", "for i in reversed(range(0, 9, n)): pass",
    "xs = list(range(0, 9, n))",
    "x = range(n) == range(n)",
)  # fmt: skip


@pytest.mark.parametrize("line", one_in(4, AS_CODE))
def test_what_needs_the_numbers_is_code(line: str, made: Made):
    function = made(f"def p(s, n: int):\n    s += 'a' + sgc.gen('a')\n    {line}\n")
    assert "evaluate" in {node.op for node in function.compile().graph.nodes()}


WRONG = ("range(n, 'x')", "range(1.5, n)", "range(n * 1.0)", "range(0, n, 0)", "range(*[n] * 4)")


@pytest.mark.parametrize("wrong", WRONG)
def test_what_python_refuses_is_refused_alike(wrong: str, made: Made):
    function = made(
        f"def p(s, n: int):\n    s += 'a' + sgc.gen('a')\n    try:\n        x = {wrong}\n"
        "    except (TypeError, ValueError) as error:\n        s += str(error)\n"
    )
    agree_on(function, "n")


def test_a_range_in_a_block_of_a_librarys_and_in_a_handler():
    @sgc.function
    def program(s, q: str):
        with contextlib.suppress(KeyError):
            for i in range(2):
                s += f"{i}" + sgc.gen("x", max_tokens=4)
        try:
            s += str(int(s["x"]))
        except ValueError:
            for i in range(3):
                s += f"{i}?" + sgc.gen("y", max_tokens=4)

    agree(program, ("1", "no"), q="x")
