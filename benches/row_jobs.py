"""A job of many rows, killed again and again: rows a second, memory, sizes, and every row once.

    python -P benches/row_jobs.py [-n 1000000] [--kills 10] [--out benches/results/row_jobs.json]

Each row runs a program of three generations on a backend inside the client's process, which
answers at once: what is measured is the client, `sgc run --rows … --out … --resume …`. First 10,000
rows run to their end; then `-n` rows, in a process that is killed (SIGKILL) at `--kills` random
places and started again with the same command. CPU seconds and peak memory are those of the client
processes, by wait4. `--served N` runs N rows on `sgc serve --model fake` besides, an engine of its
own process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import sgc


@sgc.function
def post(s, topic: str, style: str):
    s += "Write a post in three steps.\\nStyle: " + style + "\\nTopic: " + topic + "\\nOutline:"
    s += sgc.gen("outline", max_tokens=16) + "\\nDraft:" + sgc.gen("draft", max_tokens=16)
    s += "\\nTitle:" + sgc.gen("title", max_tokens=16)
    return topic
"""


def child(argv: list[str]) -> None:
    """The command in this process, with a backend that answers at once in place of an engine."""
    from sgc.cli import main
    from sgc.cli.running import run
    from sgc.runs.endpoint import Endpoint
    from sgc.runtime.executor.backends.scripted import ScriptedBackend
    from sgc.runtime.executor.interface.backend import FinishReason, Generated, Usage

    class Instant(ScriptedBackend):
        """Replies are a hash of the prompt and the seed."""

        async def generate(self, prompt: Any, sampling: Any, on_delta: Any = None) -> Generated:
            told = "".join([each.text for each in prompt])
            text = f" reply {zlib.crc32(told.encode()) ^ sampling.seed & 0xFFFFFFFF}"
            ids = tuple(map(ord, text))
            usage = Usage(len(told) // 4, 0, len(told) // 4, len(ids))
            return Generated(text, ids, ids, "", FinishReason.STOP, None, usage)

    run.connect = lambda *_, **__: Endpoint(Instant(lambda prompt, sampling: ""))  # type: ignore
    main(argv)


def write_rows(path: Path, n: int) -> None:
    styles = ("plain", "formal", "terse")
    with path.open("w", encoding="utf-8") as file:
        for i in range(n):
            row = {"custom_id": f"row-{i}", "topic": f"topic number {i}", "style": styles[i % 3]}
            file.write(json.dumps(row) + "\n")


class Job:
    """One job: its folder, and what its processes have used."""

    def __init__(self, folder: Path, name: str, n: int, engine: str | None = None) -> None:
        self.n, self.folder = n, folder
        ends = ("rows.jsonl", "out.jsonl", "log")
        self.rows, self.out, self.log = (folder / f"{name}.{end}" for end in ends)
        write_rows(self.rows, n)
        (folder / "post.py").write_text(PROGRAM)
        here = [sys.executable, "-P", str(Path(__file__).resolve()), "--child"]
        self.command = [
            *([sys.executable, "-P", "-m", "sgc"] if engine else here), "run", "post.py",
            "--rows", str(self.rows), "--out", str(self.out), "--resume", str(self.log),
            "--engine", engine or "here", "--no-check", "--seed", "1",
        ]  # fmt: skip
        self.cpu_s = self.wall_s = 0.0
        self.peak_mb: list[float] = []

    def run(self, kill_at_bytes: int | None = None) -> dict[str, Any]:
        """One process of it; killed when the results have this size."""
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        start_s = time.perf_counter()
        with tempfile.TemporaryFile() as told:
            process = subprocess.Popen(self.command, cwd=self.folder, stderr=told, env=env)
            resumed_s = None
            before = self.size
            while True:
                pid, status, used = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if resumed_s is None and self.size > before:
                    resumed_s = time.perf_counter() - start_s
                if kill_at_bytes is not None and self.size >= kill_at_bytes:
                    process.send_signal(signal.SIGKILL)
                    kill_at_bytes = None
                time.sleep(0.05)
            process.returncode = os.waitstatus_to_exitcode(status)
            told.seek(0)
            err = told.read().decode()
        wall_s, cpu_s = time.perf_counter() - start_s, used.ru_utime + used.ru_stime
        self.wall_s, self.cpu_s = self.wall_s + wall_s, self.cpu_s + cpu_s
        self.peak_mb.append(round(used.ru_maxrss / 1024, 1))
        if process.returncode not in (0, -signal.SIGKILL):
            raise SystemExit(f"the job ended with {process.returncode}:\n{err[-2000:]}")
        found = {"code": process.returncode, "wall_s": round(wall_s, 1), "cpu_s": round(cpu_s, 1),
                 "peak_mb": self.peak_mb[-1],
                 "first_row_s": None if resumed_s is None else round(resumed_s, 1),
                 "told": [each for each in err.splitlines() if "resumes" in each]}  # fmt: skip
        print(json.dumps(found), flush=True)
        return found

    @property
    def size(self) -> int:
        return self.out.stat().st_size if self.out.exists() else 0

    def check(self) -> None:
        """Every row is there exactly once, with a result of its own."""
        seen = bytearray(self.n)
        with self.out.open(encoding="utf-8") as file:
            for line in file:
                record = json.loads(line)
                index = int(record["key"].removeprefix("row-"))
                assert not seen[index], f"row {index} is there twice"
                assert record["return"] == record["inputs"]["topic"] == f"topic number {index}"
                assert len(record["variables"]) == 3
                seen[index] = 1
        assert sum(seen) == self.n, f"{self.n - sum(seen)} rows are lost"

    def told(self) -> dict[str, Any]:
        return {
            "rows": self.n,
            "wall_s": round(self.wall_s, 1),
            "cpu_s": round(self.cpu_s, 1),
            "rows_per_s": round(self.n / self.wall_s, 1),
            "rows_per_cpu_s": round(self.n / self.cpu_s, 1),
            "peak_mb": max(self.peak_mb),
            "log_mb": round(self.log.stat().st_size / 1e6, 1),
            "out_mb": round(self.size / 1e6, 1),
        }


def killed(job: Job, n_kills: int, seed: int, bytes_a_row: float) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    places = sorted(draw.random() for _ in range(n_kills))
    runs = [job.run(int(place * job.n * bytes_a_row)) for place in places]
    return [*runs, job.run()]


def served(folder: Path, n: int) -> dict[str, Any]:
    sys.path.insert(0, str(ROOT))
    from sgc.runs.endpoints import Runtime

    with Runtime("fake") as engine:
        job = Job(folder, "served", n, engine._engine.uri)
        job.run()
    job.check()
    return job.told()


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        sys.path.insert(0, str(ROOT))
        child(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--served", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "benches/results/row_jobs.json")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sgc-jobs-") as name:
        folder = Path(name)
        few = Job(folder, "few", asked.few)
        few.run()
        few.check()
        many = Job(folder, "many", asked.n)
        runs = killed(many, asked.kills, asked.seed, few.size / few.n)
        many.check()
        found = {
            "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "versions": {"python": platform.python_version(), "sgc": version("sgc")},
            "load": os.getloadavg(),
            "few": few.told(),
            "many": many.told(),
            "runs": runs,
        }
        if asked.served:
            found["served"] = served(folder, asked.served)
    asked.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
