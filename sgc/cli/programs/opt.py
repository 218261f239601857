"""`sgc opt`: runs passes over a compiled program and reports what each did."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

import click

from sgc.cli.programs.compile import check_output
from sgc.cli.programs.hoist import Hoisting
from sgc.errors import PassFailed, UsageError
from sgc.ir.file.sgir import load, save
from sgc.ir.graph import Graph
from sgc.ir.text.printer import to_text
from sgc.passes.base import Pass
from sgc.passes.changing import hoist_prefix
from sgc.passes.changing.movement.move import report
from sgc.passes.facts.kept_results import keep
from sgc.passes.pipeline import optimize
from sgc.runs.cache_rules import passes_for


def opt_program(
    path: Path,
    output: Path | None,
    level: int,
    passes: str | None,
    show: str,
    folder: Path | None,
    kept: str,
    model: str | None,
    rows: int,
    proposer: str = "rules",
    validate_rows: Path | None = None,
    min_equal: float = 1.0,
    engine: str | None = None,
) -> None:
    """Prints a line for each pass, and the resulting program unless it is written to a file.

    If a pass produces an invalid program, its input is saved beside the file.
    """
    check_output(output)
    graph = keep(load(path), kept)
    names = None if passes is None else tuple(filter(None, passes.split(",")))
    target = () if model is None else passes_for(model, rows)
    hoisting = Hoisting(proposer, engine, validate_rows, min_equal)
    hoisting.check(names)
    if not hoisting.is_plain:
        target = (*target, hoisting.decided(graph))
    n_run = 0

    def observe(row: Pass, before: Graph, after: Graph, seconds: float) -> None:
        nonlocal n_run
        n_run += 1
        click.echo(_line(row, before, after, seconds), err=True)
        for line in _shown(show, before, after):
            click.echo(line, err=True)
        if row is hoist_prefix.PASS and show != "nothing":
            for line in report(before):
                click.echo(line, err=True)
        if folder is not None:
            name = f"{n_run:02d}-{row.name}.sgir.txt"
            (folder / name).write_text(to_text(after), encoding="utf-8")

    if folder is not None:
        _make(folder)
        (folder / "00-before.sgir.txt").write_text(to_text(graph), encoding="utf-8")
    try:
        made = optimize(graph, level, names, observe, target)
    except PassFailed as failed:
        left = path.with_name(f"{path.stem}.before-{failed.pass_name}.sgir")
        save(failed.graph, left)
        failed.hint = f"to see it again: sgc opt {left} -p {failed.pass_name}"
        raise
    if output is None:
        click.echo(to_text(made), nl=False)
    else:
        save(made, output)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--dump {folder}: {error.strerror}") from error


def _line(row: Pass, before: Graph, after: Graph, seconds: float) -> str:
    did = "nothing" if after is before else f"{before.n_nodes} to {after.n_nodes} nodes, {row.doc}"
    return f"{row.name} (preserves {row.preserves.value}, {1e3 * seconds:.1f} ms): {did}"


def _shown(show: str, before: Graph, after: Graph) -> Iterator[str]:
    if show in ("before", "after"):
        yield to_text(before if show == "before" else after)
    elif show == "changed" and after is not before:
        old, new = (to_text(each).splitlines() for each in (before, after))
        yield from difflib.unified_diff(old, new, "before", "after", lineterm="", n=2)
