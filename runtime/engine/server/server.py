"""The engine's gRPC service (grpc.aio): sessions, info, statistics, health, reflection.

It knows nothing of models: the step process is behind `WorkerLink`. `serving.py` runs it.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.images.families import MAX_BYTES, MAX_IMAGES
from sgc.runtime.engine.names import AUTO
from sgc.runtime.engine.preparing.bounds import MAX_MESSAGE_BYTES, ServerLimits
from sgc.runtime.engine.process.descriptors import max_connections
from sgc.runtime.engine.server.accounts.caller import Caller, given_id
from sgc.runtime.engine.server.accounts.quotas import NO_QUOTA
from sgc.runtime.engine.server.accounts.tokens import Tokens
from sgc.runtime.engine.server.frames import served
from sgc.runtime.engine.server.listen import Security
from sgc.runtime.engine.server.message_check import MessageCheck
from sgc.runtime.engine.server.session import Session
from sgc.runtime.engine.server.shared import Shared
from sgc.runtime.engine.server.token_check import TokenCheck
from sgc.runtime.engine.text.template import Chat
from sgc.runtime.engine.text.template_worker import Renderer
from sgc.runtime.engine.text.tokenizer import Tokenizer
from sgc.runtime.engine.worker.link import WorkerDied
from sgc.runtime.telemetry.traceparent import valid

if TYPE_CHECKING:  # a server without images does no numerics
    from sgc.runtime.engine.images.reader import ImageReader

SERVICE = "sgc.engine.v1.Engine"
STOP_GRACE_S = 1.0
MAX_CALLS_OF_CONNECTION = 512  # more than programs and sessions that a server runs, so that what is
# beyond those is refused at once and told when to come back; beyond this, clients hold calls back
MAX_CALLS = 32_768
OPTIONS = [
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", MAX_CALLS_OF_CONNECTION),
    # else a call is refused while one that the client has seen the end of is not yet freed here
    ("grpc.http.overload_protection", 0),
    ("grpc.server.max_pending_requests", 4096),  # of all connections; those beyond are cancelled
    ("grpc.server.max_pending_requests_hard_limit", 8192),
    ("grpc.max_connection_idle_ms", 60_000),  # no call: the client reconnects
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 3),
    ("grpc.so_reuseport", 0),  # a second server on the same port is an error
]


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The facts that GetInfo returns.

    renderer: of the model's own chat template; None if it has none. tool_format, reasoning_format:
    of the HTTP face, as options name them.
    """

    model: str
    ready: wpb.Ready
    chat: Chat
    tokenizer: Tokenizer
    limits: ServerLimits
    renderer: Renderer | None = None
    tool_format: str = AUTO
    reasoning_format: str = AUTO

    @property
    def models(self) -> list[str]:
        """The names by which HTTP clients ask for the model, and for it with each adapter."""
        return [self.model, *(adapter.name for adapter in self.limits.adapters)]


class EngineServicer(engine_pb2_grpc.EngineServicer):
    def __init__(self, facts: EngineFacts, shared: Shared, tokens: Tokens) -> None:
        self._info = info_of(facts)
        self._tokens = tokens
        self._shared = shared

    async def Session(
        self, request_iterator: AsyncIterator[pb.ClientFrame], context: grpc.aio.ServicerContext
    ) -> None:
        metadata = context.invocation_metadata() or ()
        caller = self._tokens.caller_given(metadata) or Caller()
        given = dict(metadata)
        caller.id = given_id(given.get("x-request-id", ""))
        caller.traceparent = valid(given.get("traceparent"))
        if not self._shared.has_room(caller.domain):
            reason = "too many sessions with unfinished requests are open"
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, reason)
        ended_because = await served(Session(self._shared, caller), request_iterator, context)
        if ended_because:  # every accepted request has had its reply
            await context.abort(grpc.StatusCode.ABORTED, ended_because)

    async def GetInfo(self, request: pb.InfoRequest, context: grpc.aio.ServicerContext) -> pb.Info:
        caller = self._tokens.caller_given(context.invocation_metadata() or ())
        quota = NO_QUOTA if caller is None or caller.account is None else caller.account.quota
        if quota.max_concurrent is None:
            return self._info
        info = pb.Info()
        info.CopyFrom(self._info)
        info.max_in_flight = min(info.max_in_flight, quota.max_concurrent)
        return info

    async def GetStats(
        self, request: pb.StatsRequest, context: grpc.aio.ServicerContext
    ) -> pb.Stats:
        try:
            return await self._shared.stats()
        except WorkerDied as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            raise

    async def FlushCache(
        self, request: pb.FlushCacheRequest, context: grpc.aio.ServicerContext
    ) -> pb.FlushCacheReply:
        try:
            return pb.FlushCacheReply(freed_tokens=await self._shared.link.flush_cache())
        except WorkerDied as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            raise


class EngineServer:
    """The gRPC server around one engine; bind it with `listen.bind`, then start."""

    def __init__(self, security: Security, limits: ServerLimits) -> None:
        self._tokens = security.tokens
        options = [
            *OPTIONS,
            ("grpc.max_receive_message_length", limits.max_frame_bytes),
            ("grpc.max_allowed_incoming_connections", max_connections()),
        ]
        checks = [TokenCheck(security.tokens)] if security.tokens else []
        self.grpc = grpc.aio.server(
            interceptors=[*checks, MessageCheck()],
            options=options,
            maximum_concurrent_rpcs=MAX_CALLS,
        )
        self._health = HealthServicer()
        self._shared: Shared | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def start(
        self, facts: EngineFacts, shared: Shared, other: Callable[[Any], str] | None = None
    ) -> None:
        """other: adds a service of another part of the system, and returns its name."""
        self._shared = shared
        servicer = EngineServicer(facts, shared, self._tokens)
        engine_pb2_grpc.add_EngineServicer_to_server(servicer, self.grpc)  # type: ignore[no-untyped-call]
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.grpc)
        others = () if other is None else (other(self.grpc),)
        names = (SERVICE, *others, "grpc.health.v1.Health", reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self.grpc)
        for name in ("", SERVICE):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        await self.grpc.start()
        self._sweeping = asyncio.create_task(shared.end_silent())

    async def leave(self) -> None:
        """Tells health checks that the engine is about to stop."""
        for name in ("", SERVICE):
            await self._health.set(name, health_pb2.HealthCheckResponse.NOT_SERVING)

    async def stop(self, reason: str) -> None:
        """Ends unfinished requests with UNAVAILABLE, then the server."""
        await self._health.enter_graceful_shutdown()
        if self._shared is not None:
            for session in list(self._shared.sessions):
                session.fail_all(reason)
        await self.grpc.stop(STOP_GRACE_S)
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)


def engine_version() -> str:
    try:
        return importlib.metadata.version("sgc")
    except importlib.metadata.PackageNotFoundError:
        return "0+source"


def info_of(facts: EngineFacts) -> pb.Info:
    """The engine's reply to GetInfo."""
    ready, chat, tokenizer = facts.ready, facts.chat, facts.tokenizer
    roles = {
        name: pb.RoleFormat(prefix=role.prefix, suffix=role.suffix)
        for name, role in chat.roles.items()
    }
    return pb.Info(
        engine_version=engine_version(),
        model=facts.model,
        tokenizer_fingerprint=tokenizer.fingerprint,
        template_fingerprint=chat.fingerprint,
        max_context=ready.max_context,
        pool_tokens=ready.pool_tokens,
        vocab_size=ready.vocab_size,
        max_in_flight=facts.limits.max_in_flight,
        max_message_bytes=facts.limits.max_frame_bytes,
        chat=pb.ChatFormat(
            roles=roles,
            default_system=chat.default_system,
            from_model=chat.from_model,
            prefix_stable=chat.prefix_stable,
        ),
        special_tokens=tokenizer.special_tokens,
        dtype=ready.dtype,
        device=ready.device,
        weights=ready.weights,
        kv=ready.kv,
        pooling=facts.limits.pooling.name,
        hidden_size=ready.hidden_size,
        takes_joined=True,
        adapters=[
            pb.Adapter(name=each.name, fingerprint=each.digest.hex(), rank=each.rank)
            for each in facts.limits.adapters
        ],
        accuracy=ready.accuracy if ready.HasField("accuracy") else None,
        images=_images_of(facts.limits.images),
    )


def _images_of(images: ImageReader | str) -> pb.ImageFormat | None:
    if isinstance(images, str):
        return None
    return pb.ImageFormat(
        token=images.token, text=images.text, max_images=MAX_IMAGES, max_bytes=MAX_BYTES
    )
