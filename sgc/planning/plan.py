"""The plan of a batch: its rows in depth-first order over the tree of their prompts.

Rows that begin alike follow one another, so that what they share is computed once and is done
with before the next group needs the room (SGLang paper, theorem 3.1). The prediction counts the
same tree, in characters: how tokens are cut is the model's matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sgc.errors import counted
from sgc.ir.graph import Graph
from sgc.planning.known import Known, Reader
from sgc.planning.tree import Key, common_chars, depth_first, n_chars, saved_chars
from sgc.runtime.executor.run.options import DEFAULT_MAX_TOKENS

# If an order saves less per row than this, a token or two, rows keep the given order.
MIN_SAVED_CHARS = 8
_END = "\0"  # of a prompt; the row's key then continues with its next prompt


@dataclass(frozen=True, slots=True)
class RowSize:
    """What a row needs, in characters and generated tokens.

    shared: known and in common with the row that starts before it; own: what else is known.
    """

    shared_chars: int
    own_chars: int
    generated_tokens: int


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """order: rows in the order to start them; sizes: by row.

    known_chars: of all rows' prompts, before anything is generated; distinct_chars: of them, those
    that have to be computed if everything shared is computed once.
    """

    order: tuple[int, ...]
    sizes: tuple[RowSize, ...]
    known_chars: int
    distinct_chars: int

    @property
    def predicted_hit_rate(self) -> float:
        """The share of the known text that need not be computed; 0 where nothing is known."""
        return 1 - self.distinct_chars / self.known_chars if self.known_chars else 0.0

    def report(self) -> str:
        """One line on what is known and shared."""
        return (
            f"{counted(len(self.order), 'row')} planned: of the {self.known_chars} characters of "
            f"prompts that are known now, {self.predicted_hit_rate:.1%} are shared"
        )


def plan_rows(
    graph: Graph, rows: Sequence[Mapping[str, Any]], max_tokens: int = DEFAULT_MAX_TOKENS
) -> BatchPlan:
    """The plan of rows of one program. max_tokens: of generations that name none."""
    reader = Reader(graph, max_tokens)
    return plan_known([reader.read(row) for row in rows])


def plan_known(rows: Sequence[Known]) -> BatchPlan:
    """The plan of rows of which this is known."""
    keys = _keys(rows)
    order = _order(keys)
    shared = [0] * len(rows)
    for before, row in pairwise(order):
        shared[row] = common_chars(keys[before], keys[row])
    every = [prompt for row in rows for prompt in row.prompts]
    known = sum(map(n_chars, every))
    return BatchPlan(
        tuple(order),
        tuple(map(_size, rows, shared)),
        known,
        known - saved_chars(every),
    )


def _order(keys: Sequence[Key]) -> Sequence[int]:
    is_worth_it = keys and _saved_by_order(keys) >= MIN_SAVED_CHARS * len(keys)
    return depth_first(keys) if is_worth_it else range(len(keys))


def _size(row: Known, shared: int) -> RowSize:
    """The text of a row's own tree: prompts of one row share as well."""
    own = sum(map(n_chars, row.prompts)) - saved_chars(row.prompts)
    shared = min(shared, own)
    return RowSize(shared, own - shared + row.later_chars, row.generated_tokens)


def _keys(rows: Sequence[Known]) -> list[Key]:
    """Each row's prompts as one key, the prompts that rows share most first."""
    n_most = max((len(row.prompts) for row in rows), default=0)
    columns = sorted(range(n_most), key=lambda column: -_saved_in(rows, column))
    return [
        tuple(
            piece
            for column in columns
            if column < len(row.prompts)
            for piece in (*row.prompts[column], _END)
        )
        for row in rows
    ]


def _saved_in(rows: Sequence[Known], column: int) -> int:
    return _saved_by_order([row.prompts[column] for row in rows if column < len(row.prompts)])


def _saved_by_order(keys: Sequence[Key]) -> int:
    """What adjacent rows save, beyond what all rows have in common."""
    in_all = common_chars(min(keys), max(keys))
    return saved_chars(keys) - (len(keys) - 1) * in_all
