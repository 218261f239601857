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
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # grpc reads it when it is imported

import grpc
import grpc.aio

from sgc.errors import BackendError, ContextExceeded, EngineUnavailable, Overloaded, UsageError
from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc
from sgc.runtime.executor.backends.engine import wire as wire
from sgc.runtime.executor.backends.engine.prefetches import Prefetches
from sgc.runtime.executor.backends.engine.probe import reason_unreachable
from sgc.runtime.executor.backends.engine.stream import Stream
from sgc.runtime.executor.backends.retrying import Retries, retrying
from sgc.runtime.executor.hints.ahead import told
from sgc.runtime.executor.hints.last_use import reusable
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

CONNECT_TIMEOUT_S = 5.0
UNARY_TIMEOUT_S = 60.0
RETRIES = Retries((Overloaded,), max_tries=6, first_wait_s=0.1, least=0.5)
ONE_TRY = replace(RETRIES, max_tries=1)
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
MAX_REMAINING = 1 << 24  # tokens of a program; an engine refuses more
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
    ) -> None:
        """request_timeout_s: how long the engine may take for one request; it ends it then."""
        self._uri = uri
        self._target, self._is_tls = _parse_uri(uri)
        token = os.environ.get("SGC_TOKEN") if token is None else token
        if token and not (token.isascii() and token.isprintable()):
            raise UsageError("the engine's token (SGC_TOKEN) must be printable ASCII characters")
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._timeout_s = connect_timeout_s
        self._request_timeout_s = request_timeout_s
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
        reply = await self._ask(_with_hints(request, prompt), on_delta)
        return wire.generated_of(_expected(reply, "generated").generated)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        texts = [wire.checked_text(text, "a choice") for text in choices]
        request = wire.request_of(prompt, score=pb.Score(choices=texts))
        reply = await self._ask(_with_hints(request, prompt))
        scored = wire.scored_of(_expected(reply, "scored").scored)
        return await self._with_unconditional(scored) if unconditional else scored

    async def _with_unconditional(self, scored: Scored) -> Scored:
        """Adds the log-probabilities of each choice's tokens without the prompt: after the
        beginning of sequence where the model has one, else the first has none."""
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
        request = _with_run(wire.request_of(prompt, commit=pb.Commit(heads=texts)))
        return wire.usage_of(_expected(await self._ask(request), "committed").committed.usage)

    async def prefetch(self, prompt: Prompt) -> Usage:
        if self._ahead is None:
            info = await self.info()
            self._ahead = self._ahead or Prefetches(self._prefetch, info.max_in_flight)
        return await self._ahead.get(prompt)

    async def _prefetch(self, prompt: Prompt) -> Usage:
        request = wire.request_of(prompt, prefetch=pb.Prefetch())
        reply = await self._ask(request, retries=ONE_TRY)
        return wire.usage_of(_expected(reply, "committed").committed.usage)

    def with_adapter(self, name: str) -> EngineBackend:
        return _Adapted(self, name)

    async def close(self) -> None:
        """Ends the stream and the connection; unfinished calls fail."""
        stream, self._stream = self._stream, None
        channel, self._channel = self._channel, None
        if stream is not None:
            await stream.close()
        if channel is not None:
            await channel.close()

    # Beyond the interface.

    async def info(self) -> pb.Info:
        """The engine's description of itself, requested once."""
        async with self._asking:
            if self._info is None:
                self._info = await self._unary("GetInfo", pb.InfoRequest())
            return self._info

    async def stats(self) -> pb.Stats:
        """Counters of the engine since it started."""
        stats: pb.Stats = await self._unary("GetStats", pb.StatsRequest())
        return stats

    async def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """A vector of each text, as the model gives them (docs/embeddings.md)."""
        prompts = [(TextRun(wire.checked_text(text, "a text to embed")),) for text in texts]
        asked = [wire.request_of(prompt, embed=pb.Embed()) for prompt in prompts]
        replies = await asyncio.gather(*(self._ask(request) for request in asked))
        return [tuple(_expected(reply, "embedded").embedded.vector) for reply in replies]

    async def flush_cache(self) -> int:
        """Drops every cached prefix that no running request uses; returns the tokens freed."""
        reply = await self._unary("FlushCache", pb.FlushCacheRequest())
        if self._ahead is not None:
            self._ahead.forget()
        return int(reply.freed_tokens)

    # Asking.

    async def _ask(
        self, request: pb.Request, on_delta: OnDelta | None = None, retries: Retries | None = None
    ) -> pb.Reply:
        """The final reply; retries a few times if the engine has no room."""
        retries = retries or RETRIES
        info = self._info or await self.info()
        if self._request_timeout_s is not None:
            request.timeout_s = self._request_timeout_s
        size, limit = request.ByteSize(), info.max_message_bytes - 1024
        if size > limit:
            raise _too_large(request, size, limit)
        n_deltas = 0

        def count_delta(text: str) -> None:
            nonlocal n_deltas
            n_deltas += 1
            assert on_delta is not None
            on_delta(text)

        async def once() -> pb.Reply:
            stream = self._stream
            if stream is None or not stream.is_open:
                stream = await self._open_stream(info.max_in_flight)
            return await stream.ask(request, size, count_delta if on_delta else None)

        return await retrying(retries, once, goes_on=lambda error, wait_s: n_deltas == 0)

    async def _open_stream(self, max_in_flight: int) -> Stream:
        async with self._opening:
            if self._stream is None or not self._stream.is_open:
                stub = await self._connected()
                call = stub.Session(metadata=self._metadata)
                self._stream = Stream(call, self._error_of, max(1, max_in_flight))
            return self._stream

    async def _unary(self, method: str, request: Any) -> Any:
        stub = await self._connected()
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
            raise self._unreachable(f"no answer within {self._timeout_s:g} s") from error
        return engine_pb2_grpc.EngineStub(channel)  # type: ignore[no-untyped-call]

    async def _wait_ready(self, channel: grpc.aio.Channel) -> None:
        while True:
            state = channel.get_state(try_to_connect=True)
            if state is grpc.ChannelConnectivity.READY:
                return
            if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                tls = _trusting(_authorities()) if self._is_tls else None
                if why := await reason_unreachable(self._target, tls):
                    raise self._unreachable(why)
            await channel.wait_for_state_change(state)

    def _new_channel(self) -> grpc.aio.Channel:
        if not self._is_tls:
            return grpc.aio.insecure_channel(self._target, options=OPTIONS)
        roots = _authorities()
        if roots is not None:
            _trusting(roots)  # raises if it is not a certificate
        credentials = grpc.ssl_channel_credentials(roots)
        return grpc.aio.secure_channel(self._target, credentials, options=OPTIONS)

    def _error_of(self, error: grpc.RpcError | None) -> BackendError:
        """Translates the end of a call or of the stream into an error."""
        if not isinstance(error, grpc.aio.AioRpcError):
            return EngineUnavailable(f"the engine at {self._uri} closed the stream")
        code, details = error.code(), error.details() or ""
        if code is grpc.StatusCode.UNAUTHENTICATED:
            return BackendError(
                f"the engine at {self._uri} wants a token: {details}", hint="set SGC_TOKEN"
            )
        # When the engine ends a stream with ABORTED, it has answered every request that it
        # accepted.
        if code in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED):
            return Overloaded(f"the engine at {self._uri} refused: {details}")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return BackendError(f"the server at {self._uri} is not an engine of this version")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return EngineUnavailable(
                f"the engine at {self._uri} did not answer within {UNARY_TIMEOUT_S:g} s",
                hint="it may be in a very long step; try again, or smaller --chunk-tokens",
            )
        return self._unreachable(f"{code.name}: {details}")

    def _unreachable(self, why: str) -> EngineUnavailable:
        return EngineUnavailable(
            f"no engine at {self._uri} ({why})",
            hint="start one with `sgc serve`, or leave out --engine to start one for this run",
        )


class _Adapted(EngineBackend):
    """The same connection, whose requests ask for an adapter."""

    def __init__(self, engine: EngineBackend, adapter: str) -> None:
        self._engine, self._adapter = engine, adapter
        self._ahead, self._capabilities = None, None

    def with_adapter(self, name: str) -> EngineBackend:
        return self._engine.with_adapter(name)

    async def capabilities(self) -> Capabilities:
        """Those of the engine, with the adapter's fingerprint. Raises UsageError if it has none of
        that name."""
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

    async def info(self) -> pb.Info:
        return await self._engine.info()

    async def close(self) -> None:
        """Does nothing: the connection is the engine's."""

    async def _ask(
        self, request: pb.Request, on_delta: OnDelta | None = None, retries: Retries | None = None
    ) -> pb.Reply:
        request.adapter = self._adapter
        return await self._engine._ask(request, on_delta, retries)

    async def _unary(self, method: str, request: Any) -> Any:
        return await self._engine._unary(method, request)


def _authorities() -> bytes | None:
    """The content of the file $SGC_TLS_CA."""
    path = os.environ.get("SGC_TLS_CA")
    try:
        return Path(path).read_bytes() if path else None
    except OSError as error:
        raise UsageError(f"cannot read SGC_TLS_CA, {path}: {error.strerror}") from error


def _trusting(roots: bytes | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=None if roots is None else roots.decode())
    except (ssl.SSLError, ValueError) as error:
        raise UsageError("the file that SGC_TLS_CA names is not a PEM certificate") from error


def _parse_uri(uri: str) -> tuple[str, bool]:
    """gRPC's target, and whether TLS is used."""
    if uri.startswith("unix:") and len(uri) > len("unix:"):
        return uri, False
    scheme, found, target = uri.partition("://")
    host, _, port = target.rpartition(":")
    if not found or scheme not in ("grpc", "grpcs") or not host or not _is_port(port):
        raise UsageError(
            f"cannot use {uri!r} as an engine's address",
            hint="expected grpc://host:port, grpcs://host:port or unix:/path; ports are 1 to 65535",
        )
    return target, scheme == "grpcs"


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text) <= 65535


def _with_hints(request: pb.Request, prompt: Prompt) -> pb.Request:
    """Adds how much of the prompt later requests may reuse, if known, and the hints of the run."""
    place = reusable(prompt)
    if place is not None:
        request.reusable.segment, request.reusable.offset = place
    return _with_run(request)


def _with_run(request: pb.Request) -> pb.Request:
    """Adds whose run it is, and what is left of it, if known."""
    run = told()
    if run is not None:
        request.run.id = run.number
        if run.remaining is not None:
            request.run.remaining = min(run.remaining, MAX_REMAINING)
    return request


def _too_large(request: pb.Request, size: int, limit: int) -> BackendError:
    if (prompt := request.prompt.ByteSize()) > limit:
        return ContextExceeded(f"a prompt of {prompt} bytes; this engine holds less than {limit}")
    return BackendError(f"a request of {size} bytes is too large; at most {limit} are sent")


def _expected(reply: pb.Reply, kind: str) -> pb.Reply:
    if reply.WhichOneof("kind") != kind:
        raise BackendError(f"the engine answered with {reply.WhichOneof('kind')}, not {kind}")
    return reply
