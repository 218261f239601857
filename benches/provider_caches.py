"""Provider caches: twenty shapes of programs, without a cache, the vendor's way, and by plan.

    python benches/provider_caches.py [--table] [--out benches/results/provider_caches.json]

Costs are of prompts, in tokens of plain input, at caches that follow the vendors' rules as far as
they are known (`tests/providers/cache_models.py`); no provider is asked. Counts do not depend on
the machine. --table prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from providers.cache_shapes import MODELS, SHAPES, measure  # noqa: E402

from sgc.runtime.executor.backends.providers.models.models import as_of  # noqa: E402


def rows() -> list[dict[str, Any]]:
    found = []
    for model in MODELS:
        for shape in SHAPES:
            cost = measure(shape, model)
            found.append(
                {
                    "cache": model,
                    "model": MODELS[model][0],
                    "shape": shape,
                    "requests": cost.bill.n_requests,
                    "plain": round(cost.plain),
                    "vendor": round(cost.vendor),
                    "placed": round(cost.placed),
                    "tokens": asdict(cost.bill),
                }
            )
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


def table(found: list[dict[str, Any]]) -> str:
    """A Markdown table with a row per shape and three costs per cache."""
    head = "| shape | requests | " + " | ".join(MODELS) + " |"
    lines = [head, "|---" * (len(MODELS) + 2) + "|"]
    for shape in SHAPES:
        own = [row for row in found if row["shape"] == shape]
        costs = [f"{row['plain']:,} / {row['vendor']:,} / **{row['placed']:,}**" for row in own]
        lines.append(f"| {shape} | {own[0]['requests']} | " + " | ".join(costs) + " |")
    return "\n".join(lines)


def plot(found: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(MODELS), figsize=(13, 6), sharey=True, layout="constrained"
    )
    for axis, model in zip(axes, MODELS, strict=True):
        own = [row for row in found if row["cache"] == model]
        for index, way in enumerate(("vendor", "placed")):
            places = [place + 0.4 * index for place in range(len(own))]
            axis.barh(places, [row[way] / row["plain"] for row in own], 0.38, label=way)
        axis.axvline(1, color="grey", linewidth=1)
        axis.set_title(f"{model} ({own[0]['model']})", fontsize=9)
        axis.set_xlabel("cost of prompts, no cache = 1")
    axes[0].set_yticks([place + 0.2 for place in range(len(SHAPES))], list(SHAPES), fontsize=8)
    axes[0].invert_yaxis()
    axes[0].legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true")
    out = ROOT / "benches/results/provider_caches.json"
    parser.add_argument("--out", type=Path, default=out)
    given = parser.parse_args()
    found = rows()
    result = {
        "command": "python benches/provider_caches.py",
        "machine": f"{platform.machine()}, Python {platform.python_version()}; no GPU, no network",
        "rules_as_of": as_of(),
        "rows": found,
    }
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    plot(found, given.out.with_suffix(".png"))
    if given.table:
        print(table(found))


if __name__ == "__main__":
    main()
