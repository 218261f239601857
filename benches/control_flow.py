"""What control flow costs: compiling programs that decide, and running them either way.

    python -P benches/control_flow.py [--runs 300] [--rounds 7] [--out FILE.json]

The model is instant (scripted replies that lead once around every loop), so what is left is this
package's own CPU time. Compiling is timed without its check. Rounds are interleaved; medians.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sgc.programs.function import Function
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.run.options import RunOptions

ROOT = Path(__file__).resolve().parent.parent
REPLIES: dict[str, list[str]] = {
    "react": ["I look it up.", " Peru", "I need a sum.", " 2 + 2", "I can answer now.", "4"],
    "router": ["one and one", "2"],
    "json_retry": ["none", "{", '{"name": "Ada"}'],
    "tree_of_thought": ["a", "b", "c", "1", "2", "3"],
    "self_consistency": ["a", "1", "b", "2", "c", "3", "d", "3"],
}
ARGUMENT = {"json_retry": "text"}


def load(name: str) -> Function:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    function: Function = getattr(module, name)
    return function


def endpoint(replies: list[str]) -> Endpoint:
    """An endpoint that cycles through replies, and picks the second choice."""
    n_asked = 0

    def reply(prompt: Any, sampling: Any) -> str:
        nonlocal n_asked
        n_asked += 1
        return replies[(n_asked - 1) % len(replies)]

    return Endpoint(ScriptedBackend(reply, lambda prompt, choices: 1 % len(choices)))


def cpu_s(work: Callable[[], Any], n: int) -> float:
    """CPU seconds of the whole process per call."""
    before = time.process_time()
    for _ in range(n):
        work()
    return (time.process_time() - before) / n


def measure(name: str, n_runs: int, n_rounds: int) -> dict[str, Any]:
    function, replies = load(name), REPLIES[name]
    arguments = {ARGUMENT.get(name, "question"): "What is it?"}
    options = RunOptions(seed=1)
    function.compile(check=False)  # fills the caches of the process
    compile_s = [cpu_s(lambda: function.compile(check=False), 1) for _ in range(n_rounds)]
    program = function.compile()
    ways: dict[str, Any] = {"interpreted": function, "compiled": program}
    times: dict[str, list[float]] = {way: [] for way in ways}
    n_requests = {}
    for way, runner in ways.items():
        result = runner.run_once(arguments, options, endpoint(replies))
        n_requests[way] = result.stats.requests
    assert n_requests["compiled"] == n_requests["interpreted"]
    for _ in range(n_rounds):
        for way, runner in ways.items():
            run = runner.run_once
            times[way].append(cpu_s(lambda: run(arguments, options, endpoint(replies)), n_runs))  # noqa: B023
    medians = {way: statistics.median(seconds) for way, seconds in times.items()}
    ratios = [a / b for a, b in zip(times["interpreted"], times["compiled"], strict=True)]
    return {
        "program": name,
        "compile_ms": 1e3 * statistics.median(compile_s),
        "blocks": len(program.graph.blocks),
        "nodes": program.graph.n_nodes,
        "requests_a_run": n_requests["compiled"],
        "us_a_request": {way: 1e6 * s / n_requests[way] for way, s in medians.items()},
        "interpreted_to_compiled": statistics.median(ratios),
    }


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 3.5), layout="constrained")
    for index, way in enumerate(("interpreted", "compiled")):
        places = [place + 0.4 * index for place in range(len(rows))]
        axes.bar(places, [row["us_a_request"][way] for row in rows], 0.38, label=way)
    axes.set_xticks([place + 0.2 for place in range(len(rows))], [row["program"] for row in rows])
    axes.set_ylabel("CPU time a request (µs)")
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=ROOT / "benches/results/control_flow.json")
    given = parser.parse_args()
    rows = []
    for name in REPLIES:
        rows.append(measure(name, given.runs, given.rounds))
        print(json.dumps(rows[-1]), flush=True)
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    given.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")
    plot(rows, given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
