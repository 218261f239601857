"""Connections that do nothing take neither face's file descriptors from the other."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from storms.harness import Server
from storms.hostile import Healthy, Times

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.process import descriptors

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "most"),
    [
        (1024, 1 << 20, 1664, 512),
        (1024, resource.RLIM_INFINITY, 1664, 512),
        (1024, 1024, 1024, 298),
        (20_000, 20_000, None, 512),
        (64, 64, 64, 16),
    ],
)
def test_there_are_descriptors_for_all_connections(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int | None, most: int
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append(limits[0]))
    assert descriptors.max_connections.__wrapped__() == most
    assert asked == ([] if raised is None else [raised])


@contextmanager
def limited(n: int) -> Iterator[None]:
    """Processes that are started within may have n files open, as by default on most systems."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (n, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
def test_idle_grpc_connections_hold_up_neither_http_nor_those_that_are_connected() -> None:
    async def main(server: Server) -> None:
        async with server.stub() as stub:
            await stub.GetStats(pb.StatsRequest())
            held = [await asyncio.open_connection("127.0.0.1", server.grpc) for _ in range(1200)]
            for _, writer in held:
                writer.write(PREFACE)
            await asyncio.sleep(1)
            assert server.samples()["server"].n_descriptors < 700
            times = Times()
            await Healthy(server, "").asks(times, rate=10, seconds=1, kinds=("http", "refused"))
            assert not times.failed
            await stub.GetStats(pb.StatsRequest())
            for _, writer in held:
                writer.close()
            await asyncio.sleep(1)
        await Healthy(server, "").asks(times, rate=10, seconds=1)
        assert not times.failed

    with limited(1024):
        server = Server("fake").__enter__()
    try:
        asyncio.run(main(server))
    finally:
        server.__exit__()
