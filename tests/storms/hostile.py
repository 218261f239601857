"""What hostile and slow clients do to a healthy one: its p99 beside each attack and beside the same
attack on ports that discard all, by turns; the server's memory; how quickly it refuses.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import multiprocessing
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import grpc.aio
import numpy as np
from attacks import Target
from storms.attackers import ATTACKS, SETTLE_S
from storms.harness import MIB, Server, bearer, channel
from storms.isolation import generation, prompt_of

from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc

TIMEOUT_S = 10.0
KINDS = ("grpc", "http", "refused")
MOST_RATIO = 2.0
MOST_REFUSAL_MS = 100.0
MOST_MIB = 600.0  # bodies in progress may hold 256 MiB
PROCESSES = multiprocessing.get_context("spawn")


@dataclass
class Times:
    """Of a healthy client's requests, by kind; an unanswered one counts as TIMEOUT_S."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)

    def of(self, percent: float) -> dict[str, float]:
        return {
            kind: round(1000 * float(np.percentile(x, percent)), 2)
            for kind, x in self.seconds.items()
        }


def attacker(pipe: Connection, name: str, target: Target) -> None:
    """The main function of a process that attacks."""
    pipe.send(name)
    asyncio.run(_attack(name, target))


async def _attack(name: str, target: Target) -> None:
    await ATTACKS[name](target)


@contextmanager
def running(work: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """Runs a function in a process until the block ends; yields its first message."""
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=work, args=(theirs, *arguments), daemon=True)
    process.start()
    try:
        assert ours.poll(60), "a process of the storm did not start"
        yield ours.recv()
    finally:
        process.kill()
        process.join()


class Healthy:
    """A client that asks at a steady rate over gRPC and HTTP, whether or not earlier requests have
    ended, and one whose requests must be refused."""

    def __init__(self, server: Server, token: str) -> None:
        self._server, self._token = server, token
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def asks(
        self, times: Times, rate: float, seconds: float, kinds: Sequence[str] = KINDS
    ) -> None:
        async with channel(self._server.target) as opened:
            stub = engine_pb2_grpc.EngineStub(opened)

            async def grpc_(n: int) -> None:
                call = stub.Session(metadata=bearer(self._token) if self._token else ())
                asked = generation(n, prompt_of(f"Hello {n % 7}"))
                asked.generate.sampling.max_tokens = 4
                await call.write(pb.ClientFrame(requests=[asked]))
                frame = await call.read()
                call.cancel()
                assert frame is not grpc.aio.EOF

            every = {"grpc": grpc_, "http": self._http, "refused": self._refused}
            threads = ThreadPoolExecutor(64)
            asyncio.get_running_loop().set_default_executor(threads)
            work = [self._steadily(times, kind, every[kind], rate, seconds) for kind in kinds]
            await asyncio.gather(*work)

    async def _http(self, n: int) -> None:
        body = {"text": f"Hello {n % 7}", "sampling_params": {"max_new_tokens": 4}}
        status = await asyncio.to_thread(self._ask, "/generate", body, self._headers)
        assert status == 200, status

    async def _refused(self, n: int) -> None:
        """A wrong field, and where there are tokens, a wrong one."""
        wrong = {"Authorization": "Bearer wrong"} if n % 2 and self._token else self._headers
        status = await asyncio.to_thread(self._ask, "/generate", {"no": 1}, wrong)
        assert status in (400, 401), status

    def _ask(self, path: str, body: Any, headers: Mapping[str, str]) -> int:
        port = self._server.http
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        connection.connect()
        assert connection.sock is not None
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.request("POST", path, json.dumps(body), dict(headers))
        reply = connection.getresponse()
        reply.read()
        connection.close()
        return reply.status

    async def _steadily(
        self,
        times: Times,
        kind: str,
        ask: Callable[[int], Awaitable[None]],
        rate: float,
        seconds: float,
    ) -> None:
        start, found = time.perf_counter(), times.seconds.setdefault(kind, [])

        async def one(n: int, due: float) -> None:
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await ask(n)
            except Exception as error:  # whatever it is, the client was not served
                times.failed[f"{kind}: {type(error).__name__} {error}"[:100]] += 1
                found.append(TIMEOUT_S)
            else:
                found.append(time.perf_counter() - due)

        async with asyncio.TaskGroup() as group:
            for n in range(int(rate * seconds)):
                due = start + n / rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(one(n, due))


async def _memory(server: Server, found: list[float]) -> None:
    while True:
        found.append(sum(each.n_bytes for each in server.samples().values()) / MIB)
        await asyncio.sleep(0.2)


def hostile_storm(
    server: Server, name: str, nowhere: Target, rounds: int, seconds: float, rate: float = 25.0
) -> dict[str, Any]:
    """One attack, by turns on the server and on ports that discard all."""
    token = server.token
    healthy, calm, beside = Healthy(server, token), Times(), Times()
    memory: list[float] = []
    before = sum(each.n_bytes for each in server.samples().values()) / MIB

    async def measured(times: Times) -> None:
        watching = asyncio.create_task(_memory(server, memory))
        await healthy.asks(times, rate, seconds)
        watching.cancel()

    target = Target(server.http, server.grpc)
    for _ in range(rounds):
        for at, times in ((nowhere, calm), (target, beside)):
            with running(attacker, name, at):
                time.sleep(SETTLE_S.get(name, 2.0) if at is target else 2.0)
                asyncio.run(measured(times))
    time.sleep(1)
    stats = asyncio.run(server.stats())
    p99, p99_calm = beside.of(99), calm.of(99)
    return {
        "n": {kind: len(x) for kind, x in beside.seconds.items()},
        "p50_ms": {"discarded": calm.of(50), "attacked": beside.of(50)},
        "p99_ms": {"discarded": p99_calm, "attacked": p99},
        "ratio_of_p99": {kind: round(p99[kind] / p99_calm[kind], 2) for kind in p99},
        "failed": dict(beside.failed),
        "failed_beside_the_discarding_port": dict(calm.failed),
        "mib_before": round(before, 1),
        "most_mib": round(max(memory), 1),
        "left": {"sessions": stats.sessions, "requests": stats.in_flight_requests},
    }


def problems(found: Mapping[str, Any]) -> list[str]:
    said = []
    for name, each in found.items():
        ratios = {kind: x for kind, x in each["ratio_of_p99"].items() if x > MOST_RATIO}
        said += [f"{name}: p99 of {kind} x{x}" for kind, x in ratios.items()]
        said += [f"{name}: {n} x {what}" for what, n in each["failed"].items()]
        if each["most_mib"] - each["mib_before"] > MOST_MIB:
            said.append(f"{name}: {each['most_mib']} MiB")
    return said
