"""Golden files: programs in the text form, with the expected outcome in comments.

The first line is the command that reproduces a file. `SGC_BLESS=1` writes what was found instead of
comparing; check the difference before you commit it.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "ir" / "golden"
ERROR = "# error: "


def cases(*, is_text: bool) -> list[str]:
    names = sorted(path.name.removesuffix(".sgir.txt") for path in FOLDER.glob("*.sgir.txt"))
    return [name for name in names if name.startswith("text_") == is_text]


def command(name: str) -> str:
    return f"pytest tests/ir/test_golden.py -k {name}"


def read(name: str) -> str:
    return (FOLDER / f"{name}.sgir.txt").read_text(encoding="utf-8")


def program(text: str) -> str:
    """A golden file without its first line and its annotations."""
    lines = text.splitlines()[1:]
    return "\n".join(line for line in lines if not line.strip().startswith(ERROR)) + "\n"


def annotate(text: str, errors: list[tuple[int, str]]) -> str:
    """A program with an annotation after each faulty line (lines count from 1)."""
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        lines.append(line)
        lines += [f"    {ERROR}{error}" for at, error in errors if at == number]
    return "\n".join(lines) + "\n"


def check(name: str, found: str) -> None:
    """Compares the content of a golden file, without its first line, with what was found."""
    compare(FOLDER / f"{name}.sgir.txt", found, command(name))


def compare(path: Path, found: str, command: str) -> None:
    """Compares a golden file with the command, as its first line, and what was found."""
    found = f"# {command}\n{found}"
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    if is_to_be_written(expected, found, command):
        path.write_text(found, encoding="utf-8")


def is_to_be_written(expected: str, found: str, command: str) -> bool:
    """Whether they differ and SGC_BLESS is set; fails if they differ and it is not."""
    if found == expected or os.environ.get("SGC_BLESS"):
        return found != expected
    lines = expected.splitlines(), found.splitlines()
    diff = "\n".join(difflib.unified_diff(*lines, "expected", "found", lineterm=""))
    pytest.fail(f"{diff}\n\nto accept: SGC_BLESS=1 .venv/bin/{command}", pytrace=False)
