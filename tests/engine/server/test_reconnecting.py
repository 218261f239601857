"""An engine that is started again: what is asked again, and what its client sees of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import grpc.aio
import pytest
from engine.server.test_serve import serving
from waiting import BOUND_S, until

from sgc.errors import BackendError, EngineUnavailable
from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.backends.persistence import MAX_LOST, Shown
from sgc.runtime.executor.interface.backend import Sampling, TextRun

HELLO = (TextRun("Hello"),)
Answer = Callable[[pb.Request], list[pb.Reply] | None]


class Mortal(engine_pb2_grpc.EngineServicer):
    """An engine whose stream dies where it has no final reply."""

    def __init__(self, answer: Answer, model: str = "m") -> None:
        self.answer, self.model = answer, model
        self.n_sessions = 0

    async def GetInfo(self, request: object, context: object) -> pb.Info:
        return pb.Info(model=self.model, max_in_flight=1000, max_message_bytes=1_000_000)

    async def Session(
        self, frames: AsyncIterator[pb.ClientFrame], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[pb.ServerFrame]:
        self.n_sessions += 1
        async for frame in frames:
            for request in frame.requests:
                replies = self.answer(request)
                yield pb.ServerFrame(replies=replies or [])
                if replies is None or not replies[-1].HasField("generated"):
                    await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")


async def with_engine(engine: Mortal, path: Path) -> grpc.aio.Server:
    server = grpc.aio.server()
    engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    return server


def asked(engine: Mortal, path: Path, seen: list[str]) -> str:
    async def main() -> str:
        server = await with_engine(engine, path)
        try:
            async with EngineBackend(f"unix:{path}", reconnect_s=BOUND_S) as backend:
                return (await backend.generate(HELLO, Sampling(max_tokens=9), seen.append)).text
        finally:
            await server.stop(0)

    return asyncio.run(main())


def test_an_unanswered_request_is_asked_again(tmp_path: Path) -> None:
    """The second time the first text is not shown again."""
    seen: list[str] = []
    engine = Mortal(lambda request: None)

    def answer(request: pb.Request) -> list[pb.Reply] | None:
        first = [pb.Reply(id=request.id, delta=pb.Delta(text="ab"))]
        if engine.n_sessions < 3:
            return None if engine.n_sessions == 1 else first
        rest = [pb.Reply(id=request.id, delta=pb.Delta(text="c"))]
        return [*first, *rest, pb.Reply(id=request.id, generated=pb.Generated(text="abc"))]

    engine.answer = answer
    assert asked(engine, tmp_path / "s", seen) == "abc"
    assert seen == ["ab", "c"]
    assert engine.n_sessions == 3


def test_but_not_for_ever(tmp_path: Path) -> None:
    """A request may be what ends the engine."""
    engine = Mortal(lambda request: None)
    with pytest.raises(EngineUnavailable):
        asked(engine, tmp_path / "s", [])
    assert engine.n_sessions == MAX_LOST


def test_nor_without_being_told_to(tmp_path: Path) -> None:
    async def main() -> None:
        server = await with_engine(Mortal(lambda request: None), tmp_path / "s")
        async with EngineBackend(f"unix:{tmp_path}/s") as backend:
            with pytest.raises(EngineUnavailable):
                await backend.generate(HELLO, Sampling(max_tokens=9))
        await server.stop(0)

    asyncio.run(main())


def test_another_model_is_no_replacement(tmp_path: Path) -> None:
    engine = Mortal(lambda request: None)

    def dies(request: pb.Request) -> None:
        engine.model = "other"

    engine.answer = dies
    with pytest.raises(BackendError, match="another one now: other, not m"):
        asked(engine, tmp_path / "s", [])


def test_what_was_shown_is_not_shown_again() -> None:
    seen: list[str] = []
    shown = Shown(seen.append)
    for tries in (["ab", "c"], ["a", "bcd"], ["abcdef"]):
        shown.begin()
        for text in tries:
            shown.take(text)
    shown.check("abcdef")
    assert seen == ["ab", "c", "d", "ef"]
    with pytest.raises(BackendError, match="gave another one"):
        shown.check("abcde")
    shown.begin()
    with pytest.raises(BackendError, match="gave another one"):
        shown.take("abX")


PROGRAM = """
import sgc

@sgc.function
def tip(s, topic):
    s += "A tip about " + topic + ":"
    s += sgc.gen("one", max_tokens=40, ignore_eos=True)
    s += "\\nAnother:"
    s += sgc.gen("two", max_tokens=40, ignore_eos=True)
"""
N_ROWS = 200


@pytest.mark.slow
def test_a_batch_goes_on_when_its_server_is_killed_and_started_again(tmp_path: Path) -> None:
    """Each row is there once, with the texts of a run that was not disturbed."""
    (tmp_path / "tip.py").write_text(PROGRAM)
    rows = [{"topic": f"topic {i}"} for i in range(N_ROWS)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--listen", f"unix:{tmp_path}/s", "--max-running", "8")

    def run(name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "sgc", "run", "tip.py:tip", "--rows", "rows.jsonl",
                   "--out", name, "--engine", f"unix:{tmp_path}/s", "--seed", "7",
                   "-q"]  # fmt: skip
        return subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)

    def n_lines(name: str) -> int:
        file = tmp_path / name
        return len(file.read_text().splitlines()) if file.exists() else 0

    with serving(*options) as (process, _):
        assert run("quiet.jsonl").wait(BOUND_S) == 0
        batch = run("killed.jsonl")
        until(lambda: n_lines("killed.jsonl") > 10 or batch.poll() is not None)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert batch.poll() is None
    with serving(*options):
        assert batch.wait(BOUND_S) == 0, batch.stderr and batch.stderr.read()
    quiet, killed = (texts_of(tmp_path / name) for name in ("quiet.jsonl", "killed.jsonl"))
    assert n_lines("killed.jsonl") == len(killed) == N_ROWS
    assert killed == quiet


def texts_of(file: Path) -> dict[str, str]:
    """Without what was counted and timed, which differs."""
    rows = map(json.loads, file.read_text().splitlines())
    return {row["key"]: row["text"] for row in rows}
