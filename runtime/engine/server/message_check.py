"""Tells a client that its message is not a valid message of that call.

gRPC itself would answer UNKNOWN, as if the server had failed.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

Read = Callable[[bytes], Any]
_KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")


class Malformed(Exception):
    """A client sent bytes that are not a message of the call."""


class MessageCheck(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Parses the messages of every call; an invalid one ends the call with INVALID_ARGUMENT."""

    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None or handler.request_deserializer is None:
            return handler
        kind = next(kind for kind in _KINDS if getattr(handler, kind) is not None)
        read = _one if kind.startswith("unary") else _each
        call = _checked(getattr(handler, kind), read, handler.request_deserializer)
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(call, response_serializer=handler.response_serializer)


def _checked(call: Callable[..., Any], read: Callable[..., Any], parse: Read) -> Any:
    # gRPC keeps the error by which `abort` ends the call, in a cycle: it must not come of another,
    # which would keep all that the call had.
    async def checked(sent: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            return await call(read(sent, parse), context)
        except Malformed as error:
            problem = str(error)
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, problem)

    async def checked_replies(sent: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
        try:
            async for reply in call(read(sent, parse), context):
                yield reply
            return
        except Malformed as error:
            problem = str(error)
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, problem)

    return checked_replies if inspect.isasyncgenfunction(call) else checked


def _one(data: bytes, parse: Read) -> Any:
    try:
        return parse(data)
    except DecodeError as error:
        raise Malformed(f"{len(data)} bytes were sent that are no message of this call") from error


async def _each(messages: AsyncIterator[bytes], parse: Read) -> AsyncIterator[Any]:
    async for data in messages:
        message = _one(data, parse)
        del data  # frames may be large, and the next may be long in coming
        yield message
        del message
