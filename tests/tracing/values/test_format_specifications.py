"""Format specifications with widths, precisions or letters known only at run time."""

from __future__ import annotations

from typing import Any

import pytest
from control_flow import agree
from tests_support import one_in

import sgc

REPLIES = ("a b", ">9", "12", "d", "", "-7")


class Shown:
    def __format__(self, spec: str) -> str:
        return f"<{spec}>"


def widths(text: str, n: int) -> str:
    return f"{text:{n}}|{text!r:>{n + 4}}|{n:0{n}}|{n / 3:.{n}f}|{'x':*^{n}}|{3.14159:.{n}f}"


def templates(text: str, n: int) -> str:
    return "{:>{}}|{:{w}}|".format(text, n, n, w=n + 4) + "{a:<{n}}".format_map({"a": 5, "n": n})


def called(text: str, n: int) -> str:
    return format(7, f">{n}") + format(text, f"<{n}") + format(Shown(), text) + f"{Shown():{text}}"


def others(text: str, n: int) -> str:
    shown = f"{text.split()!s:>{n}}|{True!r:{n}}|{None!s:{n}}"
    return shown + f"{[n]!r:>{n}}|{(n if n > 2 else 9):>{n}}"


def letters(text: str, n: int) -> str:
    try:
        return f"{n:{text}}"
    except ValueError as error:
        return str(error)


def no_text(text: str, n: int) -> str:
    try:
        return f"{None:{text}}" + f"{text.split():{text}}"
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize(
    "shown",
    one_in(3, [widths, templates, called, others, letters, no_text]),
    ids=lambda each: each.__name__,
)
def test_a_specification_known_only_at_run_time(shown: Any) -> None:
    @sgc.function
    def program(s: Any, q: str) -> None:
        s += q + sgc.gen("a", max_tokens=4)
        n = len(s["a"])
        if n > 2:
            s += "long"
        s += shown(s["a"], n)

    agree(program, REPLIES, q="x")
