"""Requests of a step whose own part of it failed: each ends alone, and the step goes on.

A request's own part is what is done for it and for no other: its mask, its draw, its
log-probabilities, what ends its text. What fails for all together, as the forward, is the core's
`fail`.
"""

from __future__ import annotations

import logging

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.requests.finite import NotFinite
from sgc.runtime.engine.requests.request import EngineError, Work

_log = logging.getLogger(__name__)


class Faults:
    """Of one step."""

    def __init__(self) -> None:
        self._errors: dict[Work, EngineError] = {}

    def note(self, work: Work, error: BaseException) -> None:
        """The first fault of a request is the one that is told."""
        self._errors.setdefault(work, error_of(error))

    def get(self, work: Work) -> EngineError | None:
        return self._errors.get(work)

    def __contains__(self, work: Work) -> bool:
        return work in self._errors


def error_of(error: BaseException) -> EngineError:
    """What a request that failed is told; raises an error again that is to end the process.

    A ValueError says what is wrong with the request. Panics of libraries written in Rust are
    no children of Exception.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error
    if isinstance(error, ValueError):
        return EngineError(pb.ERROR_CODE_INVALID_ARGUMENT, str(error))
    if isinstance(error, NotFinite):
        return EngineError(pb.ERROR_CODE_INTERNAL, str(error))
    _log.error("a request failed, and ends alone", exc_info=error)
    return EngineError(pb.ERROR_CODE_INTERNAL, f"{type(error).__name__}: {error}")
