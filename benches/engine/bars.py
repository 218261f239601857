"""Draws a table as a grouped bar chart, for benches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def draw(
    path: Path, title: str, groups: Sequence[str], series: Mapping[str, Sequence[float]], unit: str
) -> None:
    """series: for each name, a value for each group; unit: of the values, as the axis label."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    height = 0.8 / len(series)
    figure, axis = pyplot.subplots(figsize=(9, 0.6 + 0.22 * len(groups) * (len(series) + 1)))
    for i, (name, values) in enumerate(series.items()):
        at = [group + i * height for group in range(len(groups))]
        bars = axis.barh(at, values, height * 0.92, label=name)
        axis.bar_label(bars, fmt="%.3g", padding=2, fontsize=7)
    axis.set_yticks([g + 0.4 - height / 2 for g in range(len(groups))], groups)
    axis.invert_yaxis()
    axis.set_xlabel(unit)
    axis.set_title(title, fontsize=10)
    axis.margins(x=0.1)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=5, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
