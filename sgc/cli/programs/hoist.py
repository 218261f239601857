"""`sgc opt -p hoist_prefix` with a model as proposer, or with validation on rows."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import click

from sgc.errors import UsageError
from sgc.ir.graph import Graph
from sgc.passes.base import Pass, Preserves
from sgc.passes.changing.hoist_prefix import DOC, NAME
from sgc.passes.changing.movement.move import lines, move
from sgc.passes.changing.movement.rule import plan
from sgc.proposer.validation import validate
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import connect, resolve_backend
from sgc.runs.rows_file import InputRow, read_rows

MAX_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Hoisting:
    """The options of code movement; `is_plain` if the ordinary pass is enough."""

    proposer: str = "rules"
    engine: str | None = None
    rows: Path | None = None
    min_equal: float = 1.0

    @property
    def is_plain(self) -> bool:
        return self.proposer == "rules" and self.rows is None

    def check(self, names: tuple[str, ...] | None) -> None:
        """Raises UsageError for options that need the pass alone, or another option."""
        if not self.is_plain and names != (NAME,):
            raise UsageError(
                "--proposer and --validate are for code movement alone", hint=f"-p {NAME}"
            )
        if self.is_plain and self.engine is not None:
            raise UsageError("--engine is for --proposer model and --validate")
        if self.rows is None and self.min_equal != 1.0:
            raise UsageError("--min-equal is for --validate")

    def decided(self, graph: Graph) -> Pass:
        """The pass with the moves decided for this program; reports them on stderr."""
        from sgc.proposer.model import by_model

        rows = read_rows(self.rows) if self.rows is not None else []
        # The default engine is not closed here.
        opened = connect(self.engine) if self.engine else nullcontext(resolve_backend(None))
        with opened as endpoint:
            proposer = by_model(endpoint) if self.proposer == "model" else plan
            outcomes = {id(each): move(each, proposer) for each in (graph, *graph.called)}
            called = tuple(outcomes[id(each)].graph for each in graph.called)
            after = replace(outcomes[id(graph)].graph, called=called)
            is_kept = not rows or after == graph or self._is_validated(graph, after, rows, endpoint)
        for line in (line for outcome in outcomes.values() for line in lines(outcome)):
            click.echo(line if is_kept else f"not done: {line}", err=True)

        def run(each: Graph) -> Graph:
            return outcomes[id(each)].graph if is_kept else each

        def explain(before: Graph, after: Graph) -> tuple[str, ...]:
            return tuple(lines(outcomes[id(before)]))

        return Pass(NAME, Preserves.NOTHING, run, DOC, explain)

    def _is_validated(
        self, graph: Graph, after: Graph, rows: list[InputRow], endpoint: Endpoint
    ) -> bool:
        """Whether enough rows return the same after all moves."""
        found = validate(graph, after, rows, endpoint)
        n_equal = len(rows) - len({difference.key for difference in found})
        is_enough = n_equal >= self.min_equal * len(rows)
        verdict = "kept" if is_enough else f"rejected (--min-equal {self.min_equal:g})"
        click.echo(
            f"validated: {n_equal} of {len(rows)} rows equal; the move is {verdict}", err=True
        )
        for each in found[:MAX_SHOWN]:
            was, now = _cut(each.before), _cut(each.after)
            click.echo(f"  row {each.key}: {each.name} was {was}, is {now}", err=True)
        return is_enough


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
