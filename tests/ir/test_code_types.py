"""The type that a graph says its code gives: parsed, checked by loading and by running."""

from __future__ import annotations

from typing import Any

import pytest
from control_flow import replying

from sgc.errors import ProgramError, VerifyError
from sgc.ir.code import CodeError
from sgc.ir.code_types import MAX_TYPE, parse_code_type
from sgc.ir.text.parser import parse
from sgc.ir.verify import verify
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions

FITS: list[tuple[str, list[Any], list[Any]]] = [
    ("str", ["", "a"], [None, 1, b"a"]),
    ("int", [0], [True, 0.0, "0"]),
    ("float", [0.5, float("nan"), 1], [True, "1", None]),
    ("bool", [False], [0, None]),
    ("object", [None, {1}, object], []),
    ("str | None", [None, "a"], [0, ["a"]]),
    ("list[str]", [[], ["a"]], [("a",), [1], ["a", None], "a"]),
    ("list[list[int]]", [[], [[]], [[1], [2, 3]]], [[1], [[True]]]),
    ("tuple[str, int]", [("a", 1)], [["a", 1], ("a",), ("a", 1, 2), (1, "a")]),
    ("list[tuple[str, int | None]] | None", [None, [], [("a", None), ("b", 2)]], [[("a", "b")]]),
]
WRONG = [
    "",
    "text",
    "list",
    "list[str, int]",
    "dict[str, int]",
    "None",
    "str | int",
    "str()",
    "list[",
    "__import__('os')",
    "tuple[" + "int, " * MAX_TYPE + "]",
    "list[" * 300,
]


@pytest.mark.parametrize(("text", "fitting", "others"), FITS, ids=lambda each: str(each)[:30])
def test_what_fits(text: str, fitting: list[Any], others: list[Any]) -> None:
    type_ = parse_code_type(text)
    assert [type_.fits(value) for value in fitting] == [True] * len(fitting)
    assert [type_.fits(value) for value in others] == [False] * len(others)


def _graph(gives: str, code: str = "return a") -> str:
    return (
        'sgir 1\nprogram @p(%a: text) {\n^entry:\n  %s0 = stream "p" path="p"\n'
        f'  %v: json = evaluate "def f(a):\\n    {code}" [%a] gives="{gives}"\n'
        '  %t: text = compute "str" [%v]\n  %s1 = append %s0 %t\n  return %t\n}\n'
    )


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:12])
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(CodeError, match="expected a type"):
        parse_code_type(text)
    if text:  # else the graph says no type
        with pytest.raises(VerifyError, match="its code is refused"):
            verify(parse(_graph(text)))


def test_another_result_is_an_error() -> None:
    program = Program(parse(_graph("list[tuple[str, int]]", "return [(a, 1), (a, 0.5)]")))
    with pytest.raises(ProgramError, match=r"\[\('x', 1\), .*which the graph says is list\["):
        program.run_once({"a": "x"}, RunOptions(), replying(0, [""]))
