"""`sgc opt -p hoist_prefix` with a model that proposes, or with rows that a move must stand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from sgc.errors import UsageError
from sgc.ir.graph import Graph
from sgc.passes.base import Pass, Preserves
from sgc.passes.changing.hoist_prefix import DOC, NAME
from sgc.passes.changing.movement import Outcome, by_rules, lines, move
from sgc.proposer.validation import Validation, validate
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import connect, resolve_backend
from sgc.runs.rows_file import InputRow, read_rows

MAX_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Hoisting:
    """What was asked for; `is_plain` where the pass does it alone."""

    proposer: str = "rules"
    engine: str | None = None
    rows: Path | None = None
    min_equal: float = 1.0

    @property
    def is_plain(self) -> bool:
        return self.proposer == "rules" and self.rows is None

    def check(self, names: tuple[str, ...] | None) -> None:
        """Raises UsageError where the options need the pass alone, or a validation."""
        if not self.is_plain and names != (NAME,):
            raise UsageError(
                "--proposer and --validate are for code movement alone", hint=f"-p {NAME}"
            )
        if self.is_plain and self.engine is not None:
            raise UsageError("--engine is for --proposer model and --validate")
        if self.rows is None and self.min_equal != 1.0:
            raise UsageError("--min-equal is for --validate")

    def decided(self, graph: Graph) -> Pass:
        """The pass as it was decided for this program; says how on stderr."""
        rows = read_rows(self.rows) if self.rows is not None else []
        with _endpoint(self.engine) as endpoint:
            if self.proposer == "model":
                from sgc.proposer.model import by_model

                proposer = by_model(endpoint)
            else:
                proposer = by_rules
            outcomes = {id(each): move(each, proposer) for each in (graph, *graph.called)}
            is_kept = not rows or self._stands(graph, outcomes, rows, endpoint)
        for outcome in outcomes.values():
            for line in lines(outcome):
                click.echo(line if is_kept else f"not done: {line}", err=True)

        def run(each: Graph) -> Graph:
            return outcomes[id(each)].graph if is_kept else each

        def explain(before: Graph, after: Graph) -> tuple[str, ...]:
            return tuple(lines(outcomes[id(before)]))

        return Pass(NAME, Preserves.NOTHING, run, DOC, explain)

    def _stands(
        self,
        graph: Graph,
        outcomes: dict[int, Outcome],
        rows: list[InputRow],
        endpoint: Endpoint,
    ) -> bool:
        """Whether enough rows give the same with all moves done."""
        from dataclasses import replace

        called = tuple(outcomes[id(each)].graph for each in graph.called)
        after = replace(outcomes[id(graph)].graph, called=called)
        if after == graph:
            return True
        found = validate(graph, after, rows, endpoint)
        is_enough = found.share_equal >= self.min_equal
        _say(found, is_enough, self.min_equal)
        return is_enough


def _say(found: Validation, is_enough: bool, least: float) -> None:
    verdict = "the move is kept" if is_enough else f"the move is rejected (--min-equal {least:g})"
    click.echo(f"validated: {found.n_equal} of {found.n_rows} rows equal; {verdict}", err=True)
    for each in found.differences[:MAX_SHOWN]:
        click.echo(
            f"  row {each.key}: {each.name} was {_cut(each.before)}, is {_cut(each.after)}",
            err=True,
        )


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


@contextlib.contextmanager
def _endpoint(uri: str | None) -> Iterator[Endpoint]:
    """The named engine; else the default one, which outlives this."""
    if uri is None:
        yield resolve_backend(None)
    else:
        with connect(uri) as endpoint:
            yield endpoint
