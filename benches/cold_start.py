"""A cold start: how long a user waits for `sgc run` with the default model, and for what.

    python benches/cold_start.py [--runs 7] [--out benches/results/cold_start.json]

Wall seconds from the start of the command, median, minimum and maximum. Engine and program are
new in each run; files are in the system's cache and byte code is compiled (a first run that is
not counted sees to both). Each phase is told from outside, the process knows nothing of it:

  engine started   the program is read and compiled, and the engine's folder is made
  engine listens   its model is loaded and checked, and its socket is there
  first text       `--stream` has written the first of what was generated
  result           all of the output is there
  exit             the engine is stopped, and the command has ended

`cpu` is what all of its processes used, and `others_cores` what all others did meanwhile, in
cores: with more than a few tenths of one, times are longer than this machine's. Of twice as
many rounds those with the fewest count.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from threading import Thread

ROOT = Path(__file__).resolve().parent.parent
PYTHON = [sys.executable, "-P"]
TIP = str(ROOT / "examples" / "tip_suggestion.py")
RUN = ["-m", "sgc", "run", TIP, "--arg", "topic=staying healthy", "--seed", "1", "--stream"]
PARTS = {
    "python alone": ["-c", ""],
    "sgc --help": ["-m", "sgc", "--help"],
    "sgc compile": ["-m", "sgc", "compile", TIP, "-o", os.devnull],
    "import torch": ["-c", "import torch"],
    "import torch and transformers": [
        "-c",
        "import torch; from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM",
    ],
    "sgc run, fake model": [*RUN, "--model", "fake"],
}
# As for a user: byte code is compiled once.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
LOOK_S = 0.002
LIMIT_S = 120.0
PACKAGES = ("torch", "transformers", "tokenizers", "grpcio", "protobuf", "numpy")

Seconds = dict[str, float]


def phases() -> Seconds:
    """The times of one cold run, from its start to the end of each phase."""
    with tempfile.TemporaryDirectory(prefix="cold-") as folder, tempfile.TemporaryFile() as said:
        environment = {**ENVIRONMENT, "TMPDIR": folder}
        found: Seconds = {}
        start_s = time.perf_counter()
        process = subprocess.Popen(
            [*PYTHON, *RUN],
            stdout=subprocess.PIPE,
            stderr=said,
            env=environment,
            cwd=ROOT,
        )
        watcher = Thread(target=_watch, args=(Path(folder), process, start_s, found))
        watcher.start()
        _read(process, start_s, found)
        status = process.wait(LIMIT_S)
        found["exit"] = time.perf_counter() - start_s
        watcher.join()
        said.seek(0)
        assert status == 0, f"sgc run ended with status {status}: {said.read().decode()}"
        return found


def _watch(folder: Path, process: subprocess.Popen[bytes], start_s: float, found: Seconds) -> None:
    """Notes when the engine's folder and its socket appear."""
    for name, pattern in (("engine started", "sgc-*"), ("engine listens", "sgc-*/engine.sock")):
        while process.poll() is None and not any(folder.glob(pattern)):
            time.sleep(LOOK_S)
        found[name] = time.perf_counter() - start_s


def _read(process: subprocess.Popen[bytes], start_s: float, found: Seconds) -> None:
    """Notes when the output's first and last bytes are read."""
    assert process.stdout is not None
    while os.read(process.stdout.fileno(), 65536):
        found.setdefault("first text", time.perf_counter() - start_s)
        found["result"] = time.perf_counter() - start_s


def seconds_of(command: list[str]) -> float:
    start_s = time.perf_counter()
    subprocess.run(
        [*PYTHON, *command],
        check=True,
        capture_output=True,
        timeout=LIMIT_S,
        env=ENVIRONMENT,
        cwd=ROOT,
    )
    return time.perf_counter() - start_s


def summary(values: list[float]) -> Seconds:
    found = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: round(value, 3) for name, value in found.items()}


def _each(rows: list[Seconds]) -> dict[str, Seconds]:
    return {name: summary([row[name] for row in rows]) for name in rows[0]}


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement of each quantity, under the same load of the machine."""

    run: Seconds
    parts: Seconds
    cpu_s: float
    others_cores: float


def one_round() -> Round:
    before = _used()
    run = phases()
    passed_s, all_s, own_s = (b - a for a, b in zip(before, _used(), strict=True))
    parts = {name: seconds_of(command) for name, command in PARTS.items()}
    return Round(run, parts, own_s, max(0.0, all_s - own_s) / passed_s)


def quietest(n: int) -> list[Round]:
    """The n of 2n rounds in which other processes used the least CPU, after a warm-up round."""
    rounds = [one_round() for _ in range(2 * n + 1)][1:]
    return sorted(rounds, key=lambda found: found.others_cores)[:n]


def _used() -> tuple[float, float, float]:
    """The time, and the CPU seconds of all processes, and of this one and its ended children."""
    ticks = [int(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    busy = sum(ticks) - ticks[3] - ticks[4]  # without idle and iowait
    times = os.times()
    own_s = times.user + times.system + times.children_user + times.children_system
    return time.perf_counter(), busy / os.sysconf("SC_CLK_TCK"), own_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rounds = quietest(given.runs)
    found = {
        "command": "python benches/cold_start.py",
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "versions": {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
        "runs": given.runs,
        "others_cores": summary([found.others_cores for found in rounds]),
        "cpu": summary([found.cpu_s for found in rounds]),
        "sgc run, from its start": _each([found.run for found in rounds]),
        "parts, each a process": _each([found.parts for found in rounds]),
    }
    text = json.dumps(found, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
