"""`sgc stubs`."""

from __future__ import annotations

from pathlib import Path

import click

from sgc.cli.programs.source import load_source
from sgc.errors import UsageError
from sgc.programs.function import Function
from sgc.programs.stubs import stub_of


def write_stubs(source: Path, output: Path | None) -> None:
    """Writes the types of a file's programs beside it, or where `output` says."""
    module = load_source(source)
    values = vars(module)
    n_programs = sum(isinstance(each, Function) for each in values.values())
    if not n_programs:
        raise UsageError(f"{source}: there is no @sgc.function in it")
    text = stub_of(source.read_text(encoding="utf-8"), source.name, values)
    if output is not None and str(output) == "-":
        click.echo(text, nl=False)
        return
    path = output or source.with_suffix(".pyi")
    path.write_text(text, encoding="utf-8")
    programs = "1 program" if n_programs == 1 else f"{n_programs} programs"
    click.echo(f"{path}: {programs}")
