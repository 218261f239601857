"""The evaluator gives what Python gives: the cases of cases.txt, each against Python's own exec."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from executor.code.comparing import by_python, by_us

Case = tuple[str, str, str]


def _cases() -> Iterator[Case]:
    title, lines = "", []
    for line in Path(__file__).with_name("cases.txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            title, lines = line[2:], []
        elif line.startswith(">>>"):
            yield title, "\n".join(lines) + "\n", line[3:].strip()
        else:
            lines.append(line)


def _arguments(text: str) -> Iterator[list[Any]]:
    """The arguments of a line; `*range(...)` stands for a case each."""
    if text.startswith("*range"):
        numbers = ast.literal_eval(text.removeprefix("*range").replace(")", ",)"))
        yield from ([number] for number in range(*numbers))
    else:
        yield list(ast.literal_eval(f"({text},)")) if text else []


@pytest.mark.sweep
@pytest.mark.parametrize("case", list(_cases()), ids=lambda case: f"{case[0]} {case[2]}"[:60])
def test_the_evaluator_gives_what_python_gives(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest keeps errors that Python drops, and with them generators that would be closed.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    _, source, arguments = case
    for args in _arguments(arguments):
        assert by_us(source, args) == by_python(source, args), args
