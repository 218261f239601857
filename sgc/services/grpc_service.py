"""Programs over gRPC: one call for a whole run (`programs.proto`)."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc
import grpc.aio

from sgc.errors import (
    BackendError,
    DeadlineExceeded,
    EngineUnavailable,
    Overloaded,
    SgcError,
    UsageError,
)
from sgc.proto import programs_pb2 as pb
from sgc.proto import programs_pb2_grpc
from sgc.runtime.engine.http.body import parsed
from sgc.runtime.engine.http.errors import BEGUN, EFFECTS, PUSHBACK, HttpError
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.services.programs import NOT_BEGUN, Programs, no_program
from sgc.services.replies import OPTIONS, Json, as_json, description, options_of, run_object

_Status = grpc.StatusCode
_NOT_BEGUN = ((BEGUN, "no"),)
_STATUS = (
    (UsageError, _Status.INVALID_ARGUMENT),
    (Overloaded, _Status.RESOURCE_EXHAUSTED),
    (EngineUnavailable, _Status.UNAVAILABLE),
    (DeadlineExceeded, _Status.DEADLINE_EXCEEDED),
    (BackendError, _Status.INVALID_ARGUMENT),
    (SgcError, _Status.UNKNOWN),
)


class Servicer(programs_pb2_grpc.ProgramsServicer):
    def __init__(self, programs: Programs) -> None:
        self._programs = programs

    async def ListPrograms(
        self, request: pb.ListProgramsRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListProgramsReply:
        found = (description(*each) for each in self._programs.programs.items())
        programs = [
            pb.Program(name=each["id"], parameters=[pb.Parameter(**p) for p in each["parameters"]])
            for each in found
        ]
        return pb.ListProgramsReply(programs=programs)

    async def RunProgram(
        self, request: pb.ProgramCall, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[pb.ProgramEvent]:
        if request.program not in self._programs.programs:
            message = no_program(request.program, self._programs.programs)
            await context.abort(_Status.NOT_FOUND, message)
        if (EFFECTS, "refuse") in (context.invocation_metadata() or ()):
            from sgc.runs.planned_batch import has_effects  # loads what plans batches, and passes

            if has_effects(self._programs.programs[request.program].graph):
                told = f"{request.program} calls a tool that has effects"
                await context.abort(_Status.FAILED_PRECONDITION, told, _NOT_BEGUN)
        try:
            arguments, options = _object(request.arguments, "arguments"), _options(request.options)
            running = self._programs.stream(request.program, arguments, options, _token(context))
            async with aclosing(running) as events:
                async for event in events:
                    if isinstance(event, RunResult):
                        result = run_object("", request.program, event)
                        yield pb.ProgramEvent(result=as_json(result))
                    elif request.stream:
                        text = pb.StreamText(
                            stream=event.stream, text=event.text, is_generated=event.is_generated
                        )
                        yield pb.ProgramEvent(text=text)
        except SgcError as error:
            code = next(row[1] for row in _STATUS if isinstance(error, row[0]))
            await context.abort(code, str(error), _trailing(error))


def add_programs(programs: Programs, server: grpc.aio.Server) -> str:
    """Adds the service to a server; returns its name."""
    programs_pb2_grpc.add_ProgramsServicer_to_server(Servicer(programs), server)  # type: ignore[no-untyped-call]
    return str(pb.DESCRIPTOR.services_by_name["Programs"].full_name)


def _trailing(error: SgcError) -> tuple[tuple[str, str], ...]:
    """The trailing metadata that tells a client whether, and when, it may ask again. A run that has
    begun may have had effects, so no retry policy repeats it."""
    if not isinstance(error, NOT_BEGUN):
        return ((PUSHBACK, "-1"),)
    if isinstance(error, Overloaded) and error.retry_after_s:
        return (*_NOT_BEGUN, (PUSHBACK, str(math.ceil(error.retry_after_s * 1000))))
    return _NOT_BEGUN


def _token(context: grpc.aio.ServicerContext) -> str:
    for name, value in context.invocation_metadata() or ():
        if name == "authorization":
            return str(value).removeprefix("Bearer ").strip()
    return ""


def _object(text: str, name: str) -> Json:
    """A JSON object, with the bounds of an HTTP body; {} for an empty text."""
    if not text:
        return {}
    try:
        return parsed(text.encode())
    except HttpError as error:
        raise UsageError(f"{name}: {error.message}") from error


def _options(text: str) -> RunOptions:
    given: dict[str, Any] = _object(text, "options")
    for name in given:
        if name not in OPTIONS:
            raise UsageError(
                f"options: {name[:80]!r} is no option of a run",
                hint=f"there are {', '.join(OPTIONS)}",
            )
    return options_of(given)
