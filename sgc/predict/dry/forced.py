"""Counts the tokens of a reply that a constraint forces, for which no step is made.

Forced tokens at the beginning join the prompt's positions, and those at the end are not run. It
uses the engine's own code for following constraints.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sgc.errors import BackendError
from sgc.predict.dry.model import OpenedModel
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.guides.stops import TextStops
from sgc.runtime.engine.ints import IntBuffer
from sgc.runtime.engine.requests.request import Generate, Times, Work
from sgc.runtime.engine.step.generation import begin, grow
from sgc.runtime.engine.worker.wire import request_of

if TYPE_CHECKING:
    from sgc.runtime.engine.guides.guides import Compiled

MAX_COMPILED = 256
_LONGEST = 2**31


@dataclass(frozen=True, slots=True)
class Forced:
    """n_first: forced tokens before the first drawn one. n_last: tokens from the last drawn one to
    the end. is_all: no token is drawn.
    """

    n_first: int = 0
    n_last: int = 1
    n_in_all: int = 0
    is_all: bool = False


class Follower:
    """Follows replies under their constraints, each of which is compiled once."""

    def __init__(self, model: OpenedModel) -> None:
        self._model = model
        self._compiled: OrderedDict[tuple[str, int | None], Compiled] = OrderedDict()

    def forced(self, message: wpb.WorkerRequest, reply: Sequence[int]) -> Forced:
        """Counts the forced tokens of a reply; zero for a reply that violates the constraint.

        Raises BackendError for a constraint that the engine cannot use.
        """
        request = request_of(message, self._constraint(message))
        work = Work(request, 0, Times(0.0), IntBuffer(request.tokens))
        kind = request.kind
        assert isinstance(kind, Generate)
        assert kind.constraint is not None
        if kind.stop:
            work.decoding.checker = TextStops(self._model.tokenizer, kind.stop)
        work.decoding.guide = kind.constraint.start(kind.logprobs is None)
        try:
            return _followed(work, reply)
        except ValueError:
            return Forced()

    def _constraint(self, message: wpb.WorkerRequest) -> Compiled:
        key = (message.grammar, message.free_after if message.HasField("free_after") else None)
        found = self._compiled.get(key)
        if found is None:
            try:
                found = self._model.compiler(message)
            except ValueError as error:
                raise BackendError(str(error)) from error
            assert found is not None
            self._compiled[key] = found
            if len(self._compiled) > MAX_COMPILED:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return found


def _followed(work: Work, reply: Sequence[int]) -> Forced:
    """Raises ValueError for a reply that the constraint does not allow."""
    update = begin(work, _LONGEST)
    n_first, n_before = work.n_generated, 0
    if update.final:
        return Forced(n_first, n_first, n_first, is_all=True)
    while work.n_generated < len(reply) and not update.final:
        n_before = work.n_generated
        update = grow(work, reply[n_before], _LONGEST)
    return Forced(n_first, len(reply) - n_before, work.decoding.n_forced)
