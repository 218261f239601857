"""The rows of models with recurrent layers: which states each reads and writes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sgc.runtime.engine.model.forward import Row
from sgc.runtime.engine.requests.choices import Branch
from sgc.runtime.engine.requests.recurrence import Recurrence


def with_states(row: Row, run: Recurrence) -> list[Row]:
    """The row, cut after the tokens whose states are kept."""
    ends = [at - row.start for at, _ in run.kept]
    slots = [run.reads, *(slot for _, slot in run.kept), run.own]
    bounds = [0, *ends, len(row.tokens)]
    return [
        replace(_cut(row, bounds[i], bounds[i + 1]), reads=slots[i], writes=slots[i + 1])
        for i in range(len(ends) + 1)
    ]


def from_prompt(row: Row, branch: Branch, n_prompt: int, run: Recurrence) -> Row:
    """The row of a choice's branch, from the prompt's end on: states of its ancestors are not kept,
    so their tokens run again."""
    runs, step = [row.tokens], branch
    n_own = row.start - n_prompt - branch.depth
    runs.append(branch.tokens[:n_own])
    while step.parent is not None:
        step = step.parent
        runs.append(step.tokens)
    tokens = np.concatenate(runs[::-1])
    return replace(
        row, tokens=tokens, start=n_prompt, logits_at=row.logits_at + branch.depth + n_own,
        reads=run.own,
    )  # fmt: skip


def _cut(row: Row, start: int, end: int) -> Row:
    if start == 0 and end == len(row.tokens):
        return row
    at = row.logits_at
    return replace(
        row,
        tokens=row.tokens[start:end],
        start=row.start + start,
        pages=row.pages[: row.start + end],
        logits_at=at[(at >= start) & (at < end)] - start,
        places=None if row.places is None else row.places[:, start:end],
    )
