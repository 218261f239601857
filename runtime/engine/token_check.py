"""Which calls are let in: those that present the server's token."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

OPEN_PREFIX = "/grpc.health.v1.Health/"  # probes carry no token


class TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls without the right `authorization: Bearer …`."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        if handler_call_details.method.startswith(OPEN_PREFIX):
            return await continuation(handler_call_details)
        for key, value in handler_call_details.invocation_metadata:
            data = value.encode() if isinstance(value, str) else value
            if key == "authorization" and hmac.compare_digest(data, self._expected):
                return await continuation(handler_call_details)
        return grpc.stream_stream_rpc_method_handler(_refuse)


async def _refuse(requests: Any, context: grpc.aio.ServicerContext) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "a valid token is required")
