"""A server under storms, seen from outside: memory, descriptors, threads, objects.

`Server` starts `sgc serve` on loopback with gRPC and HTTP. What it holds is read from /proc, from
`GetStats`, and, by type, from the processes themselves (`watching/sitecustomize.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
from waiting import BOUND_S, until

from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc
from sgc.runtime.engine.launch import EmbeddedEngine

ARGUMENTS = ("--max-context", "4096", "--pool-tokens", "40000", "--max-running", "48")
IDLE_WITHIN_S = 30.0  # the wait's bound; what is asserted is shorter
WATCHING = Path(__file__).with_name("watching")
MIB = 1 << 20
PROGRAM = """
import sgc


@sgc.function
def tip(s, topic: str, n: int = 3):
    s += "Tips for " + topic + ": " + sgc.gen("first", max_tokens=4)
"""


@dataclass(frozen=True)
class Sample:
    """Of a process. n_bytes: its own memory that is in use, files excluded."""

    n_bytes: int
    n_descriptors: int
    n_threads: int


def sample(pid: int) -> Sample:
    root = Path(f"/proc/{pid}")
    lines = (root / "status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    descriptors = len(list((root / "fd").iterdir()))
    kib = int(fields["RssAnon"].split()[0])
    return Sample(kib * 1024, descriptors, int(fields["Threads"]))


def children(pid: int) -> list[int]:
    """The process's descendants."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [each for child in map(int, text.split()) for each in (child, *children(child))]


def command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


@contextmanager
def watched(folder: str) -> Iterator[None]:
    """What is started within the block can be asked for its objects."""
    before = dict(os.environ)
    paths = [str(WATCHING), *filter(None, [before.get("PYTHONPATH")])]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "SGC_WATCHED": folder}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class WithPrograms:
    """`sgc serve` with a program beside the fake model, started as a user does: in place of an
    `EmbeddedEngine`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments

    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sgc-storm-")
        folder = Path(self._folder.name)
        (folder / "tip.py").write_text(PROGRAM, encoding="utf-8")
        command, made = [sys.executable, "-P", "-m", "sgc"], str(folder / "tip.sgir")
        subprocess.run([*command, "compile", str(folder / "tip.py"), "-o", made], check=True)
        given = [*command, "serve", "--model", "fake", "--program", made]
        self._said = folder / "stderr"
        with self._said.open("wb") as file:
            self._process = subprocess.Popen([*given, *self._arguments], stderr=file)
        until(lambda: "listening on" in self.stderr_tail or not self.is_running)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(BOUND_S)
        self._folder.cleanup()

    @property
    def stderr_tail(self) -> str:
        return self._said.read_text(encoding="utf-8", errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid


class Server:
    """A running server; a context manager. http, grpc: its ports on 127.0.0.1. tokens: of clients;
    the first is this harness's own. model: as for `EmbeddedEngine`, or "program": the fake one with
    a program beside it. port: gRPC's; 0 is any."""

    def __init__(
        self,
        model: str | None = "fake",
        arguments: Sequence[str] = ARGUMENTS,
        tokens: Sequence[str] = (),
        port: int = 0,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sgc-storm-")
        given = ["--listen", f"127.0.0.1:{port}", "--http", "0", *arguments]
        if tokens:
            file = Path(self._folder.name) / "tokens"
            file.write_text("\n".join(tokens), encoding="utf-8")
            given += ["--token-file", str(file)]
        self.token = tokens[0] if tokens else ""
        self.metadata = bearer(self.token) if tokens else ()
        has_program = model == "program"
        self._own_sessions = int(has_program)  # through which it runs its programs
        self.engine = WithPrograms(given) if has_program else EmbeddedEngine(model, given)

    def __enter__(self) -> Server:
        with watched(self._folder.name):
            self.engine.start()
        said = dict(x.rsplit(" ", 1) for x in self.engine.stderr_tail.splitlines() if " " in x)
        self.grpc = int(said["listening on"].rpartition(":")[2])
        self.http = int(said["HTTP on"].rpartition(":")[2])
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.stop()
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        assert self.engine.pid is not None
        return self.engine.pid

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.grpc}"

    @property
    def processes(self) -> dict[str, int]:
        """Its processes by what they do: `server`, `step`, and others by number."""
        found = {"server": self.pid}
        for pid in children(self.pid):
            is_step = "engine.worker.main" in command(pid)
            found["step" if is_step else f"child {len(found)}"] = pid
        return found

    def samples(self) -> dict[str, Sample]:
        return {name: sample(pid) for name, pid in self.processes.items()}

    def objects(self) -> dict[str, Counter[str]]:
        """How many objects the server and the step process hold beyond those of their start."""
        processes = self.processes
        return {name: self._objects_of(processes[name]) for name in ("server", "step")}

    def garbage(self) -> Counter[str]:
        """What only the server's collector of cycles would have freed since this was asked last:
        the objects by type. Until `objects` is asked, it frees nothing."""
        return self._objects_of(self.pid, b"g")

    def _objects_of(self, pid: int, asks: bytes = b"?") -> Counter[str]:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(30)
            asking.connect(str(Path(self._folder.name) / str(pid)))
            asking.sendall(asks)
            data = b"".join(iter(lambda: asking.recv(1 << 16), b""))
        return Counter(json.loads(data))

    @asynccontextmanager
    async def stub(self) -> AsyncIterator[Any]:
        async with channel(self.target) as opened:
            yield engine_pb2_grpc.EngineStub(opened)

    async def stats(self) -> pb.Stats:
        async with self.stub() as stub:
            return await stub.GetStats(pb.StatsRequest(), metadata=self.metadata)

    async def idle(self) -> float:
        """Waits until no request and no session is left; returns how long that took, in seconds."""
        start = time.monotonic()
        async with self.stub() as stub:
            while True:
                stats = await stub.GetStats(pb.StatsRequest(), metadata=self.metadata)
                if not left_of(stats, self._own_sessions):
                    return time.monotonic() - start
                waited = time.monotonic() - start
                assert waited < IDLE_WITHIN_S, f"still there: {left_of(stats)}"
                await asyncio.sleep(0.02)

    async def flushed(self) -> pb.Stats:
        """The statistics once nothing is cached."""
        async with self.stub() as stub:
            await stub.FlushCache(pb.FlushCacheRequest(), metadata=self.metadata)
            return await stub.GetStats(pb.StatsRequest(), metadata=self.metadata)


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


def channel(target: str) -> grpc.aio.Channel:
    """A connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 * MIB)]
    return grpc.aio.insecure_channel(target, options)


_LEFT = (
    "in_flight_requests",
    "sessions",
    "running_requests",
    "waiting_requests",
    "parked_requests",
    "waiting_prefetches",
    "programs",
)


def left_of(stats: pb.Stats, own_sessions: int = 0) -> dict[str, int]:
    """What an idle server would not have."""
    found = {name: n for name in _LEFT if (n := getattr(stats, name))}
    if found.get("sessions", 0) <= own_sessions:
        found.pop("sessions", None)
    return found


def grown(before: Mapping[str, int], after: Mapping[str, int], least: int = 1) -> dict[str, int]:
    """The counts that have risen by `least` or more."""
    more = {name: n - before.get(name, 0) for name, n in after.items()}
    return {name: n for name, n in sorted(more.items()) if n >= least}
