"""SIGTERM lets what is under way end, and refuses new requests so that they can be retried."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from engine.server.test_serve import serving
from waiting import BOUND_S

from sgc.errors import EngineUnavailable
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Generated, Sampling, TextRun

N_LONG = 1000
LONG = Sampling(max_tokens=N_LONG, ignore_eos=True)
ENDLESS = Sampling(max_tokens=30_000, ignore_eos=True)


@asynccontextmanager
async def asking(
    address: str, sampling: Sampling
) -> AsyncIterator[tuple[EngineBackend, asyncio.Task[Generated]]]:
    """A request that has begun to generate."""
    async with EngineBackend(address) as backend:
        texts: list[str] = []
        task = asyncio.create_task(backend.generate((TextRun("a"),), sampling, texts.append))
        while not texts:
            await asyncio.sleep(0.01)
        yield backend, task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def options(path: Path, seconds: float) -> tuple[str, ...]:
    return ("--listen", f"unix:{path}/s", "--drain-seconds", str(seconds))


def ended(process: subprocess.Popen[str]) -> None:
    assert process.wait(BOUND_S) == 0


def test_what_is_under_way_ends_and_new_requests_are_refused(tmp_path: Path) -> None:
    async def main(process: subprocess.Popen[str], address: str) -> None:
        async with asking(address, LONG) as (backend, task):
            process.send_signal(signal.SIGTERM)

            async def is_refused() -> bool:
                try:
                    await backend.generate((TextRun("b"),), Sampling(max_tokens=1))
                except EngineUnavailable as error:
                    return "is stopping; ask another" in str(error)
                return False

            while not await is_refused():
                assert not task.done(), "it ended before anything was refused"
                await asyncio.sleep(0.02)
            assert len((await task).ids) == N_LONG

    with serving(*options(tmp_path, 60)) as (process, address):
        asyncio.run(main(process, address))
        ended(process)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("seconds", "signals"),
    [
        (0.3, [signal.SIGTERM]),
        (60, [signal.SIGTERM, signal.SIGTERM]),
        (60, [signal.SIGINT]),
        (0, [signal.SIGTERM]),
    ],
)
def test_what_is_left_is_refused(tmp_path: Path, seconds, signals) -> None:
    async def main(process: subprocess.Popen[str], address: str) -> None:
        async with asking(address, ENDLESS) as (_, task):
            for each in signals:
                process.send_signal(each)
                await asyncio.sleep(0.1)
            with pytest.raises(EngineUnavailable):
                await asyncio.wait_for(task, BOUND_S)

    with serving(*options(tmp_path, seconds)) as (process, address):
        asyncio.run(main(process, address))
        ended(process)


@pytest.mark.slow
def test_without_requests_it_stops_at_once(tmp_path: Path) -> None:
    with serving(*options(tmp_path, 60)) as (process, _):
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        ended(process)
        assert time.monotonic() - begun < 30


@pytest.mark.parametrize("is_abstract", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_systemd_is_told_of_its_life(tmp_path: Path, is_abstract: bool) -> None:
    path = f"@sgc-test-{tmp_path.name}-{id(tmp_path)}" if is_abstract else f"{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind("\0" + path[1:] if is_abstract else path)
        told.settimeout(BOUND_S)
        with serving(*options(tmp_path, 5), NOTIFY_SOCKET=path) as (process, _):
            assert told.recv(100) == b"READY=1"
            process.send_signal(signal.SIGTERM)
            assert told.recv(100) == b"STOPPING=1"
            ended(process)
