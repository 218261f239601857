"""HTTP errors: a status and OpenAI's JSON form, for both APIs."""

from __future__ import annotations

import logging
import math
from typing import Any

from sgc.proto import engine_pb2 as pb

Json = dict[str, Any]

RETRY_AFTER_S = 1
# Marks of a program's call, for routers: headers, or gRPC's metadata.
BEGUN = "sgc-begun"  # of an error: "no" if the run has not begun
EFFECTS = "sgc-effects"  # of a call, over gRPC: "refuse" means to refuse a program that has effects
# gRPC's own, of an error: when a client's retry policy asks again, in ms; -1: it does not.
PUSHBACK = "grpc-retry-pushback-ms"
log = logging.getLogger("sgc.http")
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    504: "timeout_error",
}
_CODES = {
    pb.ERROR_CODE_INVALID_ARGUMENT: (400, "invalid_value"),
    pb.ERROR_CODE_CONTEXT_EXCEEDED: (400, "context_length_exceeded"),
    pb.ERROR_CODE_RESOURCE_EXHAUSTED: (429, "overloaded"),
    pb.ERROR_CODE_UNAVAILABLE: (503, "unavailable"),
    pb.ERROR_CODE_DEADLINE_EXCEEDED: (504, "deadline_exceeded"),
}


class HttpError(Exception):
    """param: the field at fault, if any; code: a short name for programs. request_id: of the engine
    request that failed, if any. retry_after_s: of a request that may be tried again. has_begun:
    whether the requested program may have begun."""

    request_id: int | None = None
    has_begun = True
    retry_after_s: float = RETRY_AFTER_S

    def __init__(self, status: int, message: str, param: str | None = None, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code or None

    @property
    def body(self) -> Json:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        found = {"message": self.message, "type": _TYPES.get(self.status, kind)}
        return {"error": {**found, "param": self.param, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        if self.status == 401:
            return {"WWW-Authenticate": "Bearer"}
        if self.status == 504:  # OpenAI's client would ask again, which takes as long
            return {"x-should-retry": "false"}
        if self.status not in (429, 503):
            return {}
        in_ms = str(math.ceil(self.retry_after_s * 1000))
        whole = str(max(1, math.ceil(self.retry_after_s)))
        not_begun = {} if self.has_begun else {BEGUN: "no"}
        return {"Retry-After": whole, "retry-after-ms": in_ms, **not_begun}


def bad(message: str, param: str | None = None, code: str = "invalid_value") -> HttpError:
    """A 400: the client's mistake."""
    return HttpError(400, message, param, code)


def failed() -> HttpError:
    """A 500: our mistake; the details are logged, not sent."""
    return HttpError(500, "the server failed; its log says why", code="internal_error")


def error_of(error: pb.Error) -> HttpError:
    """An error of the engine as an HTTP error."""
    status, code = _CODES.get(error.code, (500, "internal_error"))
    found = HttpError(status, error.message, code="rate_limit_exceeded" if error.quota else code)
    found.retry_after_s = error.retry_after_s or RETRY_AFTER_S
    return found
