"""The README's plot: how much quicker our engine is than each other one, from kept results.

    python -P benches/engine/overview.py [-o docs/images/peers.png]

It measures nothing: `peers.py` has measured, and the JSON says with which command and where.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benches" / "results"
# (results, model, [(workload, label)], the peers by their names in the JSON)
PANELS: tuple[tuple[str, str, dict[str, str], dict[str, tuple[str, ...]]], ...] = (
    (
        "engine_peers_zen4_M",
        "M",
        {
            "W1": "64 requests,\na shared prefix",
            "W2": "16 requests\nat once",
            "W3": "one stream",
            "W4": "8 chats\nof 4 turns",
        },
        {
            "vLLM": ("vllm",),
            "OpenVINO": ("openvino", "openvino primed"),
            "llama.cpp": ("llama.cpp", "llama.cpp-streams"),
        },
    ),
    (
        "engine_peers_zen4_w5_S",
        "S",
        {
            "essay_judge": "judge with\nbranches",
            "tree_of_thought": "tree of\nthought",
            "multi_chain": "5 chains",
            "few_shot_select": "choice of 4\nby score",
            "json_by_regex": "JSON\nby regex",
        },
        {"vLLM, asyncio": ("vllm",)},
    ),
)
TITLES = ("Tokens a second, a model of 387 M parameters", "Programs a second, a model of 8 M")
COLOURS = ("#4a7bd0", "#e08a1e", "#8a94a3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", default=str(ROOT / "docs" / "images" / "peers.png"))
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), width_ratios=(4, 5))
    for axis, panel, title in zip(axes, PANELS, TITLES, strict=True):
        draw(axis, *panel)
        axis.set_title(title, fontsize=10, loc="left")
    axes[0].set_ylabel("times the other's rate")
    figure.tight_layout()
    figure.savefig(parser.parse_args().output, dpi=110)


def draw(
    axis: Any, name: str, model: str, workloads: dict[str, str], peers: dict[str, tuple[str, ...]]
) -> None:
    """A group of bars a workload; of a peer with several ways, its quickest."""
    found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["summary"][model]
    width = 0.8 / len(peers)
    for number, (peer, ways) in enumerate(peers.items()):
        times = [min(found[w][way]["times"] for way in ways if way in found[w]) for w in workloads]
        places = [index + (number - (len(peers) - 1) / 2) * width for index in range(len(times))]
        bars = axis.bar(places, times, width * 0.92, label=peer, color=COLOURS[number])
        axis.bar_label(bars, [f"{each:.1f}" for each in times], fontsize=8, padding=1)
    axis.axhline(1, color="#1a1e24", linewidth=1)
    axis.set_xticks(range(len(workloads)), list(workloads.values()), fontsize=8)
    axis.set_ylim(0, 5.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=8, frameon=False, loc="upper left", ncols=3)


if __name__ == "__main__":
    main()
