"""Our engine against the engines people use, on the same models, in one run.

    python -P benches/engine/peers.py [--models S,M] [--workloads W1,W2,W3,W4,W5] [--reps 5]
        [--peers sgc,vllm,…] [--folder FOLDER] [--out FILE.json] [--options 'vllm={"…": …}']
        [--beside 1]

A peer is there if its environment variable names a Python that has it: SGC_PEER_VLLM,
SGC_PEER_OPENVINO or SGC_PEER_LLAMA_CPP; README.md says how to make them. All peers are loaded, one
after another, then answer in turn, so that each repetition's ratio to ours is of the same
moments of the machine. Prompts are new in each repetition and the same for all. Greedy, the
end token ignored, exact lengths. With `--beside 1` each is measured twice, once while another
process keeps a core busy. W5 is programs, and their JSON ends where its regular
expression does. A peer that fails is reported, and the rest goes on.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import models
from busy import busy_processes
from cases import OURS, PEERS, Case, Peer, Task, beside, cases, probe, tasks
from peer_process import PeerFailed, PeerProcess, PeerRefused
from shapes import SHAPES
from summary import plot, summary, table
from texts import N_WORDS_OF

DRIVERS = Path(__file__).resolve().parent / "peers"
LEFT_OUT = "W5 on transformers and llama.cpp: no client of programs"
RIVALS = {peer.name: peer.rival for peer in PEERS}


@dataclass
class Run:
    """The state of one call of this script."""

    arguments: argparse.Namespace
    missing: list[str] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)
    peers: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def note_failure(self, model: str, peer: str, where: str, error: Exception) -> None:
        self.failures.append({"model": model, "peer": peer, "where": where, "error": str(error)})
        print(f"{model}, {peer}, {where}: FAILED: {error}", file=sys.stderr)

    def report(self) -> dict[str, Any]:
        return {
            "command": "python -P benches/engine/peers.py " + " ".join(_shown(self.arguments)),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
            "machine": machine(),
            "left_out": [LEFT_OUT] if "W5" in self.arguments.workloads else [],
            "missing": self.missing,
            "failures": self.failures,
            "peers": self.peers,
            "summary": {model: self.summary_of(model) for model in self.results},
            "results": self.results,
        }

    def summary_of(self, model: str) -> dict[str, dict[str, Any]]:
        """A rival that is not there is our usual engine; a case beside busy processes is compared
        with ours beside them."""
        found = self.results[model]
        ran = {row["peer"]: row for row in found}
        rivals = {}
        for name, row in ran.items():
            rival = RIVALS[row["engine"]]
            rival = rival if rival in ran else OURS
            rivals[name] = beside(rival) if row["n_busy"] else rival
        return summary(found, rivals, {beside(name): name for name in ran})

    def save(self) -> None:
        out = self.arguments.out
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(self.report(), indent=1) + "\n", encoding="utf-8")


def run_model(run: Run, model: str) -> None:
    """Starts the peers on a model, measures them in turn, and stops them."""
    folder = models.make(model, run.arguments.folder)
    run.results[model] = []
    processes: dict[str, PeerProcess] = {}
    try:
        for peer in wanted_peers(run):
            started = start(run, model, peer, folder)
            if started is not None:
                processes[peer.name] = started
        for rep in range(-run.arguments.warmups, run.arguments.reps):
            repeat(run, model, processes, rep)
            run.save()
    finally:
        for process in processes.values():
            process.stop()


def wanted_peers(run: Run) -> list[Peer]:
    wanted = [peer for peer in PEERS if peer.name in run.arguments.peers]
    for peer in wanted:
        if not peer.python and peer.name not in run.missing:
            run.missing.append(peer.name)
            print(f"{peer.name} is missing: set {peer.variable}", file=sys.stderr)
    return [peer for peer in wanted if peer.python]


def start(run: Run, model: str, peer: Peer, folder: Path) -> PeerProcess | None:
    options = {**peer.options, **run.arguments.options.get(peer.name, {})}
    command = [str(peer.python), "-P", str(DRIVERS / peer.driver), "--model", str(folder)]
    log = run.arguments.folder / f"{peer.name}.log"
    process = PeerProcess([*command, "--options", json.dumps(options)], log)
    try:
        facts = process.start(probe(model), run.arguments.start_timeout)
    except (PeerFailed, PeerRefused) as error:
        run.note_failure(model, peer.name, f"start; see {log.name}", error)
        process.stop()
        return None
    run.peers.setdefault(peer.name, {})[model] = {**facts, "options": options}
    print(f"{model}, {peer.name}: first token {facts['first_token_s']:.1f} s", file=sys.stderr)
    return process


def repeat(run: Run, model: str, processes: dict[str, PeerProcess], rep: int) -> None:
    """Makes one repetition of every workload; the first peer rotates."""
    asked = run.arguments
    made = tasks(asked.workloads, asked.programs, model, rep, asked.rows, asked.divisor)
    for index, task in enumerate(made):
        ways = cases(task, list(processes))
        turn = (rep + index) % max(1, len(ways))
        for each in ways[turn:] + ways[:turn]:
            for case in each.pair(asked.beside, rep + index):
                if case.peer in processes:
                    measure(run, model, processes, rep, task, case)


def measure(
    run: Run, model: str, processes: dict[str, PeerProcess], rep: int, task: Task, case: Case
) -> None:
    """Measures one reply, which is kept unless it is a warm-up; stops a peer that failed."""
    try:
        command = {**task.command(case.variant), **case.extra}
        with busy_processes(case.n_busy):
            answer = processes[case.peer].ask(command, run.arguments.timeout)
    except (PeerFailed, PeerRefused) as error:
        run.note_failure(model, case.name, f"{task.name}, repetition {rep}", error)
        if isinstance(error, PeerFailed):
            processes.pop(case.peer).stop()
        return
    value = task.amount / answer["wall_s"]
    print(
        f"{model} {task.name} {rep} {case.name}: {value:.4g} {task.unit}, "
        f"{answer['cores']:.2f} cores, others {answer['others_cores']:.2f}",
        file=sys.stderr,
    )
    if rep >= 0:
        named: dict[str, Any] = {"workload": task.name, "peer": case.name, "rep": rep}
        named |= {"variant": case.variant, "engine": case.peer, "n_busy": case.n_busy}
        loaded = {"load_1_min": os.getloadavg()[0]}
        run.results[model].append({**named, "value": value, "unit": task.unit, **answer, **loaded})


def machine() -> dict[str, Any]:
    listed = subprocess.run(["lscpu", "-J"], capture_output=True, text=True, check=True).stdout
    fields = {row["field"].rstrip(":"): row["data"] for row in json.loads(listed)["lscpu"]}
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "cpu": fields.get("Model name"),
        "cores": os.cpu_count(),
        "has_amx_bf16": "amx_bf16" in fields.get("Flags", ""),
        "memory_gb": round(memory_gb, 1),
        "system": platform.system(),
    }


def _shown(arguments: argparse.Namespace) -> list[str]:
    shown = ["--models", ",".join(arguments.models), "--workloads", ",".join(arguments.workloads)]
    if "W5" in arguments.workloads:
        shown += ["--programs", ",".join(arguments.programs), "--rows", str(arguments.rows)]
    shown += ["--peers", ",".join(arguments.peers)]
    shown += ["--reps", str(arguments.reps), "--warmups", str(arguments.warmups)]
    if arguments.beside:
        shown += ["--beside", str(arguments.beside)]
    if arguments.divisor != 1:
        shown += ["--divisor", str(arguments.divisor)]
    return shown


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=_listed, default=["S", "M"])
    parser.add_argument("--workloads", type=_listed, default=[*SHAPES, "W5"])
    parser.add_argument("--peers", type=_listed, default=[p.name for p in PEERS if p.is_usual])
    parser.add_argument("--programs", type=_listed, default=list(N_WORDS_OF), help="of W5")
    parser.add_argument("--rows", type=int, default=64, help="of each program of W5")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--warmups", type=int, default=1, help="repetitions that are not counted")
    parser.add_argument("--beside", type=int, default=0, help="so many busy processes, and none")
    parser.add_argument("--divisor", type=int, default=1, help="so many times fewer chats, to try")
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--timeout", type=float, default=600.0, help="of a command, in seconds")
    parser.add_argument("--start-timeout", type=float, default=600.0)
    parser.add_argument("--options", type=_named_options, action="append", default=[])
    parser.add_argument("--out", type=Path, help="JSON; a plot is written beside it")
    arguments = parser.parse_args()
    arguments.options = dict(arguments.options)
    return arguments


def _listed(text: str) -> list[str]:
    return text.split(",")


def _named_options(text: str) -> tuple[str, dict[str, Any]]:
    name, _, options = text.partition("=")
    return name, json.loads(options)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the peers are stopped
    run = Run(parse_arguments())
    run.arguments.folder.mkdir(parents=True, exist_ok=True)
    for model in run.arguments.models:
        run_model(run, model)
    run.save()
    report = run.report()
    for model, found in report["summary"].items():
        print(f"model {model}\n{table(found)}")
    if run.arguments.out is not None and not find_spec("matplotlib"):
        print("matplotlib is not there, so there is no plot", file=sys.stderr)
    elif run.arguments.out is not None:
        with_results = {model: found for model, found in report["summary"].items() if found}
        plot(with_results, OURS, run.arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
