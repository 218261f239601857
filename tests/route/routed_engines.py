"""Engines of tests, and a router before them."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio

from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc
from sgc.route.engines import Engines
from sgc.route.lines import GrpcFace
from sgc.route.service import serving_grpc
from sgc.runtime.engine.server.accounts.tokens import Tokens
from sgc.runtime.engine.server.listen import Address, Security


class Engine(engine_pb2_grpc.EngineServicer):
    """Replies with what it was asked in capitals, in two deltas. breaks: after so many requests it
    ends its stream in the middle of each text; is_silent: it does not reply; refuses: it is full;
    says: another text."""

    def __init__(self, name: str, model: str = "m", token: str = "", says: str = "") -> None:
        self.name, self.model, self.token, self.says = name, model, token, says
        self.breaks: int | None = None
        self.is_silent = self.refuses = self.leaves = self.is_away = False
        self.asked: list[pb.Request] = []
        self.cancelled: list[int] = []
        self.metadata: list[dict[str, str]] = []
        self.address = ""

    async def GetInfo(self, request, context):
        await self._check(context)
        await asyncio.sleep(0.02 if self.is_away else 0)
        if self.is_away:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        return pb.Info(model=self.model, max_context=100, max_in_flight=64, pool_tokens=4000,
                       max_message_bytes=1 << 20)  # fmt: skip

    async def GetStats(self, request, context):
        return pb.Stats(requests=len(self.asked), pool_tokens=1000, forward_s=0.5)

    async def FlushCache(self, request, context):
        return pb.FlushCacheReply(freed_tokens=5)

    async def _check(self, context) -> None:
        given = dict(context.invocation_metadata())
        self.metadata.append(given)
        if self.token and given.get("authorization") != f"Bearer {self.token}":
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "a valid token is required")

    async def Session(self, frames, context):
        await self._check(context)
        async for frame in frames:
            self.cancelled += frame.cancels
            for request in frame.requests:
                await self._answer(request, context)

    async def _answer(self, request, context) -> None:
        self.asked.append(request)
        if self.is_silent:
            return
        reply = pb.Reply(id=request.id)
        for is_so, code in ((self.refuses, 3), (self.leaves, 4)):
            if is_so:
                reply.error.code, reply.error.message = code, f"{self.name} has no room"
                await context.write(pb.ServerFrame(replies=[reply]))
                return
        text = self.says or request.prompt.segments[0].text.text.upper()
        for part in (text[:1], text[1:]) if request.generate.stream else ():
            delta = pb.Reply(id=request.id, delta=pb.Delta(text=part))
            await context.write(pb.ServerFrame(replies=[delta]))
            if self.breaks is not None and len(self.asked) > self.breaks:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        reply.generated.text, reply.generated.finish_reason = text, 1
        reply.generated.usage.prompt_tokens = reply.generated.usage.cached_tokens = 100
        await context.write(pb.ServerFrame(replies=[reply]))

    @contextlib.asynccontextmanager
    async def serving(self, folder: str) -> AsyncIterator[None]:
        server = grpc.aio.server()
        engine_pb2_grpc.add_EngineServicer_to_server(self, server)
        self.address = f"unix:{folder}/{self.name}"
        server.add_insecure_port(self.address)
        await server.start()
        try:
            yield
        finally:
            await server.stop(0)


class Routed:
    """A client's stream to a router, and the router's engines."""

    def __init__(self, stub, engines: Engines, uri: str) -> None:
        self.stub, self.engines, self.uri = stub, engines, uri

    async def ask(self, *texts: str, token: str = "", **fields) -> list[pb.Reply]:
        """The final replies, in the order asked; their deltas' text in `head`."""
        requests = [request(n, text, **fields) for n, text in enumerate(texts)]
        metadata = (("authorization", f"Bearer {token}"),) if token else ()
        call = self.stub.Session(metadata=metadata)
        await call.write(pb.ClientFrame(requests=requests))
        await call.done_writing()
        found: dict[int, pb.Reply] = {}
        shown = [""] * len(texts)
        async for frame in call:
            for reply in frame.replies:
                if reply.HasField("delta"):
                    shown[reply.id] += reply.delta.text
                else:
                    found[reply.id] = reply
        for n, reply in found.items():
            if reply.HasField("generated"):
                reply.generated.head = shown[n]
        return [found[n] for n in range(len(texts))]


def request(number: int, text: str, stream: bool = True, **fields) -> pb.Request:
    made = pb.Request(id=number, **fields)
    made.prompt.segments.add().text.text = text
    made.generate.stream = stream
    made.generate.sampling.max_tokens = 9
    return made


@contextlib.asynccontextmanager
async def routed(
    *engines: Engine, used: int | None = None, own: str = "", tokens: tuple[str, ...] = ()
) -> AsyncIterator[Routed]:
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for engine in engines:
            await stack.enter_async_context(engine.serving(folder))
        behind, face = Engines(), GrpcFace(own)
        behind.faces.append(face)
        behind.set([engine.address for engine in engines][:used])
        await behind.meet()
        address = Address(path=Path(folder) / "router")
        security = Security(Tokens(tokens))
        uri = await stack.enter_async_context(serving_grpc(behind, face, address, security))
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(uri))
        yield Routed(engine_pb2_grpc.EngineStub(channel), behind, uri)
        assert all(row["running"] == row["waiting_work"] == 0 for row in behind.rows())


def texts(replies: list[pb.Reply]) -> list[str]:
    return [reply.generated.text for reply in replies]
