"""Errors of single requests in a step: each ends only its request, and the step continues.

They come from work done for one request: its mask, its draw, its log-probabilities, its stops. An
error of the whole batch, as in the forward pass, goes to the core's `fail`.
"""

from __future__ import annotations

import logging

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.requests.finite import NotFinite
from sgc.runtime.engine.requests.request import EngineError, Work

_log = logging.getLogger(__name__)


class Faults:
    """The errors of one step."""

    def __init__(self) -> None:
        self._errors: dict[Work, EngineError] = {}

    def note(self, work: Work, error: BaseException) -> None:
        """Records an error; a request's first error is the one reported."""
        self._errors.setdefault(work, error_of(error))

    def get(self, work: Work) -> EngineError | None:
        return self._errors.get(work)

    def __contains__(self, work: Work) -> bool:
        return work in self._errors


def error_of(error: BaseException) -> EngineError:
    """The error for a failed request; raises again an error that must end the process.

    A ValueError says what is wrong with the request. Panics of Rust libraries do not derive from
    Exception.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error
    if isinstance(error, ValueError):
        return EngineError(pb.ERROR_CODE_INVALID_ARGUMENT, str(error))
    if isinstance(error, NotFinite):
        return EngineError(pb.ERROR_CODE_INTERNAL, str(error))
    _log.error("a request failed, and ends alone", exc_info=error)
    return EngineError(pb.ERROR_CODE_INTERNAL, f"{type(error).__name__}: {error}")
