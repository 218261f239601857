"""The engine's gRPC service, in front of several engines: clients use its address as they would use
that of one engine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from sgc.errors import BackendError, SgcError
from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc, programs_pb2, programs_pb2_grpc
from sgc.route.asking import Asking
from sgc.route.engines import Engines
from sgc.route.lines import GrpcFace, Lines
from sgc.route.merged import common_info, sum_of
from sgc.route.programs import Servicer as Programs
from sgc.route.session import MAX_IN_FLIGHT, Session, Sessions
from sgc.runtime.engine.preparing.bounds import MAX_MESSAGE_BYTES
from sgc.runtime.engine.process.descriptors import max_connections
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.accounts.tokens import Tokens
from sgc.runtime.engine.server.frames import served
from sgc.runtime.engine.server.listen import Address, Security, bind
from sgc.runtime.engine.server.message_check import MessageCheck
from sgc.runtime.engine.server.server import MAX_CALLS, OPTIONS, SERVICE, STOP_GRACE_S
from sgc.runtime.engine.server.token_check import TokenCheck
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.routing.router import NobodyAnswers

LOOK_S = 1.0
_PASSED = ("x-request-id", "traceparent")
_BEARER = "Bearer "


class Servicer(engine_pb2_grpc.EngineServicer):
    def __init__(self, engines: Engines, face: GrpcFace, tokens: Tokens) -> None:
        self._engines, self._face, self._tokens = engines, face, tokens
        self.sessions = Sessions()

    async def Session(
        self, request_iterator: AsyncIterator[pb.ClientFrame], context: grpc.aio.ServicerContext
    ) -> None:
        if not self.sessions.has_room():
            reason = "too many sessions with unfinished requests are open"
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, reason)
        metadata = context.invocation_metadata() or ()
        lines = self.lines_of(metadata)
        asking = Asking(self._engines, self._face, lines, self.domain_of(metadata))
        session = Session(self.sessions, asking)
        try:
            ended_because = await served(session, request_iterator, context)
        finally:
            lines.close()
        if ended_because:
            await context.abort(grpc.StatusCode.ABORTED, ended_because)

    def lines_of(self, metadata: Sequence[tuple[str, str | bytes]]) -> Lines:
        """A client's lines to engines, with its own token if it has one."""
        given = {key: value for key, value in metadata if isinstance(value, str)}
        authorization = given.get("authorization", "")
        token = self._face.token
        if authorization.startswith(_BEARER):
            token = authorization.removeprefix(_BEARER)
        passed = [(key, given[key]) for key in _PASSED if key in given]
        return Lines(self._face, token, passed)

    def domain_of(self, metadata: Sequence[tuple[str, str | bytes]]) -> bytes:
        return (self._tokens.caller_given(metadata) or Caller()).domain

    async def GetInfo(self, request: pb.InfoRequest, context: grpc.aio.ServicerContext) -> pb.Info:
        """An engine's description for this client, with the capacity of all engines."""
        lines = self.lines_of(context.invocation_metadata() or ())
        tried: set[str] = set()
        why = "no engine answers"
        try:
            while True:
                ticket = self._engines.router.send((), 0.0, tried)
                place = self._engines.places[ticket.member.name]
                tried.add(place.name)
                try:
                    await self._face.check(place)
                    told = await lines.to(place).engine.info()
                except SgcError as error:
                    why = error.message
                    if code := _code_of_refusal(error):
                        self._engines.router.left(ticket)
                        await context.abort(code, why)
                    self._engines.failed(ticket)
                    continue
                except BaseException:
                    self._engines.router.left(ticket)
                    raise
                self._engines.router.done(ticket)
                return common_info(told, [*self._face.infos.values()], MAX_IN_FLIGHT)
        except NobodyAnswers:
            await context.abort(grpc.StatusCode.UNAVAILABLE, why)
            raise
        finally:
            lines.close()

    async def GetStats(
        self, request: pb.StatsRequest, context: grpc.aio.ServicerContext
    ) -> pb.Stats:
        return sum_of([each for each in await self._each(EngineBackend.stats) if each is not None])

    async def FlushCache(
        self, request: pb.FlushCacheRequest, context: grpc.aio.ServicerContext
    ) -> pb.FlushCacheReply:
        freed = await self._each(EngineBackend.flush_cache)
        self._engines.router.forget()
        return pb.FlushCacheReply(freed_tokens=sum(each or 0 for each in freed))

    async def _each(self, what: Any) -> list[Any]:
        """The answers of all engines that are up; None for those that do not answer."""
        up = [each.name for each in self._engines.router.members if not each.n_failed]

        async def one(name: str) -> Any:
            with contextlib.suppress(BackendError):
                return await what(self._face.own(self._engines.places[name]))

        return await asyncio.gather(*map(one, up))


def _code_of_refusal(error: SgcError) -> grpc.StatusCode | None:
    """The code by which an engine refuses this client, as any other engine would."""
    cause = error.__cause__
    code = cause.code() if isinstance(cause, grpc.aio.AioRpcError) else None
    return code if code is grpc.StatusCode.UNAUTHENTICATED else None


@contextlib.asynccontextmanager
async def serving_grpc(
    engines: Engines, face: GrpcFace, address: Address, security: Security
) -> AsyncIterator[str]:
    """Serves until the block ends; yields the address that clients use."""
    options = [
        *OPTIONS,
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_allowed_incoming_connections", max_connections()),
    ]
    checks = [TokenCheck(security.tokens)] if security.tokens else []
    server = grpc.aio.server(
        interceptors=[*checks, MessageCheck()], options=options, maximum_concurrent_rpcs=MAX_CALLS
    )
    servicer, health = Servicer(engines, face, security.tokens), HealthServicer()
    engine_pb2_grpc.add_EngineServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    programs = Programs(engines, face, servicer.lines_of, servicer.domain_of)
    programs_pb2_grpc.add_ProgramsServicer_to_server(programs, server)  # type: ignore[no-untyped-call]
    service = str(programs_pb2.DESCRIPTOR.services_by_name["Programs"].full_name)
    names = (SERVICE, service, "grpc.health.v1.Health", reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    target = bind(server, address, security)
    await server.start()
    looking = asyncio.create_task(_look(engines, servicer.sessions, health))
    try:
        scheme = "grpcs://" if security.certificate else "grpc://"
        yield target if address.path is not None else scheme + target
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await server.stop(STOP_GRACE_S)
        await face.close()


async def _look(engines: Engines, sessions: Sessions, health: HealthServicer) -> None:
    """Tells health checks whether an engine answers, and ends silent sessions."""
    while True:
        status = health_pb2.HealthCheckResponse.NOT_SERVING
        if engines.is_any_up():
            status = health_pb2.HealthCheckResponse.SERVING
        for name in ("", SERVICE):
            await health.set(name, status)
        sessions.end_silent()
        await asyncio.sleep(LOOK_S)
