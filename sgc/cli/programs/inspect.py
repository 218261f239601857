"""`sgc dump` and `sgc verify`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sgc.cli.output.colours import good
from sgc.cli.programs.compile import GO_ON
from sgc.ir.analysis.dump import to_dot, to_json, to_mermaid
from sgc.ir.analysis.host_calls import told_pieces
from sgc.ir.analysis.interpreted import left_of
from sgc.ir.file.sgir import load
from sgc.ir.text.printer import to_text


def dump_program(path: Path, form: str) -> None:
    """Prints a program in one of its forms."""
    graph = load(path)
    if form == "text":
        click.echo(to_text(graph), nl=False)
    elif form == "json":
        click.echo(json.dumps(to_json(graph), ensure_ascii=False, indent=2))
    else:
        click.echo({"dot": to_dot, "mermaid": to_mermaid}[form](graph))


def verify_program(path: Path) -> None:
    """Loads a program, which verifies it, and reports success."""
    graph = load(path)
    click.echo(f"{path}: {good('ok')}, {graph.name}, {graph.n_nodes} nodes")
    left = left_of(graph)
    if left is not None:
        nothing = ", and what is compiled asks a model for nothing" if left.is_all else ""
        click.echo(f"{path}: {left}{nothing}; {GO_ON}")
    pieces = told_pieces(graph)
    if pieces:
        click.echo(f"{path}: {pieces}; {GO_ON}")
