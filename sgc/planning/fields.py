"""The order of a table's fields, row by row: greedy group recursion.

After "Optimizing LLM Queries in Relational Data Analytics Workloads" (Liu et al., MLSys 2025):
choose the value that gains most as the first field: the highest product of its squared length and
the number of its rows less one. Its rows go on without that column, the other rows with all
columns. Rows that share nothing more have the columns in one common order, those that save most
first. Counts are kept up to date instead of made anew, so a table takes about n log n for each pair
of columns.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgc.errors import counted
from sgc.ir.graph import Graph, Lit, Operand
from sgc.passes.changing.reorder_fields import Table
from sgc.planning.tree import n_chars, saved_chars
from sgc.runtime.executor.ops.handlers import as_text

# Each order is a program of its own; rows with a rarer order get the fixed order.
MAX_ORDERS = 64

Order = tuple[int, ...]
Cells = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class FieldOrders:
    """orders: for each row, the numbers of its fields. all_chars: of the table; saved_before,
    saved_after: those that adjacent rows share, before and after ordering."""

    fields: tuple[str, ...]
    orders: tuple[Order, ...]
    all_chars: int
    saved_before: int
    saved_after: int

    def report(self, n_shown: int = 4) -> list[str]:
        """A report of the gain, and of the orders that most rows have."""
        before, after = (
            saved / max(1, self.all_chars) for saved in (self.saved_before, self.saved_after)
        )
        counts = Counter(self.orders).most_common()
        lines = [
            f"fields reordered in {counted(len(counts), 'way')}: {before:.1%} of the table's "
            f"characters were shared, now {after:.1%}"
        ]
        for order, n_rows in counts[:n_shown]:
            names = ", ".join(self.fields[number] for number in order)
            lines.append(f"  {counted(n_rows, 'row')}: {names}")
        rest = counts[n_shown:]
        if rest:
            lines.append(f"  {sum(n for _, n in rest)} rows in {len(rest)} more ways")
        return lines


def order_fields(table: Table, graph: Graph, rows: Sequence[Mapping[str, Any]]) -> FieldOrders:
    """The best of three orders: the given one, one for all rows, greedy group recursion."""
    cells = table_cells(table, graph, rows)
    n_columns = len(table.fields)
    given = [tuple(range(n_columns))] * len(rows)
    fixed = [fixed_order(cells, n_columns)] * len(rows)
    grouped = bounded_orders(group_recursion(cells, n_columns), fixed)
    best = max((given, fixed, grouped), key=lambda orders: _saved(cells, orders))
    return FieldOrders(
        tuple(row.param for row in table.fields),
        tuple(best),
        sum(n_chars(tuple(row)) for row in cells),
        _saved(cells, given),
        _saved(cells, best),
    )


def table_cells(
    table: Table, graph: Graph, rows: Sequence[Mapping[str, Any]]
) -> list[tuple[str, ...]]:
    """Each row's fields as texts, labels and separators included."""
    defaults = {p.value.name: _literal(p.default) for p in graph.params if p.default is not None}
    found = []
    for row in rows:
        values = {**defaults, **row}
        texts = (
            f.label + as_text(values[f.param]) + f.close + table.separator for f in table.fields
        )
        found.append(tuple(texts))
    return found


def _literal(operand: Operand) -> Any:
    return operand.value if isinstance(operand, Lit) else operand


def fixed_order(cells: Cells, n_columns: int) -> Order:
    """One order for all rows: columns by how much rows with equal values save in them."""
    saved = [
        sum((n - 1) * len(text) for text, n in Counter(row[column] for row in cells).items())
        for column in range(n_columns)
    ]
    return tuple(sorted(range(n_columns), key=lambda column: -saved[column]))


def group_recursion(cells: Cells, n_columns: int) -> list[Order]:
    """An order of the columns for each row; bounded by the number of columns in depth."""
    rank = fixed_order(cells, n_columns)
    orders: list[Order] = [()] * len(cells)
    todo: list[tuple[list[int], Order, Order]] = [(list(range(len(cells))), rank, ())]
    while todo:
        rows, columns, before = todo.pop()
        left = dict.fromkeys(rows)
        if len(columns) > 1:
            for column, group in _groups(cells, left, columns):
                rest = tuple(other for other in columns if other != column)
                todo.append((group, rest, (*before, column)))
        for row in left:
            orders[row] = (*before, *columns)
    return orders


def _groups(cells: Cells, left: dict[int, None], columns: Order) -> list[tuple[int, list[int]]]:
    """Pairs of a column and the rows that share a value in it, the largest saving first; removes
    these rows from those left."""
    having: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row in left:
        for column in columns:
            having[column, cells[row][column]].append(row)
    counts = {key: len(rows) for key, rows in having.items()}

    def gain(key: tuple[int, str]) -> int:
        return (counts[key] - 1) * len(key[1]) ** 2

    place = {column: at for at, column in enumerate(columns)}
    heap = [(-gain(key), place[key[0]], rows[0]) for key, rows in having.items() if gain(key) > 0]
    heapq.heapify(heap)
    found = []
    while heap:
        loss, at, first = heapq.heappop(heap)
        column = columns[at]
        key = (column, cells[first][column])
        now = gain(key)
        if now <= 0:
            continue
        if now != -loss:  # some of its rows have gone to other groups
            heapq.heappush(heap, (-now, at, first))
            continue
        group = [row for row in having[key] if row in left]
        for row in group:
            del left[row]
            for other in columns:
                counts[other, cells[row][other]] -= 1
        found.append((column, group))
    return found


def bounded_orders(orders: Sequence[Order], fixed: Sequence[Order]) -> list[Order]:
    """The orders that most rows have; rows of rarer ones have the fixed order."""
    kept = {order for order, _ in Counter(orders).most_common(MAX_ORDERS - 1)}
    return [order if order in kept else fixed[row] for row, order in enumerate(orders)]


def _saved(cells: Cells, orders: Sequence[Order]) -> int:
    return saved_chars(
        [tuple(row[column] for column in order) for row, order in zip(cells, orders, strict=True)]
    )
