"""Receipts: what a pass did and where, recorded in the resulting graph.

A pass may explain itself (`Pass.explain`); otherwise the receipt names the source lines whose nodes
changed. Only `pipeline.py` calls this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from sgc.ir.graph import Graph, Lit, Loc, Node, Operand, Receipt
from sgc.ir.limits import MAX_DETAIL_CHARS, MAX_DETAILS
from sgc.passes.base import Pass


def receipt_of(row: Pass, before: Graph, after: Graph) -> Receipt:
    """The receipt of a pass that changed a graph or a called program."""
    explain = row.explain or changed_lines
    pairs = zip((before, *before.called), (after, *after.called), strict=True)
    details = [line for one, other in pairs if one is not other for line in explain(one, other)]
    return Receipt(
        row.name, row.preserves.value, row.doc, before.n_nodes, after.n_nodes, _bounded(details)
    )


def changed_lines(before: Graph, after: Graph) -> tuple[str, ...]:
    """The source lines whose nodes changed, as one line per file."""
    changed = _shapes(before) ^ _shapes(after)
    lines: dict[str, list[int]] = {}
    for loc in sorted({loc for loc, *_ in changed if loc}, key=lambda loc: (loc.file, loc.line)):
        lines.setdefault(loc.file, []).append(loc.line)
    return tuple(f"{file}:{', '.join(_ranges(found))}" for file, found in lines.items())


def _shapes(graph: Graph) -> set[tuple[Loc | None, str, Hashable, int]]:
    """The nodes of each line without the names of values; the last field counts equal nodes."""
    counted = Counter((node.loc, node.op, _literals(node)) for node in graph.nodes())
    return {(loc, op, literals, n) for (loc, op, literals), n in counted.items()}


def _literals(node: Node) -> Hashable:
    return tuple((name, _literal(operand)) for name, operand in node.fields)


def _literal(operand: Operand) -> Hashable:
    if isinstance(operand, tuple):
        return tuple(map(_literal, operand))
    return operand if isinstance(operand, Lit) else None


def _ranges(lines: list[int]) -> Iterator[str]:
    """Sorted numbers, with consecutive numbers as `first-last`."""
    numbers = sorted(set(lines))
    start = numbers[0]
    for number, following in zip(numbers, [*numbers[1:], 0], strict=True):
        if following != number + 1:
            yield str(start) if start == number else f"{start}-{number}"
            start = following


def _bounded(details: list[str]) -> tuple[str, ...]:
    """As many details as a file may hold, one line each; the last says how many are missing."""
    shown = [" ".join(line.split())[:MAX_DETAIL_CHARS] for line in details]
    if len(shown) > MAX_DETAILS:
        n_missing = len(shown) - MAX_DETAILS + 1
        shown = [*shown[: MAX_DETAILS - 1], f"and {n_missing} more"]
    return tuple(shown)
