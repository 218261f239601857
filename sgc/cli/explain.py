"""`sgc explain`."""

from __future__ import annotations

import click

from sgc.cli.compile import bind_values
from sgc.cli.source import is_source, load_function
from sgc.errors import UsageError
from sgc.explain import findings
from sgc.ir.file import load
from sgc.ir.graph import Graph


def explain_program(program: str, bindings: tuple[str, ...]) -> None:
    """Prints what there is to point out in a program, a finding at a time."""
    found = findings(_graph(program, bindings))
    click.echo("\n".join(map(str, found)) or "nothing to point out")


def _graph(program: str, bindings: tuple[str, ...]) -> Graph:
    """As it is written: a pass could leave out what there is something to say of."""
    if is_source(program):
        function = load_function(program)
        return function.trace(**bind_values(function, bindings))
    if bindings:
        raise UsageError("--bind needs the Python source, not a compiled program")
    return load(program)
