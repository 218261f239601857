"""Starts a peer's driver as a process, sends it commands, measures it, and stops it.

A peer that uses the CPU between its commands is halted by SIGSTOP, so that the measured peer has
the cores. `peers.py` calls it; the protocol of drivers is in `peers/protocol.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MAX_IDLE_CORES = 0.03
IDLE_S = 2.0
WATCH_S = 0.1
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
TICKS = os.sysconf("SC_CLK_TCK")


class PeerFailed(Exception):
    """A peer ended or took too long, and cannot be used any more."""


class PeerRefused(Exception):
    """A peer replied to a command with an error; it accepts other commands."""


class PeerProcess:
    """One driver and its descendants; `ask` returns the reply, with measurements."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log.open("ab")
        self.started_at = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            start_new_session=True, text=True,
        )  # fmt: skip
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._halts = self._is_halted = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, command: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Waits until the driver has loaded and made one token; returns its facts and times."""
        with _Watch(self._process.pid) as watch:
            self._send(command)
            facts = self._receive(timeout_s)
            self._receive(timeout_s)
            facts["first_token_s"] = time.perf_counter() - self.started_at
        found = watch.found()
        facts |= {"cpu_s": found["cpu_s"], "others_cores": found["others_cores"]}
        before = cpu_s(tree(self._process.pid))
        time.sleep(IDLE_S)
        facts["idle_cores"] = (cpu_s(tree(self._process.pid)) - before) / IDLE_S
        self._halts = facts["idle_cores"] > MAX_IDLE_CORES
        facts["is_halted_between"] = self._halts
        facts["peak_rss_mb"] = watch.peak_mb
        self._halt()
        return facts

    def ask(self, command: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        self._resume()
        with _Watch(self._process.pid) as watch:
            self._send(command)
            answer = self._receive(timeout_s)
        self._halt()
        return answer | watch.found()

    def stop(self) -> None:
        """Stops the driver by closing its stdin, else by SIGKILL, and its descendants too."""
        self._resume()
        pids = tree(self._process.pid)
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        for pid in {*pids, self._process.pid}:
            with contextlib.suppress(OSError):
                if pid == self._process.pid or _is_of_session(pid, self._process.pid):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _send(self, command: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise PeerFailed(f"it ended: exit status {self._process.poll()}") from error

    def _receive(self, timeout_s: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise PeerFailed(f"no answer within {timeout_s:g} s") from None
        if line is None:
            raise PeerFailed(f"it ended: exit status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerRefused(answer["error"])
        return answer

    def _halt(self) -> None:
        if self._halts:
            self._signal(signal.SIGSTOP)
        self._is_halted = self._halts

    def _resume(self) -> None:
        if self._is_halted:
            self._signal(signal.SIGCONT)
        self._is_halted = False

    def _signal(self, number: int) -> None:
        for pid in tree(self._process.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, number)


class _Watch:
    """Measures the peak memory and CPU time of a process tree, and the CPU time of all others."""

    def __init__(self, pid: int) -> None:
        self._pid, self.peak_mb = pid, 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> _Watch:
        self.peak_mb = rss_mb(tree(self._pid))
        self._at, self._cpu_s, self._busy_s = time.perf_counter(), cpu_s(tree(self._pid)), _busy_s()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._wall_s = time.perf_counter() - self._at
        self._cpu_s = cpu_s(tree(self._pid)) - self._cpu_s
        self._busy_s = _busy_s() - self._busy_s

    def found(self) -> dict[str, float]:
        """The measurements. others_cores: used by other processes, or stolen by the host."""
        others_s = max(0.0, self._busy_s - self._cpu_s)
        return {
            "peak_rss_mb": self.peak_mb,
            "cpu_s": self._cpu_s,
            "cores": self._cpu_s / self._wall_s,
            "others_cores": others_s / self._wall_s,
        }

    def _run(self) -> None:
        while not self._is_over.wait(WATCH_S):
            self.peak_mb = max(self.peak_mb, rss_mb(tree(self._pid)))


def tree(root: int) -> list[int]:
    """A process and its descendants, by their ids."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError):
                parent = int(_stat(int(entry))[1])
                children.setdefault(parent, []).append(int(entry))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_s(pids: Sequence[int]) -> float:
    """CPU seconds used so far, with those of children that have ended."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            ticks += sum(map(int, _stat(pid)[11:15]))
    return ticks / TICKS


def rss_mb(pids: Sequence[int]) -> float:
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE_MB


def peak_mb(pids: Sequence[int]) -> float:
    """The sum of the most memory that each has had at once."""
    kb = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            kb += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return kb / 1024


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may contain anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _is_of_session(pid: int, session: int) -> bool:
    return os.getsid(pid) == session


def _busy_s() -> float:
    """CPU seconds of all cores that were not idle: processes, interrupts, stolen time."""
    fields = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS
