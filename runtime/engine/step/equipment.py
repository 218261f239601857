"""Makes the state that a request needs, when it is accepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sgc.runtime.engine.requests.choices import ChoiceTrie
from sgc.runtime.engine.requests.logprobs import LogprobLog
from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.requests.pooling import Pooled
from sgc.runtime.engine.requests.request import Embed, Generate, Score, Stops, Update, Work
from sgc.runtime.engine.requests.text_rules import StopChecker
from sgc.runtime.engine.requests.validate import Limits
from sgc.runtime.engine.step.generation import begin

StopCheckerFactory = Callable[[Stops], StopChecker]


@dataclass(frozen=True, slots=True)
class Equipment:
    """jumps: whether tokens that a constraint forces are appended without a model step."""

    limits: Limits
    make_stop_checker: StopCheckerFactory | None
    jumps: bool

    def equip(self, work: Work) -> Update | None:
        """Makes the request's state; under a constraint, returns an update with forced tokens."""
        kind = work.request.kind
        if isinstance(kind, Score):
            work.trie = ChoiceTrie(kind.choices)
        elif isinstance(kind, Embed):
            work.pooled = Pooled(kind.pooling, work.n_prompt)
        if not isinstance(kind, Generate):
            return None
        if kind.params.has_penalties:
            work.decoding.penalties = Penalties(work.request.tokens, self.limits.vocab_size)
        if kind.stop:
            assert self.make_stop_checker is not None
            work.decoding.checker = self.make_stop_checker(kind.stop)
        if kind.logprobs is not None:
            start = kind.logprobs.start
            first = work.n_prompt if start is None else min(start, work.n_prompt)
            work.decoding.logprobs = LogprobLog(
                first, work.n_prompt, kind.logprobs.top, kind.logprobs.streams
            )
        if kind.constraint is None or kind.max_tokens == 0:
            return None
        # With log-probabilities every token needs a model step, so none is forced.
        work.decoding.guide = kind.constraint.start(self.jumps and kind.logprobs is None)
        return begin(work, self.limits.longest)
