"""How large compiled programs are, and what compiling and checking them takes.

    python -P benches/compile_sizes.py [--reps 3] [--out FILE.json]

Counters and growing lists must give loops, whose nodes do not grow with the turns. CPU seconds of
the process, medians; the first compilation of a process, which loads modules, is left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `python -P` leaves it out
from long_program import desk

import sgc
from sgc.errors import SgcError
from sgc.programs.compiling import compile_function
from sgc.tracing.paths.exploration import Report
from sgc.tracing.tracer import trace

ROOT = Path(__file__).resolve().parent.parent


def chat(s, question: str):
    s += sgc.system("You answer briefly.")
    s += sgc.user(question)
    s += sgc.assistant(sgc.gen("answer", max_tokens=100))
    if s["answer"].strip().lower() == "unknown":
        s += sgc.user("Guess.")
        s += sgc.assistant(sgc.gen("answer", max_tokens=100))
    return s["answer"]


def growing(n: int) -> Callable[..., Any]:
    def program(s, question: str):
        notes = []
        s += question
        for _ in range(n):
            s += sgc.gen("note", stop="\n")
            notes.append(s["note"].strip())
        s += "\n".join(notes)

    return program


def diamonds(n: int) -> Callable[..., Any]:
    def program(s, question: str):
        score = 0
        s += question
        for _ in range(n):
            s += sgc.gen("said", stop="\n")
            if s["said"] == "yes":
                score += 1
            else:
                score -= 1
        s += f"score {score}"

    return program


def forked(n: int) -> Callable[..., Any]:
    def program(s, question: str):
        s += question
        forks = s.fork(n)
        for fork in forks:
            fork += sgc.gen("said", stop="\n")
            if "yes" in fork["said"]:
                fork += "Why?" + sgc.gen("why")
        forks.join()

    return program


SHAPES: dict[str, Any] = {
    "a chat with one branch": chat,
    "a list that grows, 10 turns": growing(10),
    "a list that grows, 50 turns": growing(50),
    "a list that grows, 400 turns": growing(400),
    "20 diamonds with a counter": diamonds(20),
    "40 diamonds with a counter": diamonds(40),
    "a fork of 100, a branch in each": forked(100),
    "200 lines": desk,
}


def measured(program: Any, n_reps: int) -> dict[str, Any]:
    function = program if isinstance(program, sgc.Function) else sgc.function(program)
    report, seconds = Report(), {"trace": [], "compile_and_check": []}
    for _ in range(n_reps):
        before = time.process_time()
        graph = trace(function, is_full=True, report=report)
        seconds["trace"].append(time.process_time() - before)
        before = time.process_time()
        compile_function(function, {}, is_full=True)
        seconds["compile_and_check"].append(time.process_time() - before)
    times = {f"{name}_s": round(statistics.median(each), 3) for name, each in seconds.items()}
    return {"nodes": graph.n_nodes, "runs": report.n_runs, "steps": report.work, **times}


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    try:
        import matplotlib
    except ModuleNotFoundError:
        print("no plot: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 3.5), layout="constrained")
    names = [row["program"] for row in rows]
    axes.barh(names, [row["compile_and_check_s"] for row in rows], label="compiled and checked")
    axes.barh(names, [row["trace_s"] for row in rows], height=0.4, label="of it traced")
    axes.set_xlabel("CPU time (s)")
    axes.invert_yaxis()
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "benches/results/compile_sizes.json")
    given = parser.parse_args()
    measured(chat, 1)
    rows = []
    for name, program in SHAPES.items():
        try:
            rows.append({"program": name, **measured(program, given.reps)})
        except SgcError as error:
            print(f"{name}: {error}")
            continue
        print(json.dumps(rows[-1]), flush=True)
    machine = {"python": platform.python_version()}
    machine["machine"] = platform.machine()
    given.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")
    plot(rows, given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
