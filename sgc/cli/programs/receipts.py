"""The receipts of a program: what its passes did, their predicted savings, and measurements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sgc.cli.output.tables import count, difference, dollars, table
from sgc.ir.graph import Receipt
from sgc.predict.dry.totals import Total, Totals
from sgc.predict.gains import Gain

_COUNTS = (
    ("requests", "requests"),
    ("prompt", "prompt_tokens"),
    ("cached", "cached_tokens"),
    ("written", "cache_written_tokens"),
    ("computed", "computed_tokens"),
    ("generated", "completion_tokens"),
)


def receipts(rows: Sequence[Receipt], found: Sequence[Gain] = ()) -> Iterator[str]:
    """A table with a row per pass, with its predicted savings if known, followed by its details."""
    if not rows:
        return
    heads = ["pass", "preserves", "nodes"]
    cells = [
        [each.pass_name, each.preserves, f"{each.nodes_before} to {each.nodes_after}"]
        for each in rows
    ]
    if found:
        names = [pair for pair in _COUNTS if pair[0] not in ("cached", "written")]
        heads += [head for head, _ in names]
        is_billed = any(gain.before.cost_usd is not None for gain in found)
        heads += ["cost"] if is_billed else []
        for row, gain in zip(cells, found, strict=True):
            row += [difference(getattr(gain.before, n), getattr(gain.after, n)) for _, n in names]
            row += [_money(gain)] if is_billed else []
    lines = list(table([heads, *cells], n_left=3))
    yield lines[0]
    for line, receipt in zip(lines[1:], rows, strict=True):
        yield line
        yield from (f"  {detail}" for detail in receipt.details)


def _money(gain: Gain) -> str:
    saved = (gain.after.cost_usd or 0.0) - (gain.before.cost_usd or 0.0)
    return f"{'-' if saved < 0 else '+'}${abs(saved):.2g}" if saved else ""


def totals(predicted: Totals, measured: Totals | None) -> Iterator[str]:
    """A table of predicted sums, by generation and in total, with measured ones below each."""
    shown = [predicted, *([measured] if measured is not None else [])]
    is_billed = any(each.total.cost_usd is not None for each in shown)
    heads = ["generation", "", *[head for head, _ in _COUNTS], *(["cost"] if is_billed else [])]
    keys = dict.fromkeys(key for each in shown for key, _ in each.rows())
    rows = [heads]
    sums = [
        (f"{key.where} {key.name or key.kind}".strip(), [e.by_key.get(key, Total()) for e in shown])
        for key in sorted(keys)
    ]
    for name, found in (*sums, ("all", [each.total for each in shown])):
        labels = zip((name, ""), ("predicted", "measured"), found, strict=False)
        rows += [[head, label, *_cells(total, is_billed)] for head, label, total in labels]
    yield from table(rows, n_left=2)
    if measured is not None and measured.wall_s is not None:
        yield f"measured from the first request to the last reply: {measured.wall_s:.2f} s"


def _cells(total: Total, is_billed: bool) -> list[str]:
    found = [count(getattr(total, name)) for _, name in _COUNTS]
    return [*found, dollars(total.cost_usd)] if is_billed else found
