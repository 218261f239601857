"""Twice what a server can do, offered to it over HTTP or gRPC: what is refused and how, what gets
done, and what memory that takes."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np
from storms.harness import Server, channel
from storms.steady import Memory, filled, growing
from storms.traffic import RETRYABLE, http_request

from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc

LEAST_SHARE = 0.9
RAMP = 0.3  # of a measurement, until the server's queue is full
N_SESSIONS = 4  # of gRPC, a connection each
WAIT_S = 120.0
FACES = ("HTTP", "gRPC")


@dataclass
class Load(ABC):
    """Requests that are offered, whether or not earlier ones have ended; the base of both faces."""

    max_tokens: int
    done: list[float] = field(default_factory=list)  # when
    outcomes: Counter[str] = field(default_factory=Counter)
    refused_s: list[float] = field(default_factory=list)  # how long each took
    wrong: Counter[str] = field(default_factory=Counter)
    rng: random.Random = field(default_factory=lambda: random.Random(7))

    @asynccontextmanager
    async def connected(self, server: Server) -> AsyncIterator[None]:
        yield

    async def one(self) -> None:
        text = f"{self.rng.random()} of a story that is to be told"
        start = time.monotonic()
        try:
            async with asyncio.timeout(WAIT_S):
                told, is_done, is_retryable = await self.ask(text)
        except (OSError, TimeoutError, grpc.RpcError) as error:
            self.wrong[type(error).__name__] += 1
            return
        self.outcomes[told] += 1
        if is_done:
            self.done.append(time.monotonic())
        elif is_retryable:
            self.refused_s.append(time.monotonic() - start)
        else:
            self.wrong[f"{told}, and not when to try again"] += 1

    @abstractmethod
    async def ask(self, text: str) -> tuple[str, bool, bool]:
        """What is told; whether the request was answered whole, or refused with a time to wait."""

    async def closed(self, n_clients: int, seconds: float) -> float:
        """Requests a second that n_clients get done, one after the other each."""
        end = time.monotonic() + seconds

        async def client() -> None:
            while time.monotonic() < end:
                await self.one()

        start = time.monotonic()
        await asyncio.gather(*(client() for _ in range(n_clients)))
        return self._rate(start, end)

    async def offered(self, rate: float, seconds: float) -> float:
        """Requests a second that get done while `rate` a second are offered."""
        loop = asyncio.get_running_loop()
        start, tasks, n = loop.time(), set[asyncio.Task[None]](), 0
        while loop.time() - start < seconds:
            task = asyncio.create_task(self.one())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            n += 1
            await asyncio.sleep(max(0.0, start + n / rate - loop.time()))
        end = loop.time()
        if tasks:
            await asyncio.wait(tasks)
        return self._rate(start, end)

    def _rate(self, start: float, end: float) -> float:
        """Requests a second that were done between the two, once the server was full."""
        start += RAMP * (end - start)
        return sum(start <= at < end for at in self.done) / (end - start)


@dataclass
class HttpLoad(Load):
    """Each request on a connection of its own."""

    port: int = 0

    @asynccontextmanager
    async def connected(self, server: Server) -> AsyncIterator[None]:
        self.port = server.http
        yield

    async def ask(self, text: str) -> tuple[str, bool, bool]:
        params = {"max_new_tokens": self.max_tokens, "ignore_eos": True}
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(http_request("/generate", {"text": text, "sampling_params": params}))
        found = await reader.read()
        writer.transport.abort()
        status = found[9:12].decode()
        if status == "200":
            body = json.loads(found.partition(b"\r\n\r\n")[2])
            return status, body["meta_info"]["completion_tokens"] == self.max_tokens, False
        return status, False, status in ("429", "503") and b"Retry-After:" in found


@dataclass
class GrpcLoad(Load):
    """All requests on a few sessions, as this system's own clients have them."""

    frames: list[asyncio.Queue[pb.ClientFrame | None]] = field(default_factory=list)
    waiting: dict[int, asyncio.Future[pb.Reply]] = field(default_factory=dict)
    ids: itertools.count[int] = field(default_factory=itertools.count)

    @asynccontextmanager
    async def connected(self, server: Server) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            reading = []
            for _ in range(N_SESSIONS):
                opened = await stack.enter_async_context(channel(server.target))
                self.frames.append(asyncio.Queue())
                stub = engine_pb2_grpc.EngineStub(opened)
                reading.append(asyncio.create_task(self._session(stub, self.frames[-1])))
            yield
            for queue in self.frames:
                queue.put_nowait(None)
            await asyncio.gather(*reading)

    async def _session(self, stub: Any, queue: asyncio.Queue[pb.ClientFrame | None]) -> None:
        async def frames() -> AsyncIterator[pb.ClientFrame]:
            while (frame := await queue.get()) is not None:
                yield frame

        async for frame in stub.Session(frames()):
            for reply in frame.replies:
                self.waiting.pop(reply.id).set_result(reply)

    async def ask(self, text: str) -> tuple[str, bool, bool]:
        number = next(self.ids)
        request = pb.Request(id=number)
        request.prompt.segments.add().text.text = text
        sampling = request.generate.sampling
        sampling.max_tokens, sampling.ignore_eos = self.max_tokens, True
        sampling.top_p, sampling.top_k, sampling.repetition_penalty = 1, -1, 1
        self.waiting[number] = asyncio.get_running_loop().create_future()
        self.frames[number % N_SESSIONS].put_nowait(pb.ClientFrame(requests=[request]))
        reply = await self.waiting[number]
        if reply.HasField("error"):
            code = reply.error.code
            told = pb.ErrorCode.Name(code).removeprefix("ERROR_CODE_")
            return told, False, code in RETRYABLE and reply.error.retry_after_s > 0
        return "generated", len(reply.generated.ids) == self.max_tokens, False


def load_of(face: str, max_tokens: int) -> Load:
    return GrpcLoad(max_tokens) if face == "gRPC" else HttpLoad(max_tokens)


async def overload(
    server: Server,
    seconds: float,
    rounds: int,
    max_tokens: int,
    n_clients: int = 64,
    face: str = "HTTP",
    fills: bool = False,
) -> dict[str, Any]:
    """By turns, as many clients as the server runs at once, and twice the requests they get done.
    So both are measured beside the same other load of the machine. fills: whether the cache of
    tokenized texts is full beforehand."""
    load, memory = load_of(face, max_tokens), Memory()
    if fills:
        await filled(server)
    watching = asyncio.create_task(memory.watch(server))
    peaks, overloaded = [], []
    async with load.connected(server):
        await load.closed(n_clients, min(5.0, seconds / 4))
        for _ in range(rounds):
            peaks.append(await load.closed(n_clients, seconds / rounds / 3))
            overloaded.append(await load.offered(2 * peaks[-1], seconds / rounds))
    watching.cancel()
    idle_s = await server.idle()
    ratios = [over / peak for over, peak in zip(overloaded, peaks, strict=True)]
    refused = np.array(load.refused_s or [0.0])
    return {
        "face": face,
        "seconds_overloaded": seconds,
        "peak_a_second": [round(x, 1) for x in peaks],
        "overloaded_a_second": [round(x, 1) for x in overloaded],
        "share_of_peak": round(float(np.mean(ratios)), 3),
        "share_of_peak_spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "outcomes": dict(load.outcomes),
        "wrong": dict(load.wrong.most_common(10)),
        "refused_within_ms": {
            f"p{p}": round(1000 * float(np.percentile(refused, p)), 1) for p in (50, 99, 100)
        },
        "most_waiting": memory.most_waiting,
        "most_unfinished": memory.most_unfinished,
        "idle_after_s": round(idle_s, 3),
        "memory": memory.after(0.4 * seconds).summary,
    }


def problems_of_overload(found: Mapping[str, Any], max_waiting: int) -> list[str]:
    said = [f"{n} x {what}" for what, n in found["wrong"].items()]
    said += growing(found["memory"], "overload")
    if found["share_of_peak"] < LEAST_SHARE:
        said.append(f"throughput is {found['share_of_peak']} of its peak")
    if found["most_waiting"] > max_waiting:
        said.append(f"{found['most_waiting']} requests waited")
    if not found["refused_within_ms"]["p100"]:
        said.append("nothing was refused: it was no overload")
    return said
