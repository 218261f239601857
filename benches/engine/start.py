"""From an engine's start to its first token, and the most memory that loading took.

    python -P benches/engine/start.py [--models S,M] [--engines sgc,sgc-torch,sgc-int8] [--reps 5]
        [--folder FOLDER] [--out FILE.json]

The time is from the start of a driver (`peers/`), Python's own included, to the end of its first
reply, one token after 32; files are in the system's cache, byte code and kernels are compiled (the
first round does not count). `peak_mb` is the sum of the peaks of all of its processes.
`sgc-torch` is our engine without kernels of its own (SGC_CPU_KERNELS=off): packing weights may take
no more memory than it. Any peer of `peers.py` may be named. `others_cores` is what else ran.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import models
from cases import OURS, PEERS, Peer, probe
from peer_process import PeerProcess, peak_mb, tree
from peers import DRIVERS, machine

WITHOUT_KERNELS = "sgc-torch"
ENGINES = {peer.name: peer for peer in PEERS}
START_TIMEOUT_S = 600.0


def command_of(engine: str, folder: Path) -> list[str]:
    peer: Peer = ENGINES[OURS if engine == WITHOUT_KERNELS else engine]
    if not peer.python:
        sys.exit(f"{engine} is missing: set {peer.variable}")
    options = ["--model", str(folder), "--options", json.dumps(dict(peer.options))]
    setting = ["env", "SGC_CPU_KERNELS=off"] if engine == WITHOUT_KERNELS else []
    return [*setting, peer.python, "-P", str(DRIVERS / peer.driver), *options]


def started(engine: str, model: str, folder: Path) -> dict[str, Any]:
    """One start of an engine, which is then stopped."""
    process = PeerProcess(command_of(engine, folder / model), folder / f"{engine}.log")
    try:
        facts = process.start(probe(model), START_TIMEOUT_S)
        return {**facts, "peak_mb": peak_mb(tree(process.pid))}
    finally:
        process.stop()


def spread(values: list[float]) -> dict[str, float]:
    found = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="S,M")
    parser.add_argument("--engines", default=f"{OURS},{WITHOUT_KERNELS},sgc-int8")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report: dict[str, Any] = {
        "command": " ".join(["python -P benches/engine/start.py", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": {},
        "starts": {},
    }
    names = given.engines.split(",")
    for model in given.models.split(","):
        models.make(model, given.folder)
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for rep in range(-1, given.reps):
            for name in names:
                facts = started(name, model, given.folder)
                report["versions"][name] = facts["versions"]
                if rep >= 0:
                    rows[name].append(facts)
        fields = ("first_token_s", "peak_mb", "cpu_s", "others_cores")
        report["starts"][model] = {
            name: {field: spread([each[field] for each in found]) for field in fields}
            for name, found in rows.items()
        }
        for name, found in report["starts"][model].items():
            shown = ", ".join(f"{field} {found[field]['median']:g}" for field in fields)
            print(f"{model} {name:18} {shown}", flush=True)
    if given.out is not None:
        given.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
