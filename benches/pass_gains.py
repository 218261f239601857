"""What each pass saves, alone and together: examples and the paper's workloads on the real engine.

    python benches/pass_gains.py [--only TEXT] [--reps 3] [--out FILE.json]
        [--load 8] [--width 24] [--pool 4096] [--model FOLDER]

Every workload is run at -O0, with each pass alone, at -O1 and at -O2, each time on an engine whose
cache has been emptied, in turn; rows all at once. Counts are exact (the greedy runs repeat
themselves); seconds are the median of the repetitions. Passes for what each request costs
(`fuse_calls`) are run through the HTTP face as a provider's client would. Passes that change
nothing in any workload are told too. --load: then, so many runs of each workload together on an
engine with a small pool (`passes/under_load.py`), by the model of --model.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "passes"))

from under_load import Load, under_load
from workloads import Workload, workloads

import sgc
from sgc.ir.graph import Graph
from sgc.passes.facts.kept_results import keep
from sgc.passes.pipeline import LEVELS, PASSES, optimize
from sgc.programs.program import Program
from sgc.runtime.engine.launch import EmbeddedEngine

BILLED = {"fuse_calls"}  # passes that save only if each request is billed with its prompt
LEVEL_NAMES = {"-O0": 0, "-O1": 1, "-O2": 2}


@dataclass(frozen=True)
class Counts:
    """Sums over a workload's rows; wall_s: the time of the whole batch."""

    requests: int
    prompt_tokens: int
    computed_tokens: int
    generated_tokens: int
    wall_s: float

    @property
    def hit_rate(self) -> float:
        return 1 - self.computed_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


def configurations(is_billed: bool) -> Iterator[tuple[str, Callable[[Graph], Graph]]]:
    """Names, and functions that make the graph; only `hoist_prefix` changes prompts."""
    names = [name for name in PASSES if (name in BILLED) == is_billed]
    for level, number in LEVEL_NAMES.items():
        yield level, lambda graph, number=number: optimize(graph, number)
    for name in names:
        yield name, lambda graph, name=name: optimize(graph, names=(name,))


def run(workload: Workload, graph: Graph, endpoint: Any) -> Counts:
    program = Program(graph, level=0)  # without sharing at run time, to show the pass alone
    start_s = time.perf_counter()
    states = program.run_batch(
        workload.rows, backend=endpoint, seed=1, temperature=0, order="given",
        allow_tools=list(workload.tools) or None,
    )  # fmt: skip
    wall_s = time.perf_counter() - start_s
    stats = [state.result().stats for state in states]
    return Counts(
        sum(each.requests for each in stats),
        sum(each.prompt_tokens for each in stats),
        sum(each.computed_tokens for each in stats),
        sum(each.completion_tokens for each in stats),
        wall_s,
    )


def measure(
    workload: Workload,
    graphs: dict[str, Graph],
    flush: Callable[[], object],
    endpoint: Any,
    reps: int,
) -> dict[str, dict[str, Any]]:
    """The figures of each configuration; those with the graph of -O0 are not run again."""
    plain = graphs["-O0"]
    taken: dict[str, list[Counts]] = {}
    for _ in range(reps):
        for name, graph in graphs.items():
            if name == "-O0" or graph != plain:
                flush()
                taken.setdefault(name, []).append(run(workload, graph, endpoint))
    found: dict[str, dict[str, Any]] = {}
    for name in graphs:
        if name in taken:
            walls = [each.wall_s for each in taken[name]]
            last = taken[name][-1]
            row = {**asdict(last), "hit_rate": round(last.hit_rate, 4)}
            found[name] = {**row, "wall_s": round(statistics.median(walls), 4)}
            found[name]["walls_s"] = [round(each, 4) for each in walls]
        else:
            found[name] = {"unchanged": True}
    return found


def narrowed(workload: Workload, graph: Graph) -> Graph:
    """The program with only the results that the workload keeps."""
    if workload.keep == "all":
        return graph
    return keep(graph, workload.keep)


def graphs_of(workload: Workload, is_billed: bool) -> dict[str, Graph]:
    plain = workload.function.compile(opt_level=0, check=False, **workload.bind).graph
    plain = narrowed(workload, plain)
    return {name: make(plain) for name, make in configurations(is_billed)}


def report(found: dict[str, dict[str, dict[str, Any]]]) -> None:
    for workload, rows in found.items():
        plain = rows["-O0"]
        print(f"{workload}: -O0 {_shown(plain)}")
        for name, row in rows.items():
            if name != "-O0" and "unchanged" not in row:
                print(f"    {name:18} {_shown(row)}{_ratio(plain, row)}")
    every = {name for rows in found.values() for name in rows}
    idle = [n for n in sorted(every) if all("unchanged" in rows.get(n, {"unchanged": 1})
                                            for rows in found.values())]  # fmt: skip
    print("changed no program here:", ", ".join(idle) or "none")


def _shown(row: dict[str, Any]) -> str:
    return (
        f"{row['requests']} requests, {row['computed_tokens']} computed of "
        f"{row['prompt_tokens']} prompt tokens, {row['generated_tokens']} generated, "
        f"{row['wall_s']:.3f} s"
    )


def _ratio(plain: dict[str, Any], row: dict[str, Any]) -> str:
    return f"; {plain['wall_s'] / row['wall_s']:.2f} times as fast" if row["wall_s"] else ""


def plot(found: dict[str, dict[str, dict[str, Any]]], path: Path) -> None:
    """Plots the ratios of -O0 to -O2 in counts and seconds, with a bar per workload."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed")
        return

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = {"requests": "requests", "computed_tokens": "computed prompt tokens", "wall_s": "time"}
    names = [name for name, rows in found.items() if "unchanged" not in rows["-O2"]][::-1]
    size = (13, 0.32 * len(names) + 1.6)
    figure, axes = pyplot.subplots(1, len(shown), figsize=size, sharey=True)
    for axis, (field, label) in zip(axes, shown.items(), strict=True):
        values = [found[name]["-O0"][field] / found[name]["-O2"][field] for name in names]
        bars = axis.barh(names, values, color="#4878a8")
        axis.bar_label(bars, fmt="%.2f", padding=3)
        axis.axvline(1, color="#888888", linewidth=0.8)
        axis.set_xlabel(label)
        axis.margins(x=0.15, y=0.02)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle("-O0 divided by -O2: 1 is no gain", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def loads_of(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    todo = [each for each in workloads() if arguments.only in each.name]
    graphs = {}
    for each in todo:
        levels = graphs_of(each, is_billed=False)
        graphs[each.name] = {"plain": levels["-O0"], "compiled": levels["-O2"]}
    load = Load(arguments.load, arguments.width, arguments.pool, arguments.model)
    return under_load(todo, graphs, load, arguments.reps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="workloads whose name holds this")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--out", type=Path, help="JSON; a plot is written beside it")
    parser.add_argument("--load", type=int, default=0, help="runs of each workload")
    parser.add_argument("--width", type=int, default=24, help="runs in flight")
    parser.add_argument("--pool", type=int, default=4096, help="tokens that the engine keeps")
    parser.add_argument("--model", default="", help="of the runs under load: a folder")
    arguments = parser.parse_args()
    found: dict[str, dict[str, dict[str, Any]]] = {}
    with EmbeddedEngine(None, ["--http", "0"]) as engine:
        said = engine.stderr_tail.splitlines()
        http = next(x.removeprefix("HTTP on ") for x in said if x.startswith("HTTP on "))
        own = sgc.connect(engine.uri)
        billed = sgc.connect(f"openai+{http}/v1#sgc-tiny?api=completions")
        for workload in workloads():
            if arguments.only not in workload.name:
                continue
            graphs = graphs_of(workload, is_billed=False)
            run(workload, graphs["-O0"], own)  # warm-up
            found[workload.name] = measure(workload, graphs, own.flush_cache, own, arguments.reps)
            if "three" in workload.name:
                graphs = graphs_of(workload, is_billed=True)
                name = f"{workload.name}, billed by request"
                found[name] = measure(workload, graphs, own.flush_cache, billed, arguments.reps)
    report(found)
    loaded = loads_of(arguments) if arguments.load else {}
    for name, row in loaded.items():
        print(f"{name}, under load:", ", ".join(f"{what} {value}" for what, value in row.items()))
    if arguments.out:
        from importlib.metadata import version

        levels = {f"-O{number}": [row.name for row in rows] for number, rows in enumerate(LEVELS)}
        machine = {
            "python": platform.python_version(),
            "torch": version("torch"),
            "cores": os.cpu_count(),
        }
        made = {"machine": machine, "levels": levels, "workloads": found, "load": loaded}
        arguments.out.write_text(json.dumps(made, indent=1) + "\n")
        plot(found, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
