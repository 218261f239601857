"""Plots what `scale.py` wrote, medians over seeds: hits, and programs a second over round robin's.

python -P benches/fleet/plot.py --out benches/results/scale.png FILE.json…   (needs matplotlib)
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

COLOURS = {
    "sgc": "#1f5fa8", "consistent": "#d1772b", "cache aware": "#5b9a4c", "least loaded": "#8a63a8",
    "round robin": "#777777", "one cache": "#000000",
}  # fmt: skip
NAMES = {"one cache": "one cache for all (optimum)"}


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument(
        "--titles", default="", help="of the files' rows of panels, by commas; their names"
    )
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    n = len(args.files)
    titles = args.titles.split(",") if args.titles else [file.stem for file in args.files]
    if len(titles) != n:
        parser.error(f"--titles names {len(titles)} rows of panels for {n} files")
    figure, axes = pyplot.subplots(n, 2, figsize=(10, 3.4 * n), squeeze=False)
    for (hits, speed), file, title in zip(axes, args.files, titles, strict=True):
        found = medians(json.loads(file.read_text())["rows"])
        draw(hits, found, lambda row, _: row["hits"])
        draw(speed, found, lambda row, base: row["programs_per_s"] / base["programs_per_s"])
        hits.set_ylabel(f"{title}\nprompt tokens found cached")
        speed.set_ylabel("programs a second, of round robin's")
        hits.set_ylim(0, 1)
        for each in (hits, speed):
            each.set_xlabel("engines (simulated)")
    lines = {line.get_label(): line for row in axes for line in row[1].get_lines()}
    figure.legend(lines.values(), lines, ncol=len(lines), loc="lower center", frameon=False)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(args.out, dpi=110)


def medians(rows: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, float]]:
    """By policy and number of engines."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["policy"], row["engines"]), []).append(row)
    return {
        key: {name: statistics.median(row[name] for row in each)
              for name in ("hits", "programs_per_s")}
        for key, each in found.items()
    }  # fmt: skip


def draw(axis: Any, found: dict[tuple[str, int], dict[str, float]], value: Any) -> None:
    for policy, colour in COLOURS.items():
        points = [(n, row) for (name, n), row in found.items() if name == policy]
        if not points:
            continue
        drawn = [(n, value(row, found["round robin", n])) for n, row in sorted(points)]
        style = "--" if policy == "one cache" else "-"
        axis.plot(*zip(*drawn, strict=True), style, marker="o", markersize=3.5, color=colour,
                  label=NAMES.get(policy, policy))  # fmt: skip
    axis.set_xscale("log", base=2)
    axis.set_xticks([2, 8, 64, 256, 1000], ["2", "8", "64", "256", "1000"])
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
