"""Kills: the step process, the server or the client of a batch is killed (SIGKILL) at random times,
again and again. A server is started again at its address, so a client may go on; one that has ended
is started again, and goes on from its log.

The results must be those of a batch that nobody disturbed: no row lost, doubled or changed.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storms.harness import Server, children, command

ROOT = Path(__file__).resolve().parents[2]
ATTEMPT_S = 300.0
LAST_ATTEMPTS = 3
GONE_S = 10.0  # for a killed server's step process to follow it
COMPARED = ("key", "inputs", "text", "variables", "return", "error")  # use may differ
VICTIMS = ("client", "client", "server", "step")
PROGRAM = """
import sgc


@sgc.function
def batch(s, subject: str):
    s += f"Of {subject}, in short: " + sgc.gen("first", max_tokens=30, temperature=0.8)
    s += ". Then " + sgc.select("which", ["this", "that", "neither"])
    forks = s.fork(2)
    forks += lambda i: f" {i}: "
    forks += sgc.gen("part", max_tokens=20, temperature=1.0)
    s += forks[0]["part"] + forks[1]["part"] + sgc.gen("last", max_tokens=40, stop=".")
"""


class Client:
    """One attempt at a batch, in a fork of a process that has imported everything."""

    def __init__(self, forks: subprocess.Popen[str], stderr: Path, arguments: list[str]) -> None:
        self._forks, self._stderr = forks, stderr
        assert forks.stdin is not None
        assert forks.stdout is not None
        forks.stdin.write(json.dumps([str(stderr), *arguments]) + "\n")
        forks.stdin.flush()
        self.pid = int(forks.stdout.readline())
        self.status: int | None = None

    def ends_within(self, seconds: float) -> bool:
        assert self._forks.stdout is not None
        if self.status is None and select.select([self._forks.stdout], [], [], seconds)[0]:
            self.status = int(self._forks.stdout.readline())
        return self.status is not None

    @property
    def said(self) -> str:
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)


@dataclass
class Batch:
    """A batch in a folder of its own; its server can be killed and is started again."""

    folder: Path
    n_rows: int
    seed: int
    server: Server | None = None
    kills: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    attempts: int = 0
    _port: int = 0

    def __enter__(self) -> Batch:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "batch.py").write_text(PROGRAM, encoding="utf-8")
        rows = [json.dumps({"subject": f"thing {i}, {i % 5}"}) for i in range(self.n_rows)]
        (self.folder / "rows.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
        forks = Path(__file__).with_name("forked_clients.py")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._forks = subprocess.Popen(
            [sys.executable, "-P", str(forks)],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_server()
        assert self._forks.stdin is not None
        self._forks.stdin.close()
        self._forks.wait(ATTEMPT_S)

    def undisturbed(self) -> list[Any]:
        client = self._start("calm")
        assert client.ends_within(ATTEMPT_S)
        assert client.status == 0, client.said
        return self._results("calm")

    def disturbed(self, log: str, rng: random.Random, n_kills: int, span_s: float) -> list[Any]:
        """The results of a batch that is disturbed by up to n_kills kills."""
        client = self._start(log)
        for _ in range(n_kills):
            if client.ends_within(rng.random() * span_s):
                break
            self._kill(rng.choice(VICTIMS), client)
            if client.ends_within(0):
                client = self._start(log)
        for _ in range(LAST_ATTEMPTS):
            if client.ends_within(ATTEMPT_S) and client.status == 0:
                return self._results(log)
            client.kill()
            client.ends_within(ATTEMPT_S)
            client = self._start(log)
        self.problems.append(f"it did not end: {client.said[-500:]}")
        client.kill()
        client.ends_within(ATTEMPT_S)
        return self._results(log)

    def _serving(self) -> Server:
        if self.server is None:
            self.server = Server("fake", port=self._port).__enter__()
            self._port = self.server.grpc
        return self.server

    def _stop_server(self) -> None:
        if self.server is not None:
            self.server.__exit__()
        self.server = None

    def _start(self, log: str) -> Client:
        """An attempt at the whole batch, from its log on."""
        self.attempts += 1
        given = ["--rows", "rows.jsonl", "--out", f"{log}.jsonl", "--resume", log, "--no-check"]
        given += ["--retry-errors", "--progress", "none"]
        engine = ["--engine", f"grpc://{self._serving().target}", "--seed", str(self.seed)]
        arguments = ["batch.py", "-j", "16", *given, *engine]
        return Client(self._forks, self.folder / f"{log}.stderr", arguments)

    def _results(self, log: str) -> list[Any]:
        text = (self.folder / f"{log}.jsonl").read_text(encoding="utf-8")
        found = [json.loads(line) for line in text.splitlines()]
        return [{name: row.get(name) for name in COMPARED} for row in found]

    def _kill(self, victim: str, client: Client) -> None:
        server = self._serving()
        self.kills[victim] += 1
        if victim == "client":
            client.kill()
            client.ends_within(ATTEMPT_S)
            return
        kept = children(server.pid)
        os.kill(server.processes[victim], signal.SIGKILL)
        self.problems += [f"{left} outlived its {victim}" for left in _outliving(server, kept)]
        self._stop_server()
        self._serving()  # at the same address: the client may find it again
        if "Traceback" in client.said:
            self.problems.append(f"the client of a killed {victim} said: {client.said[-500:]}")


def _outliving(server: Server, kept: list[int]) -> list[str]:
    """The server's processes that have not ended after a while, of which one was killed."""
    end = time.monotonic() + GONE_S
    while time.monotonic() < end:
        left = [pid for pid in kept if "sgc" in command(pid)]
        if not left and not server.engine.is_running:
            return []
        time.sleep(0.01)
    return [command(pid) for pid in left] or ["the server"]


def kill_storm(
    folder: Path, n_kills: int, n_rows: int = 300, span_s: float = 3.0, seed: int = 1
) -> dict[str, Any]:
    """Batches, each disturbed up to a dozen times, until there were n_kills kills. span_s: after
    the start of an attempt, in which its kill comes."""
    rng, start = random.Random(seed), time.monotonic()
    n_batches, outcomes = 0, Counter[str]()
    with Batch(folder, n_rows, seed) as batch:
        wanted = batch.undisturbed()
        while batch.kills.total() < n_kills:
            n_batches += 1
            most = min(12, n_kills - batch.kills.total())
            found = batch.disturbed(f"log{n_batches}", rng, most, span_s)
            outcomes.update(compared(wanted, found))
    return {
        "kills": dict(batch.kills),
        "batches": n_batches,
        "rows_a_batch": n_rows,
        "attempts": batch.attempts,
        "rows": dict(outcomes),
        "wrong": batch.problems[:20],
        "seconds": round(time.monotonic() - start, 1),
    }


def compared(wanted: list[Any], found: list[Any]) -> Iterator[str]:
    """What became of each row."""
    by_key: dict[str, list[Mapping[str, Any]]] = {}
    for row in found:
        by_key.setdefault(json.dumps(row["key"]), []).append(row)
    for row in wanted:
        same = by_key.pop(json.dumps(row["key"]), [])
        if len(same) != 1:
            yield "doubled" if same else "lost"
        else:
            yield "equal" if same[0] == row else "changed"
    for _ in by_key:
        yield "unknown"


def problems(found: Mapping[str, Any]) -> list[str]:
    bad = [f"{n} rows {kind}" for kind, n in found["rows"].items() if kind != "equal"]
    return [*bad, *found["wrong"]]
