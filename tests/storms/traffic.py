"""Clients of every kind, of which about half give up at some stage: over gRPC and HTTP, streamed
and not. What a client does is drawn from its generator, so a seed repeats it (but for timing).

A *stage* is when a client gives up: before its request is whole, while it waits, while its prompt
is computed, after the first text, or after the last one, which it does not read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import struct
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import grpc
import grpc.aio
from storms.harness import Server, bearer, channel

from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc

N_CHANNELS = 6
MOST_AT_ONCE = 12  # requests of one gRPC session
WAIT_S = 60.0  # a request that takes longer is stuck
WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "and",
    "then",
    "it",
    "sleeps",
]
REGEXES = ("[a-z ]{1,20}", "(yes|no)[.!]?", r"\d{3}-\d{4}", "[ab]{5}c*")
RETRYABLE = {pb.ERROR_CODE_RESOURCE_EXHAUSTED, pb.ERROR_CODE_UNAVAILABLE}
RETRYABLE_STATUS = {429, 503}


class Stage(Enum):
    NEVER = "never"
    BEFORE = "before admission"
    QUEUE = "in the queue"
    PREFILL = "in prefill"
    DECODE = "mid decode"
    UNREAD = "after the last token, unread"


GIVES_UP = tuple(stage for stage in Stage if stage is not Stage.NEVER)


@dataclass
class Traffic:
    """What clients did, and what they found. wrong: what no client should have found."""

    seed: int
    share_given_up: float = 0.5
    tokens: tuple[str, ...] = ()
    max_tokens: int = 24
    model: str = "fake"
    kinds: Counter[str] = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    n_done: int = 0
    n_given: int = 0
    is_over: bool = False

    async def run(self, server: Server, n: int, n_clients: int = 48, rate: float = 0.0) -> None:
        """Makes n requests, by n_clients at a time. rate: most of a second; 0 is no bound."""
        self.n_given, until = 0, n
        loop = asyncio.get_running_loop()
        start = loop.time()
        channels = [channel(server.target) for _ in range(N_CHANNELS)]

        async def client(number: int) -> None:
            rng = random.Random(self.seed * 1000 + number)
            while self.n_given < until and not self.is_over:
                many = 1 if number % 2 else min(rng.randint(1, MOST_AT_ONCE), until - self.n_given)
                self.n_given += many
                if number % 2:
                    await self._http(server.http, rng)
                else:
                    await self._session(channels, server.target, rng, many)
                if rate:
                    await asyncio.sleep(max(0.0, start + self.n_given / rate - loop.time()))

        try:
            async with asyncio.TaskGroup() as group:
                for number in range(n_clients):
                    group.create_task(client(number))
        finally:
            for each in channels:
                await each.close()

    def _stage(self, rng: random.Random) -> Stage:
        gives_up = rng.random() < self.share_given_up
        stage = rng.choice(GIVES_UP) if gives_up else Stage.NEVER
        self.stages[stage.value] += 1
        return stage

    def _told(self, code: int | str, is_retryable: bool) -> None:
        (self.refused if is_retryable else self.wrong)[str(code)] += 1

    # gRPC.

    async def _session(
        self, channels: list[grpc.aio.Channel], target: str, rng: random.Random, n: int
    ) -> None:
        """One session with n requests, some of which it cancels; it may leave without a word."""
        self.kinds["grpc"] += n
        leaves = rng.random() < 0.3  # as a whole, at one stage; else its requests are cancelled
        stage = self._stage(rng) if leaves else Stage.NEVER
        if leaves:
            self.stages[stage.value] += n - 1
        own = channel(target) if leaves and rng.random() < 0.2 else None
        stub = engine_pb2_grpc.EngineStub(own or rng.choice(channels))
        metadata = bearer(rng.choice(self.tokens)) if self.tokens else ()
        call = stub.Session(metadata=metadata)
        try:
            async with asyncio.timeout(WAIT_S):
                plan = {i: stage if leaves else self._stage(rng) for i in range(n)}
                if leaves and stage is not Stage.NEVER:
                    await self._leave(call, rng, plan, stage)
                else:
                    await self._follow(call, rng, plan)
        except grpc.aio.AioRpcError as error:
            code = error.code()
            retryable = {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE}
            self._told(code.name, code in retryable)
        except TimeoutError:
            self.wrong["a gRPC request was not answered"] += 1
        finally:
            call.cancel()
            if own is not None:
                await own.close()

    async def _leave(self, call: Any, rng: random.Random, plan: Any, stage: Stage) -> None:
        requests = [request_of(i, rng, self.max_tokens) for i in plan]
        await call.write(pb.ClientFrame(requests=requests))
        if stage is Stage.DECODE:
            await call.read()
        else:
            await asyncio.sleep(_pause(rng, stage))

    async def _follow(self, call: Any, rng: random.Random, plan: dict[int, Stage]) -> None:
        requests = [request_of(i, rng, self.max_tokens) for i in plan]
        at_once = [i for i, stage in plan.items() if stage is Stage.BEFORE]
        await call.write(pb.ClientFrame(requests=requests, cancels=at_once))
        left = set(plan) - set(at_once)
        for stage in (Stage.QUEUE, Stage.PREFILL):
            await self._cancel_after(call, rng, plan, left, stage)
        while left:
            frame = await call.read()
            if frame is grpc.aio.EOF:
                self.wrong["a session ended before its replies"] += 1
                return
            cancelled = []
            for reply in frame.replies:
                kind = reply.WhichOneof("kind")
                if kind == "delta":
                    if plan[reply.id] is Stage.DECODE and reply.id in left:
                        cancelled.append(reply.id)
                        left.discard(reply.id)
                    continue
                left.discard(reply.id)
                self.n_done += kind != "error"
                if kind == "error":
                    code = reply.error.code
                    self._told(
                        f"{pb.ErrorCode.Name(code)}: {reply.error.message[:80]}", code in RETRYABLE
                    )
            if cancelled:
                await call.write(pb.ClientFrame(cancels=cancelled))
        await call.done_writing()
        while (frame := await call.read()) is not grpc.aio.EOF:  # those that a cancel crossed with
            if any(plan[reply.id] is Stage.NEVER for reply in frame.replies):
                self.wrong["a second reply"] += 1

    async def _cancel_after(
        self, call: Any, rng: random.Random, plan: dict[int, Stage], left: set[int], stage: Stage
    ) -> None:
        ids = [i for i in left if plan[i] is stage]
        if ids:
            await asyncio.sleep(_pause(rng, stage))
            left.difference_update(ids)
            await call.write(pb.ClientFrame(cancels=ids))

    # HTTP.

    async def _http(self, port: int, rng: random.Random) -> None:
        """One request on a connection of its own."""
        self.kinds["http"] += 1
        stage = self._stage(rng)
        path, body, is_stream = body_of(rng, self.max_tokens, self.model)
        if stage is Stage.DECODE and not is_stream:
            stage = Stage.PREFILL
        data = http_request(path, body, rng.choice(self.tokens) if self.tokens else "")
        try:
            async with asyncio.timeout(WAIT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    await self._ask(reader, writer, data, stage, rng)
                finally:
                    close(writer, with_reset=rng.random() < 0.5)
        except TimeoutError:
            self.wrong["an HTTP request was not answered"] += 1
        except OSError as error:
            self.wrong[f"HTTP {type(error).__name__}"] += 1

    async def _ask(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        data: bytes,
        stage: Stage,
        rng: random.Random,
    ) -> None:
        if stage is Stage.BEFORE:
            writer.write(data[: rng.randrange(len(data))])
            await asyncio.sleep(_pause(rng, stage))
            return
        writer.write(data)
        if stage is Stage.DECODE:
            await reader.read(1)
        if stage is not Stage.NEVER:
            await asyncio.sleep(_pause(rng, stage))
            return
        found = await reader.read()
        status = int(found[9:12] or b"0")
        if status == 200:
            self.n_done += 1
        else:
            told = b"Retry-After:" in found and status in RETRYABLE_STATUS
            self._told(status if told else f"{status}: {found[-200:]!r}", told)


def _pause(rng: random.Random, stage: Stage) -> float:
    """How long a client goes on after it has sent its request."""
    most_s = {Stage.BEFORE: 0.002, Stage.QUEUE: 0.002, Stage.PREFILL: 0.02, Stage.UNREAD: 0.3}
    return rng.random() * most_s.get(stage, 0.002)


def close(writer: asyncio.StreamWriter, with_reset: bool) -> None:
    """Ends a connection at once; with a reset (RST) in place of an orderly end."""
    connection = writer.get_extra_info("socket")
    if with_reset and connection is not None:
        with contextlib.suppress(OSError):
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


# What is asked.


def text_of(rng: random.Random) -> str:
    """Some begin alike, some are new, and one in eight is long enough for several steps."""
    n = rng.choice((4, 6, 8, 10, 12, 20, 40, 600))
    begin = f"Story {rng.randrange(8)}. " if rng.random() < 0.5 else f"{rng.random()} "
    return begin + " ".join(rng.choice(WORDS) for _ in range(n))


def sampling_of(rng: random.Random, max_tokens: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "max_tokens": rng.randint(1, max_tokens),
        "temperature": rng.choice((0.0, 0.7, 1.0)),
        "top_p": rng.choice((1.0, 0.9)),
        "ignore_eos": rng.random() < 0.5,
    }
    draw = rng.random()
    if draw < 0.1:
        found["regex"] = rng.choice(REGEXES)
    elif draw < 0.2:
        found["stop"] = ["zz", "."]
    elif draw < 0.25:
        found["frequency_penalty"] = 0.5
    return found


def request_of(number: int, rng: random.Random, max_tokens: int = 24) -> pb.Request:
    prompt = pb.Prompt(segments=[pb.Segment(text=pb.TextRun(text=text_of(rng)))])
    made = pb.Request(id=number, prompt=prompt)
    draw = rng.random()
    if draw < 0.08:
        made.score.choices.extend(["yes", "no", "maybe so"])
    elif draw < 0.14:
        made.commit.SetInParent()
    elif draw < 0.2:
        made.prefetch.SetInParent()
    elif draw < 0.23:
        made.embed.SetInParent()
    else:
        sampling = sampling_of(rng, max_tokens)
        fixed = {"top_k": -1, "repetition_penalty": 1.0, "seed": rng.getrandbits(32)}
        made.generate.sampling.MergeFrom(pb.Sampling(**fixed, **sampling))
        made.generate.stream = rng.random() < 0.6
        if rng.random() < 0.3:
            made.run.id = rng.getrandbits(16)
    return made


def body_of(rng: random.Random, max_tokens: int, model: str) -> tuple[str, dict[str, Any], bool]:
    """A path, a body for it, and whether the reply is a stream."""
    text, is_stream = text_of(rng), rng.random() < 0.6
    sampling = sampling_of(rng, max_tokens)
    draw = rng.random()
    if draw < 0.4:
        params = {**sampling, "max_new_tokens": sampling["max_tokens"]}
        del params["max_tokens"]
        if rng.random() < 0.2:
            params["n"] = rng.randint(2, 4)
        return (
            "/generate",
            {"text": text, "sampling_params": params, "stream": is_stream},
            is_stream,
        )
    more = {"model": model, "stream": is_stream, **sampling}
    if draw < 0.7:
        messages = [{"role": "user", "content": text}]
        return "/v1/chat/completions", {"messages": messages, **more}, is_stream
    if draw < 0.9:
        return "/v1/completions", {"prompt": text, **more}, is_stream
    if draw < 0.95:
        return "/v1/embeddings", {"model": model, "input": [text, text[:40]]}, False
    return "/tokenize", {"prompt": text}, False


def http_request(path: str, body: dict[str, Any], token: str = "") -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data
