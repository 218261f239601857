"""Programs that engines run, over gRPC: each run goes to one engine as a whole.

If that engine is lost, the run goes to another engine unless some of its text came back: the client
has seen that text, and a second run may generate another. Only an engine knows a program's tools,
so it is first asked to refuse a program with effects; a refused program is sent again, to be run
once, and is not repeated if the run may have begun.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import grpc
import grpc.aio

from sgc.errors import EngineUnavailable, SgcError
from sgc.proto import programs_pb2 as pb
from sgc.proto import programs_pb2_grpc
from sgc.route.engines import BLOCK, Engines
from sgc.route.lines import GrpcFace, Lines
from sgc.runtime.engine.http.errors import BEGUN, EFFECTS, PUSHBACK, log
from sgc.runtime.executor.backends.persistence import MAX_LOST
from sgc.runtime.executor.routing.blocks import blocks_of
from sgc.runtime.executor.routing.router import NobodyAnswers, Ticket

Metadata = Sequence[tuple[str, str | bytes]]
_Status = grpc.StatusCode
_ELSEWHERE = (_Status.NOT_FOUND, _Status.UNIMPLEMENTED)  # another engine may have the program
_NOBODY = (_Status.UNAVAILABLE, "no engine answers")


class _Failed(Exception):
    """A run that an engine did not finish. may_move: another engine may run it; is_lost: the engine
    does not answer; is_again: the same engine is asked again, now to run a program with effects."""

    def __init__(
        self,
        code: grpc.StatusCode,
        told: str,
        may_move: bool = False,
        is_lost: bool = False,
        is_again: bool = False,
        trailing: Metadata = (),
    ) -> None:
        super().__init__(told)
        self.code, self.told, self.may_move = code, told, may_move or is_again
        self.is_lost, self.is_again, self.trailing = is_lost, is_again, trailing


class Servicer(programs_pb2_grpc.ProgramsServicer):
    """lines_of: a client's lines to engines, from its metadata; domain_of: its domain."""

    def __init__(
        self,
        engines: Engines,
        face: GrpcFace,
        lines_of: Callable[[Metadata], Lines],
        domain_of: Callable[[Metadata], bytes],
    ) -> None:
        self._engines, self._face = engines, face
        self._lines_of, self._domain_of = lines_of, domain_of
        self._have_effects: set[str] = set()  # programs, by the words of an engine

    async def ListPrograms(
        self, request: pb.ListProgramsRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListProgramsReply:
        """The programs of the engine that answers first."""
        async for reply in self._passed_on("ListPrograms", request, (), context):
            found: pb.ListProgramsReply = reply
        return found

    async def RunProgram(
        self, request: pb.ProgramCall, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[pb.ProgramEvent]:
        salt = repr((self._domain_of(context.invocation_metadata() or ()), request.program))
        blocks = blocks_of(request.arguments, BLOCK, salt)
        async with aclosing(self._passed_on("RunProgram", request, blocks, context)) as events:
            async for event in events:
                yield event

    async def _passed_on(
        self, method: str, request: Any, blocks: Sequence[int], context: grpc.aio.ServicerContext
    ) -> AsyncGenerator[Any]:
        """An engine's replies; another engine's, if the first fails and a second run is safe."""
        lines = self._lines_of(context.invocation_metadata() or ())
        router, tried, n_lost = self._engines.router, set[str](), 0
        refused: tuple[grpc.StatusCode, str, Metadata] = (*_NOBODY, ())
        try:
            while True:
                try:
                    ticket = router.send(blocks, self._engines.mean_out, tried)
                except NobodyAnswers:
                    await context.abort(*refused)
                tried.add(ticket.member.name)
                try:
                    of_one = self._of(ticket, method, request, lines, context)
                    async with aclosing(of_one) as events:
                        async for event in events:
                            yield event
                except _Failed as failed:
                    if failed.is_lost:
                        n_lost += not ticket.member.n_failed
                        self._engines.failed(ticket)
                    else:
                        router.done(ticket)
                    if failed.is_again:
                        tried.discard(ticket.member.name)
                    refused = failed.code, failed.told, failed.trailing
                    if not failed.may_move or n_lost == MAX_LOST:  # the run may end engines
                        await context.abort(*refused)
                    continue
                except BaseException:
                    router.left(ticket)
                    raise
                router.done(ticket)
                return
        finally:
            lines.close()

    async def _of(
        self,
        ticket: Ticket,
        method: str,
        request: Any,
        lines: Lines,
        context: grpc.aio.ServicerContext,
    ) -> AsyncGenerator[Any]:
        """One engine's reply. Raises _Failed."""
        place = self._engines.places[ticket.member.name]
        try:
            await self._face.check(place)
            line = lines.to(place)
            channel = await line.engine.channel()
        except SgcError as error:
            if not isinstance(error, EngineUnavailable):
                log.warning("%s", error)  # this engine is tried again later
            gone = _Failed(_Status.UNAVAILABLE, error.message, may_move=True, is_lost=True)
            raise gone from error
        stub = programs_pb2_grpc.ProgramsStub(channel)  # type: ignore[no-untyped-call]
        left_s = context.time_remaining()
        if method == "ListPrograms":
            yield await _whole(stub.ListPrograms(request, metadata=line.metadata, timeout=left_s))
            return
        refuse = (EFFECTS, "refuse")
        is_asked = refuse in (context.invocation_metadata() or ())  # from another router
        is_once = request.program in self._have_effects and not is_asked
        metadata = line.metadata if is_once else (*line.metadata, refuse)
        call, has_come = stub.RunProgram(request, metadata=metadata, timeout=left_s), False
        try:
            async for event in call:
                has_come = True
                yield event
                if event.HasField("result"):  # even if the engine is lost
                    return
        except grpc.aio.AioRpcError as error:
            if error.code() is _Status.FAILED_PRECONDITION and not is_once and not is_asked:
                self._have_effects.add(request.program)
                raise _Failed(error.code(), error.details() or "", is_again=True) from error
            raise _failure(error, has_come, is_once) from error
        finally:
            call.cancel()


async def _whole(call: Any) -> Any:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise _failure(error, has_come=False, is_once=False) from error


def _failure(error: grpc.aio.AioRpcError, has_come: bool, is_once: bool) -> _Failed:
    """is_once: the run may have effects."""
    code, told = error.code(), error.details() or "the engine does not say why"
    if code in _ELSEWHERE:
        return _Failed(code, told, may_move=True)
    given = error.trailing_metadata() or ()
    trailing = tuple(each for each in given if each[0] in (BEGUN, PUSHBACK))
    is_lost = code is _Status.UNAVAILABLE
    if not is_lost and code is not _Status.RESOURCE_EXHAUSTED:
        return _Failed(code, told, trailing=trailing)
    may_move = not has_come and (not is_once or (BEGUN, "no") in trailing)
    if is_lost and not may_move:
        told = f"the engine was lost while it ran a program: {told}"
        trailing = (*(each for each in trailing if each[0] != PUSHBACK), (PUSHBACK, "-1"))
    return _Failed(code, told, may_move, is_lost, trailing=trailing)
