"""Upper bounds of the cost of one generation or choice, on a provider's model or our engine.

Nothing counts as cached. Each byte of a prompt, and of the text around each message, counts as a
token; a generation counts all its max_tokens. A constraint that is only checked on the client costs
all allowed tries.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sgc.predict.bounds.cost import Cost
from sgc.predict.bounds.lengths import Bound
from sgc.runtime.executor.backends.providers.backend import TOKENS_A_MESSAGE
from sgc.runtime.executor.backends.providers.choose import ROOM_TO_REASON
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.wire.lower import REWRITE, ROOM_FOR_JSON
from sgc.runtime.executor.backends.providers.wire.notes import LONGEST_REFUSED, longest_note
from sgc.runtime.executor.backends.providers.wire.schema import Shape, of_regex, of_schema
from sgc.runtime.executor.backends.speculation import MAX_MESSAGES
from sgc.runtime.executor.interface.backend import Sampling
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.patterns.checked_constraints import MAX_TRIES, plan_constraint

INSTRUCTION = 96  # bytes of the instruction to take one of some choices, without them


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt's size. tokens: of its text and generations; n_messages: messages begun."""

    tokens: float
    n_messages: int
    n_images: int


class Asking(Protocol):
    """Upper bounds of the cost of requests."""

    @property
    def capabilities(self) -> Capabilities: ...

    def generate(self, asked: Asked, sampling: Sampling, n: int, ahead: int) -> Cost: ...

    def select(self, asked: Asked, choices: Sequence[Bound], unconditional: bool) -> Cost: ...

    def commit(self, asked: Asked) -> Cost: ...


@dataclass(frozen=True)
class EngineAsking:
    """For our engine, which costs no money. n_first: tokens that every prompt begins with."""

    capabilities: Capabilities
    n_first: int

    def generate(self, asked: Asked, sampling: Sampling, n: int, ahead: int) -> Cost:
        return Cost(1, asked.tokens + self.n_first, sampling.max_tokens).times(n)

    def select(self, asked: Asked, choices: Sequence[Bound], unconditional: bool) -> Cost:
        said = sum(choice.tokens for choice in choices)
        alone = said + self.n_first * len(choices) if unconditional else 0
        return Cost(1, asked.tokens + self.n_first + said + alone)

    def commit(self, asked: Asked) -> Cost:
        return Cost(1, asked.tokens + self.n_first)


@dataclass(frozen=True)
class ProviderAsking:
    """For a provider's model. is_marked: the program has cache marks, whose writes are billed."""

    capabilities: Capabilities
    facts: Facts
    is_marked: bool = False

    def generate(self, asked: Asked, sampling: Sampling, n: int, ahead: int) -> Cost:
        if sampling.max_tokens == 0:
            return Cost(n)
        plan = plan_constraint(sampling, self.capabilities)
        shape = self._shape(sampling)
        n_shape = len(str(shape.schema)) if shape is not None else 0
        is_wrapped = shape is not None and shape.unwrap is not None
        limit = sampling.max_tokens + (ROOM_FOR_JSON if is_wrapped else 0)
        prompt = self._prompt(asked) + n_shape
        if plan.check is not None:
            told = prompt + longest_note(sampling)
            return self._cost(told, limit).times(MAX_TRIES * n)
        together = n > 1 and self.facts.n
        cost = self._cost(prompt, limit * n) if together else self._cost(prompt, limit).times(n)
        if ahead and n == 1:
            n_tries = 1 if self.capabilities.goes_on else MAX_MESSAGES
            cost = cost.plus(self._cost(prompt, max(ahead, limit)).times(n_tries))
        return cost

    def _shape(self, sampling: Sampling) -> Shape | None:
        facts = self.facts
        if sampling.regex is not None:
            return of_regex(sampling.regex, facts) if facts.structured and not facts.regex else None
        if sampling.json_schema is None or not facts.structured:
            return None
        return of_schema(sampling.json_schema, facts)

    def select(self, asked: Asked, choices: Sequence[Bound], unconditional: bool) -> Cost:
        sizes = [_quoted(choice) for choice in choices]
        longest, listed = max(sizes), sum(sizes) + 2 * len(sizes)
        prompt = self._prompt(asked)
        room = ROOM_FOR_JSON + (ROOM_TO_REASON if self.facts.reasoning else 0)
        cost = Cost()
        for way in self.facts.select:
            if way == "echo":
                found = self._cost(prompt + longest, 1).times(len(choices))
            elif way == "logit_bias":
                found = self._cost(prompt + longest, 1).times(longest)
            else:
                told = prompt + listed + INSTRUCTION + LONGEST_REFUSED + 2 * room
                limit = min(longest + room, self.facts.max_output)
                found = self._cost(told, limit).times(MAX_TRIES)
            cost = cost.maximum(found)
        return cost

    def commit(self, asked: Asked) -> Cost:
        return Cost(1)

    def _prompt(self, asked: Asked) -> float:
        tokens = asked.tokens + self.facts.image_tokens * asked.n_images
        if self.facts.api == "completions":
            return tokens
        rewrite = len(REWRITE) + 2 if self.facts.prefill == "rewrite" else 0
        return tokens + rewrite + TOKENS_A_MESSAGE * (asked.n_messages + 3)

    def _cost(self, prompt: float, output: float) -> Cost:
        prices = self.facts.prices
        if prices is None:
            return Cost(1, prompt, output)
        if not math.isfinite(prompt + output):
            return Cost(1, prompt, output, math.inf)
        n_prompt, n_output = math.ceil(prompt), math.ceil(output)
        if self._may_write:
            return Cost(1, prompt, output, prices.ceiling(n_prompt, n_output))
        return Cost(1, prompt, output, prices.cost(n_prompt, 0, 0, 0, n_output))

    @property
    def _may_write(self) -> bool:
        """Whether a request may be billed for cache writes."""
        caching = self.facts.caching
        if caching is None or self.facts.cache == "off" or caching.kind == "automatic":
            return False
        return caching.kind == "both" or self.is_marked or self.facts.cache == "vendor"


def _quoted(choice: Bound) -> float:
    """The bytes of a choice as JSON."""
    if choice.known is not None:
        return float(len(json.dumps(choice.known[0]).encode()))
    return 6 * choice.changed + 2
