"""How calls and streams of an engine end, as errors."""

from __future__ import annotations

import grpc

from sgc.errors import BackendError, EngineUnavailable, Overloaded

# gRPC's message, instead of the reason, when it writes to a stream that has just ended.
_WRITTEN_LATE = "Internal error from Core"


class InvalidRequest(BackendError):
    """The engine can never do what a request asks for."""


def error_of(error: grpc.RpcError | None, uri: str, timeout_s: float) -> BackendError:
    """Translates the end of a call or of the stream into an error."""
    if not isinstance(error, grpc.aio.AioRpcError):
        return EngineUnavailable(f"the engine at {uri} closed the stream")
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return BackendError(f"the engine at {uri} wants a token: {details}", hint="set SGC_TOKEN")
    # The engine ends a stream with ABORTED when it has answered every accepted request.
    if code in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED):
        return Overloaded(f"the engine at {uri} refused: {details}")
    if code is grpc.StatusCode.INTERNAL and details == _WRITTEN_LATE:
        return Overloaded(f"the engine at {uri} ended a stream that was written to")
    if code is grpc.StatusCode.UNKNOWN:  # its own fault, which asking again would meet again
        return BackendError(f"the engine at {uri} failed: {details}", hint="its log says where")
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return BackendError(f"the server at {uri} is not an engine of this version")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return EngineUnavailable(
            f"the engine at {uri} did not answer within {timeout_s:g} s",
            hint="it may be in a very long step; try again, or smaller --chunk-tokens",
        )
    return unreachable(uri, f"{code.name}: {details}")


def unreachable(uri: str, why: str) -> EngineUnavailable:
    return EngineUnavailable(
        f"no engine at {uri} ({why})",
        hint="start one with `sgc serve`, or leave out --engine to start one for this run",
    )
