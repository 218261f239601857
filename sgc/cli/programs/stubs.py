"""`sgc stubs`."""

from __future__ import annotations

import sys
import tokenize
from contextlib import redirect_stdout
from pathlib import Path

import click

from sgc.cli.programs.source import load_source
from sgc.errors import UsageError, counted
from sgc.programs.function import Function
from sgc.programs.stubs import WRITTEN_BY, stub_of


def write_stubs(source: Path, output: Path | None) -> None:
    """Writes the types of a file's programs beside it, or where `output` says.

    Stubs that somebody else has written are not replaced.
    """
    path = output or source.with_suffix(".pyi")
    before = path.read_text("utf-8", errors="replace") if path.is_file() else WRITTEN_BY
    if WRITTEN_BY not in before.partition("\n")[0]:
        raise UsageError(
            f"{path} is there already, and not written by `sgc stubs`",
            hint="remove it, or write to another file with -o",
        )
    with redirect_stdout(sys.stderr):  # what the file prints is not part of the stubs
        text, n_programs = _stubs(source)
    if str(output) == "-":
        click.echo(text, nl=False)
        return
    path.write_text(text, encoding="utf-8")
    click.echo(f"{path}: {counted(n_programs, 'program')}")


def _stubs(source: Path) -> tuple[str, int]:
    """The stubs of a file, and the number of its programs."""
    module = load_source(source)
    values = vars(module)
    programs = [each for each in values.values() if isinstance(each, Function)]
    n_programs = sum(each.python.__module__ == module.__name__ for each in programs)
    if not n_programs:
        raise UsageError(f"{source}: there is no @sgc.function in it")
    with tokenize.open(source) as file:
        return stub_of(file.read(), source.name, values), n_programs
