"""Puts the fields of a table-shaped prompt in another order; the prompt changes.

A table is the longest run of fields in one stream before any generation. A field is a short label,
an argument and a closing text, with the same separator between fields (lines, commas). Label and
closing text move with their field; the text before and after the table stays. The best order
depends on the rows (`sgc/planning/fields.py`), so there is a pass for each order, in no pipeline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sgc.ir.analysis.dependencies import consumed
from sgc.ir.graph import Graph, Node, Ref
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.appended import appended_value, constant_text, is_one_of
from sgc.passes.facts.text_runs import text_runs, with_runs

SEPARATORS = ("\n\n", ",\n", "\n", "; ", ", ", " | ", "\t")
MAX_LABEL_CHARS = 80
_SENTENCE_ENDS = ("\n", ". ", "? ", "! ")
_KNOWN = ("stream", "const", "append", "role_begin", "role_end", "fork")


@dataclass(frozen=True, slots=True)
class TableField:
    """A field: its label, the program's parameter, and its closing text."""

    label: str
    param: str
    close: str


@dataclass(frozen=True, slots=True)
class Table:
    """Fields between a head and a tail; together they are the text of `nodes`, a chain."""

    nodes: tuple[Node, ...]
    head: tuple[str | Ref, ...]
    fields: tuple[TableField, ...]
    separator: str
    tail: tuple[str | Ref, ...]

    def parts(self, order: Sequence[int]) -> list[str | Ref]:
        """The texts and parameters, with the fields in this order."""
        parts: list[str | Ref] = [*self.head]
        for place, number in enumerate(order):
            row = self.fields[number]
            parts += [self.separator] if place else []
            parts += [row.label, Ref(row.param), row.close]
        return [*parts, *self.tail]


def reorder_fields(order: tuple[int, ...]) -> Pass:
    """The pass that reorders the fields of a program's table. order: their old indexes."""

    def run(graph: Graph) -> Graph:
        table = find_table(graph)
        is_moved = table is not None and order != tuple(range(len(table.fields)))
        return _rewritten(graph, table, order) if is_moved and table is not None else graph

    shown = ", ".join(map(str, order))
    return Pass("reorder_fields", Preserves.NOTHING, run, f"fields of a table in order {shown}")


def find_table(graph: Graph) -> Table | None:
    """The table with the most fields; None if no two fields are adjacent."""
    tables = [table for chain in _chains(graph) if (table := _table(chain)) is not None]
    return max(tables, key=lambda table: len(table.fields), default=None)


# -- finding ------------------------------------------------------------------------------------


def _chains(graph: Graph) -> list[list[Node]]:
    """Runs of constants and parameters in the entry block, in front of any generation."""
    params = {param.value.name for param in graph.params}
    n_uses = Counter(name for node in graph.nodes() for name in node.refs())
    entry = graph.blocks[0]
    generated: set[str] = set()
    for node in entry.nodes:
        if node.op not in _KNOWN or not generated.isdisjoint(consumed(node)):
            generated.update(value.name for value in node.results)

    def is_known(node: Node) -> bool:
        return constant_text(node) is not None or is_one_of(appended_value(node), params)

    runs = (run for run, _ in text_runs(entry, n_uses) if generated.isdisjoint(consumed(run[0])))
    parts = (part for run in runs for part in groupby(run, is_known))
    return [list(part) for is_all_known, part in parts if is_all_known]


def _param(node: Node) -> str | None:
    """The name of the appended value, if it has one."""
    value = dict(node.fields).get("value")
    return value.name if isinstance(value, Ref) else None


def _table(chain: list[Node]) -> Table | None:
    texts, params = [""], list[str]()
    for node in chain:
        if (param := _param(node)) is not None:
            params.append(param)
            texts.append("")
        else:
            texts[-1] += node.text("text")
    if len(params) < 2:
        return None
    runs = [_longest_run(texts, separator) for separator in SEPARATORS]
    first, last = max(runs, key=lambda run: run[1] - run[0])
    separator = SEPARATORS[runs.index((first, last))]
    return _cut(chain, texts, params, first, last, separator)


def _longest_run(texts: Sequence[str], separator: str) -> tuple[int, int]:
    """The first and last parameter of the longest run with the separator between all of them."""
    best, first = (0, 0), 0
    for between in range(1, len(texts) - 1):
        _, found, label = texts[between].partition(separator)
        if not found or not _is_label(label):
            first = between
        elif between - first > best[1] - best[0]:
            best = (first, between)
    return best


def _is_label(text: str) -> bool:
    return bool(text.strip()) and len(text) <= MAX_LABEL_CHARS and "\n" not in text.rstrip("\n")


def _cut(
    chain: list[Node], texts: list[str], params: list[str], first: int, last: int, separator: str
) -> Table | None:
    """The table from the first to the last parameter, without parameters whose label or end is
    unclear."""
    labels = [texts[at].partition(separator)[2] for at in range(first + 1, last + 1)]
    is_line = all(label.endswith("\n") for label in labels)
    head, label = _split_head(texts[first], separator, is_line, is_all=first == 0)
    if not _is_label(label) and first < last:
        head, _, label = texts[first + 1].partition(separator)
        head, first, labels = head + separator, first + 1, labels[1:]
    closes = [texts[at + 1].partition(separator)[0] for at in range(first, last)]
    close, tail = _split_tail(texts[last + 1], separator) if any(closes) else ("", texts[last + 1])
    if any(closes) and not close and last > first:  # the last field's closing text is unknown
        last -= 1
        closes, close = closes[:-1], closes[-1]
        tail = texts[last + 1][len(close) :]
    if first >= last:
        return None
    labels = [label, *labels[: last - first]]
    rows = zip(labels, params[first : last + 1], [*closes, close], strict=True)
    return Table(
        tuple(chain),
        (*_parts(texts[:first], params[:first]), head),
        tuple(TableField(*row) for row in rows),
        separator,
        (tail, *_parts(texts[last + 2 :], params[last + 1 :], params_first=True)),
    )


def _parts(
    texts: Sequence[str], params: Sequence[str], params_first: bool = False
) -> list[str | Ref]:
    pairs = zip(texts, map(Ref, params), strict=True)
    return [part for pair in pairs for part in (pair[::-1] if params_first else pair)]


def _split_head(text: str, separator: str, is_line: bool, is_all: bool) -> tuple[str, str]:
    """The text before the table, and the first field's label: its line or its sentence.

    is_line: labels end their lines; is_all: nothing comes before the text.
    """
    shown = text.removesuffix("\n") if is_line else text
    ends = [shown.rfind(end) + len(end) for end in (separator, *_SENTENCE_ENDS) if end in shown]
    at = max(ends, default=0 if is_all else len(text))
    return text[:at], text[at:]


def _split_tail(text: str, separator: str) -> tuple[str, str]:
    """The closing text of the last field, and the text after the table."""
    ends = [at for end in (separator, "\n") if (at := text.find(end)) >= 0]
    at = min(ends, default=len(text) if len(text) <= MAX_LABEL_CHARS else 0)
    return text[:at], text[at:]


# -- rewriting ----------------------------------------------------------------------------------


def _rewritten(graph: Graph, table: Table, order: Sequence[int]) -> Graph:
    assert sorted(order) == list(range(len(table.fields))), order
    appends = {appended_value(node): node for node in table.nodes}
    parts = [appends[p] if isinstance(p, Ref) else p for p in _joined(table.parts(order))]
    return with_runs(graph, [(table.nodes, parts)])


def _joined(parts: Sequence[str | Ref]) -> list[str | Ref]:
    """Joins adjacent texts, and drops empty ones."""
    found: list[str | Ref] = []
    for is_text, group in groupby(parts, lambda part: isinstance(part, str)):
        if not is_text:
            found += group
        elif text := "".join(map(str, group)):
            found.append(text)
    return found
