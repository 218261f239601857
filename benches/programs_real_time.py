"""Programs that arrive one by one, in real time: our engine with and without hints, and vLLM.

    python -P benches/programs_real_time.py --folder FOLDER [--model S] [--programs 150]
        [--loads 0.8,0.95] [--pool 6144] [--reps 2] [--peers sgc,untold,vllm] [--out FILE.json]

The programs are those of `program_load.py`, in Poisson arrivals, the same for all; each engine has
pages for as many tokens. Loads are shares of the rate at which the first four fifths of as many
programs end, by `untold`, that are all there at once. `untold`: our engine by `lpm`, told nothing.
vLLM runs in a Python of its own, SGC_PEER_VLLM (engine/README.md), driven by asyncio, as programs
without sgc would be. Engines take turns; seconds are from a program's arrival to its last reply.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parent / "engine"))

import models
from cases import probe
from peer_process import PeerProcess
from program_load import Live
from programs_of_load import Program, programs

DRIVERS = Path(__file__).resolve().parent / "engine" / "peers"
BLOCK = 32  # tokens, of vLLM's pages
TIMEOUT_S = 1800.0
MOST = 0.8  # of the programs: the last ones are few, and wait for their tools


def arriving(program: Program, number: int, rng: np.random.Generator) -> dict[str, Any]:
    """The program as drivers read it (`engine/arrivals.py`)."""
    live = Live(number, program, is_told=False)
    calls = []
    for each, call in enumerate(program.calls):
        live.open = set(range(each, len(program.calls)))
        calls.append({
            "after": call.after, "base": call.base, "n_out": call.n_out, "wait_s": call.wait_s,
            "new": rng.integers(3, 512, call.n_new).tolist(),
            "left": live.remaining[each], "n_kept": live.n_reusable(each),
        })  # fmt: skip
    return {"at_s": program.at_s, "beginning": program.beginning, "calls": calls}


def started(peer: str, model: str, folder: Path, pool: int, logs: Path) -> PeerProcess:
    driver, python = "sgc_engine.py", sys.executable
    policy = "program" if peer == "sgc" else "lpm"
    serve = ["--pool-tokens", str(pool), "--policy", policy]
    options: dict[str, Any] = {"serve": serve, "is_told": peer == "sgc"}
    if peer == "vllm":
        driver, python = "vllm_engine.py", os.environ["SGC_PEER_VLLM"]
        options = {"block_size": BLOCK, "engine": {"num_gpu_blocks_override": pool // BLOCK}}
    command = [python, "-P", str(DRIVERS / driver), "--model", str(folder)]
    process = PeerProcess([*command, "--options", json.dumps(options)], logs / f"{peer}.log")
    process.start(probe(model), TIMEOUT_S)
    return process


def times_of(peer: PeerProcess, seed: int, n: int, rate: float) -> list[float]:
    rng = np.random.default_rng(seed)
    todo = [arriving(each, number, rng) for number, each in enumerate(programs(seed, n, rate))]
    answer = peer.ask({"kind": "arrivals", "programs": todo}, TIMEOUT_S)
    times: list[float] = answer["times_s"]
    return times


def figures(times: list[float]) -> dict[str, float]:
    found = {
        "mean_s": np.mean(times),
        **{f"p{p}_s": np.percentile(times, p) for p in (50, 90, 99)},
    }
    return {name: round(float(value), 2) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="S")
    parser.add_argument("--programs", type=int, default=150)
    parser.add_argument("--loads", default="0.8,0.95")
    parser.add_argument("--pool", type=int, default=6144)
    parser.add_argument("--reps", type=int, default=2)
    parser.add_argument("--peers", default="sgc,untold,vllm")
    parser.add_argument("--folder", type=Path, required=True, help="of the models, and logs")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    folder = models.make(given.model, given.folder)
    names = given.peers.split(",")
    peers = {name: started(name, given.model, folder, given.pool, given.folder) for name in names}
    found: dict[str, dict[str, Any]] = {}
    try:
        at_once = times_of(peers["untold"], 99, given.programs, math.inf)
        rate = MOST * given.programs / float(np.quantile(at_once, MOST))
        for load in map(float, given.loads.split(",")):
            times: dict[str, list[float]] = {name: [] for name in names}
            for rep in range(given.reps):
                for name in names[rep % len(names) :] + names[: rep % len(names)]:
                    times[name] += times_of(peers[name], rep, given.programs, load * rate)
            rows: dict[str, Any] = {name: figures(seconds) for name, seconds in times.items()}
            found[f"{load:.0%}"] = {"programs_a_second": round(load * rate, 3), **rows}
            print(f"{load:.0%}, {load * rate:.3f} programs a second:", rows, flush=True)
    finally:
        for process in peers.values():
            process.stop()
    if given.out is not None:
        command = " ".join(["python -P benches/programs_real_time.py", *sys.argv[1:]])
        given.out.write_text(json.dumps({"command": command, "found": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
