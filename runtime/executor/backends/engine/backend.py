"""Our engine as a backend, over gRPC: one multiplexed stream, many requests in a frame.

The only module of the executor that imports grpc; import it lazily. An object belongs to the
event loop it is first used in.

URIs:  grpc://host:port    plain text
       grpcs://host:port   TLS, the server's certificate checked for that host
       unix:/path          a Unix socket
Environment:
       SGC_TLS_CA          a PEM file of the certificates to trust, instead of the usual ones
       SGC_TOKEN           the token for the engine, printable ASCII, where none is given here
       GRPC_VERBOSITY      gRPC's own log; NONE if not set, as its errors are told by ours
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # grpc reads it when it is imported

import grpc
import grpc.aio

from sgc.errors import BackendError, EngineUnavailable, UsageError
from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc
from sgc.runtime.executor.backends import persistence
from sgc.runtime.executor.backends.engine import wire as wire
from sgc.runtime.executor.backends.engine.addresses import authorities, parse_uri, trusting
from sgc.runtime.executor.backends.engine.ends import error_of, unreachable
from sgc.runtime.executor.backends.engine.prefetches import Prefetches
from sgc.runtime.executor.backends.engine.probe import reason_unreachable
from sgc.runtime.executor.backends.engine.run_hints import with_hints, with_run
from sgc.runtime.executor.backends.engine.stream import Stream, copied
from sgc.runtime.executor.backends.persistence import Persistence, Shown
from sgc.runtime.executor.backends.retrying import retrying
from sgc.runtime.executor.interface.backend import (
    Backend,
    ChoiceScore,
    Generated,
    LogprobsAsked,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
    TextRun,
    TokenRun,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.telemetry.traceparent import TRACEPARENT

CONNECT_TIMEOUT_S = 5.0
UNARY_TIMEOUT_S = 60.0
MAX_IN_FLIGHT = 256  # of a client; the engine may allow fewer
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
]
T = TypeVar("T")


class EngineBackend(Backend):
    """A `Backend` (see `backend.py`) that speaks `engine.proto`."""

    def __init__(
        self,
        uri: str,
        token: str | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        request_timeout_s: float | None = None,
        reconnect_s: float = 0.0,
        metadata: Sequence[tuple[str, str]] = (),
        options: Sequence[tuple[str, int]] = (),
    ) -> None:
        """request_timeout_s: how long the engine may take for one request; the engine then ends the
        request. reconnect_s: how long to wait for an engine that is gone. metadata: of the stream,
        in addition to the token. options: of the connection; connections with equal options are
        shared."""
        self._uri = uri
        self._target, self._is_tls = parse_uri(uri)
        token = os.environ.get("SGC_TOKEN") if token is None else token
        if token and not (token.isascii() and token.isprintable()):
            raise UsageError("the engine's token (SGC_TOKEN) must be printable ASCII characters")
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._options = options
        self._of_stream = (*self._metadata, *metadata)
        self._timeout_s = connect_timeout_s
        self._request_timeout_s, self._reconnect_s = request_timeout_s, reconnect_s
        self._is_closed = False
        self._failure: tuple[float, EngineUnavailable] | None = None
        self._channel: grpc.aio.Channel | None = None
        self._stream: Stream | None = None
        self._info: pb.Info | None = None
        self._capabilities: Capabilities | None = None
        self._opening, self._asking = asyncio.Lock(), asyncio.Lock()
        self._ahead: Prefetches | None = None

    # The Backend interface.

    async def capabilities(self) -> Capabilities:
        if self._capabilities is None:
            self._capabilities = wire.capabilities_of(await self.info())
        return self._capabilities

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        message = wire.generate_message(sampling, on_delta is not None)
        request = wire.request_of(prompt, generate=message)
        reply = await self._ask(with_hints(request, prompt), on_delta)
        return wire.generated_of(wire.expected(reply, "generated").generated)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        texts = [wire.checked_text(text, "a choice") for text in choices]
        request = wire.request_of(prompt, score=pb.Score(choices=texts))
        reply = await self._ask(with_hints(request, prompt))
        scored = wire.scored_of(wire.expected(reply, "scored").scored)
        return await self._with_unconditional(scored) if unconditional else scored

    async def _with_unconditional(self, scored: Scored) -> Scored:
        """Adds the log-probabilities of each choice's tokens without the prompt: after the
        beginning of sequence if the model has one; else the first token has none."""
        asked = Sampling(max_tokens=0, temperature=0.0, logprobs=LogprobsAsked(start=0))
        work = [self.generate((TokenRun(each.ids, ""),), asked) for each in scored.choices]
        replies = await asyncio.gather(*work)
        usage = scored.usage
        choices: list[ChoiceScore] = []
        for each, reply in zip(scored.choices, replies, strict=True):
            assert reply.logprobs is not None
            own = reply.logprobs.input[-len(each.ids) :]
            choices.append(replace(each, unconditional=tuple(row[0] for row in own)))
            usage = usage.with_more(reply.usage)
        return Scored(tuple(choices), usage)

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        texts = [wire.checked_text(text, "a head") for text in heads]
        request = with_run(wire.request_of(prompt, commit=pb.Commit(heads=texts)))
        return wire.usage_of(wire.expected(await self._ask(request), "committed").committed.usage)

    async def prefetch(self, prompt: Prompt) -> Usage:
        if self._ahead is None:
            info = await self.info()
            self._ahead = self._ahead or Prefetches(self._prefetch, info.max_in_flight)
        return await self._ahead.get(prompt)

    async def _prefetch(self, prompt: Prompt) -> Usage:
        request = wire.request_of(prompt, prefetch=pb.Prefetch())
        reply = await self._ask(request, max_refusals=1)
        return wire.usage_of(wire.expected(reply, "committed").committed.usage)

    def with_adapter(self, name: str) -> EngineBackend:
        return _Adapted(self, name)

    async def close(self) -> None:
        """Ends the stream and the connection; unfinished calls fail."""
        self._is_closed = True
        stream, self._stream = self._stream, None
        channel, self._channel = self._channel, None
        if stream is not None:
            await stream.close()
        if channel is not None:
            await channel.close()

    # Beyond the interface.

    async def info(self, is_anew: bool = False) -> pb.Info:
        """The engine's description of itself, requested once, or anew."""
        async with self._asking:
            if self._info is None or is_anew:
                self._info = await self._unary("GetInfo", pb.InfoRequest())
            return self._info

    async def stats(self) -> pb.Stats:
        """Counters of the engine since it started."""
        stats: pb.Stats = await self._unary("GetStats", pb.StatsRequest())
        return stats

    async def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """A vector of each text, as the model returns it (docs/embeddings.md)."""
        prompts = [(TextRun(wire.checked_text(text, "a text to embed")),) for text in texts]
        asked = [wire.request_of(prompt, embed=pb.Embed()) for prompt in prompts]
        replies = await asyncio.gather(*(self._ask(request) for request in asked))
        return [tuple(wire.expected(reply, "embedded").embedded.vector) for reply in replies]

    async def flush_cache(self) -> int:
        """Drops every cached prefix that no running request uses; returns the tokens freed."""
        reply = await self._unary("FlushCache", pb.FlushCacheRequest())
        if self._ahead is not None:
            self._ahead.forget()
        return int(reply.freed_tokens)

    async def pass_on(self, request: pb.Request, on_delta: OnDelta | None) -> pb.Reply:
        """The final reply to a message, which may be an error; sends the message once. Raises
        BackendError if there is no reply."""
        stream = self._stream
        if stream is None or not stream.is_open:
            await self.info()
            stream = await self._open_stream()
        return await stream.reply_to(request, request.ByteSize(), on_delta)

    async def channel(self) -> grpc.aio.Channel | None:
        """A connection that is ready, for other services; raises EngineUnavailable."""
        await self._connected()
        return self._channel

    # Asking.

    async def _ask(
        self, request: pb.Request, on_delta: OnDelta | None = None, max_refusals: int | None = None
    ) -> pb.Reply:
        """The final reply; tries again if the engine has no room, or is gone and comes back
        (`persistence.py`)."""
        most = persistence.MAX_REFUSALS if max_refusals is None else max_refusals
        info = self._info or await self.info()
        if self._request_timeout_s is not None:
            request.timeout_s = self._request_timeout_s
        request.traceparent = TRACEPARENT.get()
        size, limit = request.ByteSize(), info.max_message_bytes - 1024
        if size > limit:
            raise wire.too_large(request, size, limit)
        shown = None if on_delta is None else Shown(on_delta)
        going = Persistence(most, self._reconnect_s)

        async def once() -> pb.Reply:
            if self._is_closed:
                raise EngineUnavailable("the connection to the engine was closed")
            stream = self._stream
            if stream is None or not stream.is_open:
                stream = await self._open_stream()
            if shown is not None:
                shown.begin()
            try:
                return await stream.ask(request, size, None if shown is None else shown.take)
            except EngineUnavailable:
                if not stream.is_open:
                    going.lost()
                raise

        def goes_on(error: BackendError, wait_s: float) -> bool:
            return not self._is_closed and going.goes_on(error, wait_s)

        reply = await retrying(persistence.RETRIES, once, goes_on)
        if shown is not None:
            shown.check(reply.generated.text)
        return reply

    async def _open_stream(self) -> Stream:
        asked_at = time.monotonic()
        async with self._opening:
            if self._stream is not None and self._stream.is_open:
                return self._stream
            if self._failure is not None and self._failure[0] > asked_at:
                raise copied(self._failure[1])  # another request has just tried
            try:
                stub = await self._connected()
                if self._stream is not None:
                    await self._meet_again(stub)
            except EngineUnavailable as error:
                self._failure = (time.monotonic(), error)
                raise
            assert self._info is not None
            call = stub.Session(metadata=self._of_stream)
            most = min(MAX_IN_FLIGHT, self._info.max_in_flight)
            self._stream = Stream(call, self._error_of, max(1, most))
            return self._stream

    async def _meet_again(self, stub: Any) -> None:
        """Raises BackendError if an engine that was gone is now another one."""
        known, info = self._info, await self._called(stub, "GetInfo", pb.InfoRequest())
        assert known is not None
        if wire.identity(known) != wire.identity(info):
            raise BackendError(
                f"the engine at {self._uri} is another one now: {info.model}, not {known.model}",
                hint="its model, tokenizer or template changed: start the run again",
            )
        self._info = info
        if self._ahead is not None:
            self._ahead.forget()

    async def _unary(self, method: str, request: Any) -> Any:
        return await self._called(await self._connected(), method, request)

    async def _called(self, stub: Any, method: str, request: Any) -> Any:
        call: Callable[..., Awaitable[Any]] = getattr(stub, method)
        try:
            return await call(request, metadata=self._metadata, timeout=UNARY_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise self._error_of(error) from error

    async def _connected(self) -> Any:
        """The service's stub on a ready channel; raises `EngineUnavailable` on timeout, or at once
        if waiting would not help."""
        if self._channel is None:
            self._channel = self._new_channel()
        channel = self._channel
        try:
            await asyncio.wait_for(self._wait_ready(channel), self._timeout_s)
        except TimeoutError as error:
            raise unreachable(self._uri, f"no answer within {self._timeout_s:g} s") from error
        return engine_pb2_grpc.EngineStub(channel)  # type: ignore[no-untyped-call]

    async def _wait_ready(self, channel: grpc.aio.Channel) -> None:
        while True:
            state = channel.get_state(try_to_connect=True)
            if state is grpc.ChannelConnectivity.READY:
                return
            if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                tls = trusting(authorities()) if self._is_tls else None
                if why := await reason_unreachable(self._target, tls):
                    raise unreachable(self._uri, why)
            await channel.wait_for_state_change(state)

    def _new_channel(self) -> grpc.aio.Channel:
        options = [*OPTIONS, *self._options]
        if not self._is_tls:
            return grpc.aio.insecure_channel(self._target, options=options)
        roots = authorities()
        if roots is not None:
            trusting(roots)  # raises if it is not a certificate
        credentials = grpc.ssl_channel_credentials(roots)
        return grpc.aio.secure_channel(self._target, credentials, options=options)

    def _error_of(self, error: grpc.RpcError | None) -> BackendError:
        return error_of(error, self._uri, UNARY_TIMEOUT_S)


class _Adapted(EngineBackend):
    """The same connection, whose requests ask for an adapter."""

    def __init__(self, engine: EngineBackend, adapter: str) -> None:
        self._engine, self._adapter = engine, adapter
        self._ahead, self._capabilities = None, None

    def with_adapter(self, name: str) -> EngineBackend:
        return self._engine.with_adapter(name)

    async def capabilities(self) -> Capabilities:
        """The engine's capabilities, with the adapter's fingerprint. Raises UsageError if the
        engine has no adapter of that name."""
        if self._capabilities is None:
            info, found = await self.info(), await self._engine.capabilities()
            served = {each.name: each.fingerprint for each in info.adapters}
            if self._adapter not in served:
                raise UsageError(
                    f"the engine has no adapter {self._adapter!r}; it has: "
                    f"{', '.join(served) or 'none'}",
                    hint="start it with `sgc serve --adapter NAME=FOLDER`",
                )
            prints = {**found.fingerprints, "adapter": served[self._adapter]}
            self._capabilities = replace(found, fingerprints=prints)
        return self._capabilities

    async def info(self, is_anew: bool = False) -> pb.Info:
        return await self._engine.info(is_anew)

    async def close(self) -> None:
        """Does nothing: the connection is the engine's."""

    async def _ask(
        self, request: pb.Request, on_delta: OnDelta | None = None, max_refusals: int | None = None
    ) -> pb.Reply:
        request.adapter = self._adapter
        return await self._engine._ask(request, on_delta, max_refusals)

    async def _unary(self, method: str, request: Any) -> Any:
        return await self._engine._unary(method, request)
