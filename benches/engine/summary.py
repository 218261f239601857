"""Summarizes repetitions: medians, paired ratios with confidence intervals, a plot.

A result is one reply of a driver with its "workload", "peer" and "rep". `peers.py` calls it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

N_BOOTSTRAP = 10_000
N_COLUMNS = 4
Result = dict[str, Any]


def summary(
    results: list[Result], rivals: Mapping[str, str], alone: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """{workload: {peer: figures}}. rivals: which of ours each peer is compared with; "times": our
    value over the peer's, above 1 if we are faster. alone: what a case beside busy processes is
    without them; "kept": the share of its rate that it keeps."""
    found: dict[str, dict[str, Any]] = {}
    for workload in dict.fromkeys(each["workload"] for each in results):
        rows: dict[str, dict[int, Result]] = {}
        for each in results:
            if each["workload"] == workload:
                rows.setdefault(each["peer"], {})[each["rep"]] = each
        found[workload] = {
            peer: _figures(rows[peer], rows.get(rivals[peer], {}), peer == rivals[peer])
            | _kept(rows[peer], rows.get(alone.get(peer, ""), {}))
            for peer in sorted(rows, key=lambda name: (name not in rivals.values(), name))
        }
    return found


def _kept(beside: Mapping[int, Result], alone: Mapping[int, Result]) -> dict[str, Any]:
    ratios = [row["value"] / alone[rep]["value"] for rep, row in beside.items() if rep in alone]
    if not ratios:
        return {}
    kept, interval = paired_ratio(np.array(ratios))
    return {"kept": kept, "kept_95": interval}


def _figures(
    by_rep: Mapping[int, Result], ours: Mapping[int, Result], is_ours: bool
) -> dict[str, Any]:
    rows = list(by_rep.values())
    values = [row["value"] for row in rows]
    figures = {
        "unit": rows[0]["unit"],
        "median": _short(statistics.median(values)),
        "best": _short(max(values)),
        "all": [_short(value) for value in values],
        "peak_rss_mb": round(max(row["peak_rss_mb"] for row in rows)),
        "cores": _short(statistics.median(row["cores"] for row in rows)),
        "others_cores": _short(statistics.median(row["others_cores"] for row in rows)),
        "cached_share": _cached_share(rows),
        **_answers(rows),
    }
    pairs = [(ours[row["rep"]], row) for row in rows if row["rep"] in ours]
    if pairs and not is_ours:
        ratios = np.array([a["value"] / b["value"] for a, b in pairs])
        figures["times"], figures["times_95"] = paired_ratio(ratios)
        figures["same_first_ids"] = _agreement(pairs)
    return figures


def paired_ratio(ratios: np.ndarray) -> tuple[float, list[float]]:
    """The geometric mean of ratios within repetitions, and its 95 % bootstrap interval."""
    logs = np.log(ratios)
    draw = np.random.default_rng(0).integers(0, len(logs), (N_BOOTSTRAP, len(logs)))
    low, high = np.quantile(np.exp(logs[draw].mean(1)), [0.025, 0.975])
    return _short(np.exp(logs.mean())), [_short(low), _short(high)]


def _agreement(pairs: list[tuple[Result, Result]]) -> float | None:
    """The share of first ids that equal ours: the peers run the same model."""
    same = [
        a == b
        for ours, peer in pairs
        if ours["variant"] == peer["variant"]
        for a, b in zip(ours["first_ids"], peer["first_ids"], strict=True)
    ]
    return _short(sum(same) / len(same)) if same else None


def _cached_share(rows: list[Result]) -> float | None:
    if any(row["n_cached"] is None for row in rows):
        return None
    return _short(sum(row["n_cached"] for row in rows) / sum(row["n_prompt"] for row in rows))


def _answers(rows: list[Result]) -> dict[str, float]:
    """For answers under a constraint: the share of valid ones, and the mean tokens of each."""
    if "n_valid" not in rows[0]:
        return {}
    n_answers = sum(row["n_answers"] for row in rows)
    sums = {
        "valid_share": "n_valid",
        "characters_each": "n_chars",
        "tokens_each": "n_generated",
        "forced_each": "n_forced",
    }
    return {
        name: _short(sum(row.get(of, 0) for row in rows) / n_answers) for name, of in sums.items()
    }


def _short(value: Any) -> float:
    return float(f"{float(value):.4g}")


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The summary of a model as text."""
    lines = []
    for workload, peers in rows.items():
        for peer, figures in peers.items():
            times = ""
            if "times" in figures:
                low, high = figures["times_95"]
                times = f"   ours is {figures['times']:g} times it ({low:g} to {high:g})"
            if "kept" in figures:
                low, high = figures["kept_95"]
                times += f"   keeps {figures['kept']:.0%} ({low:.0%} to {high:.0%})"
            if "valid_share" in figures:
                times += f"   {figures['valid_share']:.0%} valid"
            lines.append(
                f"{workload:19} {peer:24} {figures['median']:>9g} {figures['unit']}{times}"
            )
    return "\n".join(lines)


def plot(models: dict[str, dict[str, dict[str, Any]]], ours: str, path: Path) -> None:
    """Plots a panel per workload and model, with a bar per peer; lines span the repetitions."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = [(m, w, peers) for m, found in models.items() for w, peers in found.items()]
    n_rows = -(-len(panels) // N_COLUMNS)
    figure, axes = pyplot.subplots(
        n_rows, N_COLUMNS, figsize=(4.2 * N_COLUMNS, 2.2 * n_rows), squeeze=False
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (model, workload, peers) in zip(axes.flat, panels, strict=False):
        _draw(axis, peers, ours)
        axis.set_title(f"{workload} on {model}", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def _draw(axis: Any, peers: dict[str, dict[str, Any]], ours: str) -> None:
    names = list(reversed(peers))
    medians = [peers[name]["median"] for name in names]
    pairs = list(zip(names, medians, strict=True))
    below = [median - min(peers[name]["all"]) for name, median in pairs]
    above = [max(peers[name]["all"]) - median for name, median in pairs]
    colors = ["#c8553d" if name == ours else "#4878a8" for name in names]
    bars = axis.barh(names, medians, color=colors, xerr=[below, above], ecolor="#333333")
    axis.bar_label(bars, fmt="%.4g", padding=3)
    axis.set_xlabel(peers[names[0]]["unit"])
    axis.margins(x=0.25)
    axis.spines[["top", "right"]].set_visible(False)
