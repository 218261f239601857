"""Many instances of a program of three generations: the front end's own cost.

    python benches/programs.py [--rows 10000] [--rounds 5] [--peer PYTHON] [--out FILE.json]

The model is instant (one token a generation), the server a process of its own: our engine with
the fake model over gRPC, and a scripted server with SGLang's HTTP API. The client is a process
of its own too. With `--peer`, a Python that has SGLang installed, SGLang's front end runs the
same program against the same HTTP server, interleaved. Programs a second, the client's CPU time
a program, its memory and threads; ratios to the peer are of the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WARM_ROWS = 200


def define(lm: Any) -> Any:
    """The program, in the language that both front ends share."""

    @lm.function
    def three(s, question):
        s += "You are a helpful assistant. Question: " + question + "\n"
        s += "Answer: " + lm.gen("answer", max_tokens=1) + "\n"
        s += "Check: " + lm.gen("check", max_tokens=1) + "\n"
        s += "Summary: " + lm.gen("summary", max_tokens=1) + "\n"

    return three


def client(front_end: str, url: str, n_rows: int, how: dict[str, Any]) -> dict[str, float]:
    """The work of a client process: runs the rows once, after a warm-up with a few."""
    if front_end == "sglang":
        import sglang as lm

        backend = lm.RuntimeEndpoint(url)
    else:
        import sgc as lm

        backend = lm.connect(url)
    program = define(lm)
    rows = [{"question": f"what is {index}?"} for index in range(n_rows)]
    program.run_batch(rows[:WARM_ROWS], backend=backend, temperature=0, **how)
    most_threads = _Most(threading.active_count)
    before_s, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    states = program.run_batch(rows, backend=backend, temperature=0, **how)
    wall_s, after = time.perf_counter() - before_s, resource.getrusage(resource.RUSAGE_SELF)
    n_threads = most_threads.stop()
    assert all(state["summary"] is not None for state in states[:10] + states[-10:])
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "programs_per_s": n_rows / wall_s,
        "client_cpu_ms": 1e3 * cpu_s / n_rows,
        "peak_memory_mb": after.ru_maxrss / 1024,
        "threads": n_threads,
    }


class _Most:
    """The largest value that a function returns until `stop`."""

    def __init__(self, read: Any) -> None:
        self._read, self._most, self._is_over = read, read(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over.wait(0.05):
            self._most = max(self._most, self._read() - 1)

    def stop(self) -> int:
        self._is_over.set()
        self._thread.join()
        return int(self._most)


@contextmanager
def server(command: list[str], announces: str) -> Iterator[str]:
    """Runs a server process; yields the address that it prints."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if announces in line:
                yield line.split(announces)[1].split()[0]
                return
        raise SystemExit(f"{command[:4]} ended before it listened")
    finally:
        process.terminate()
        process.wait(timeout=20)


def measure(python: str, front_end: str, url: str, n_rows: int, how: dict[str, Any]) -> Any:
    own = ["--client", front_end, "--url", url, "--rows", str(n_rows), "--how", json.dumps(how)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [python, "-P", __file__, *own],
        check=True, capture_output=True, text=True, timeout=900, env=environment, cwd=ROOT,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def run_all(arguments: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """Runs every front end once per round, so that all have the same load of the machine."""
    engine = [sys.executable, "-P", "-m", "sgc", "serve", "--model", "fake"]
    engine += ["--listen", "127.0.0.1:0"]
    scripted = [sys.executable, "-P", str(ROOT / "tests" / "support" / "sglang_server.py")]
    found: dict[str, list[dict[str, float]]] = {}
    for number in range(arguments.rounds):
        with ExitStack() as stack:
            grpc = "grpc://" + stack.enter_context(server(engine, "listening on "))
            http = "http://" + stack.enter_context(
                server([*scripted, "--port", "0", "--fast"], "http://")
            )
            for name, python, front_end, url, how in cases(arguments, grpc, http):
                got = measure(python, front_end, url, arguments.rows, how)
                found.setdefault(name, []).append(got)
                shown = ", ".join(f"{key} {value:.4g}" for key, value in got.items())
                print(f"round {number + 1}, {name}: {shown}", file=sys.stderr)
    return found


def cases(arguments: argparse.Namespace, grpc: str, http: str) -> Iterator[tuple[Any, ...]]:
    ours = sys.executable
    every = {"max_concurrency": arguments.rows}
    yield "sgc over gRPC", ours, "sgc", grpc, {}
    yield "sgc over gRPC, all rows at once", ours, "sgc", grpc, every
    yield "sgc over HTTP", ours, "sgc", "sglang+" + http, {}
    if arguments.peer:
        yield "SGLang over HTTP", arguments.peer, "sglang", http, {}


def summary(found: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    peer = found.get("SGLang over HTTP")
    rows: dict[str, Any] = {}
    for name, rounds in found.items():
        row: dict[str, Any] = {
            key: round(statistics.median(each[key] for each in rounds), 3) for key in rounds[0]
        }
        if peer is not None and rounds is not peer:
            ratios = [
                a["programs_per_s"] / b["programs_per_s"] for a, b in zip(rounds, peer, strict=True)
            ]
            row["times_the_peer"] = [round(value, 2) for value in sorted(ratios)]
        rows[name] = row
    return rows


def plot(rows: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(reversed(rows))
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 0.6 * len(names) + 1.4), sharey=True)
    for axis, key, label in zip(
        axes, ("programs_per_s", "client_cpu_ms"),
        ("programs a second", "client CPU, ms a program"), strict=True,
    ):  # fmt: skip
        bars = axis.barh(names, [rows[name][key] for name in names], color="#4878a8")
        axis.bar_label(bars, fmt="%.4g", padding=3)
        axis.set_xlabel(label)
        axis.margins(x=0.15)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", help="a Python that has SGLang installed")
    parser.add_argument("--out", type=Path, help="JSON; a plot is written beside it")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--how", default="{}", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        got = client(arguments.client, arguments.url, arguments.rows, json.loads(arguments.how))
        print(json.dumps(got))
        return
    rows = summary(run_all(arguments))
    report = {
        "command": f"python benches/programs.py --rows {arguments.rows} "
        f"--rounds {arguments.rounds}" + (" --peer PYTHON" if arguments.peer else ""),
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "rows": rows,
    }
    text = json.dumps(report, indent=2)
    if arguments.out is not None:
        arguments.out.write_text(text + "\n", encoding="utf-8")
        plot(rows, arguments.out.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
