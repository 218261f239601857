"""Estimates what a provider would count and bill for a request, without sending it.

Requests are lowered as in a run. Prompt tokens are estimated from bytes: at the rate of the same
generation in a log, else at the table's rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sgc.predict.dry.provider_cache import ExpectedCache
from sgc.runtime.executor.backends.providers.backend import request_size
from sgc.runtime.executor.backends.providers.choose import lowered_select, select_sampling, way_of
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.wire.lower import Lowered, lower
from sgc.runtime.executor.backends.providers.wire.messages import Conversation
from sgc.runtime.executor.interface.backend import Generated, Prompt, Sampling, Scored, Usage
from sgc.runtime.executor.interface.place import Place

Generation = tuple[str, str]  # line and name


@dataclass(frozen=True, slots=True)
class Rates:
    """Prompt tokens per byte, by generation and overall. None: the table's."""

    by_generation: Mapping[Generation, float] = field(default_factory=dict)
    overall: float | None = None

    def of(self, place: Place) -> float | None:
        return self.by_generation.get((place.line, place.name), self.overall)


class ProviderMeter:
    """A `Meter` (`runtime/executor/backends/dry.py`) of one model."""

    def __init__(self, facts: Facts, rates: Rates | None = None) -> None:
        self.facts = facts
        self._rates = rates or Rates()
        self._cache = ExpectedCache(facts)

    def generate(
        self,
        place: Place,
        prompt: Prompt,
        samplings: Sequence[Sampling],
        replies: Sequence[Generated],
    ) -> list[Usage]:
        if samplings[0].max_tokens == 0:
            return [Usage()] * len(samplings)
        outputs = [reply.usage.completion_tokens for reply in replies]
        if len(samplings) > 1 and self.facts.n:
            lowered = lower(prompt, samplings[0], self.facts, n=len(samplings))
            usage = self.usage(place, lowered, sum(outputs))
            return [usage, *[Usage()] * (len(samplings) - 1)]
        return [
            self.usage(replace(place, number=place.number + n), lower(prompt, one, self.facts), out)
            for n, (one, out) in enumerate(zip(samplings, outputs, strict=True))
        ]

    def score(
        self,
        place: Place,
        prompt: Prompt,
        choices: tuple[str, ...],
        reply: Scored,
        unconditional: bool,
    ) -> Usage:
        way = way_of(prompt, choices, self.facts)
        if way == "echo":
            plain = lower(prompt, Sampling(max_tokens=1, temperature=0.0), self.facts)
            usage = Usage()
            for choice in choices:
                asked = replace(plain, asked=f"{plain.asked}{choice}")
                usage = usage.with_more(self.usage(place, asked, 1))
            return usage
        sampling = select_sampling(choices, self.facts)
        lowered = lowered_select(way, prompt, choices, self.facts, sampling)
        return self.usage(place, lowered, reply.usage.completion_tokens)

    def commit(self, prompt: Prompt, heads: tuple[str, ...]) -> Usage:
        return Usage()  # a provider caches only prompts of generations

    def usage(self, place: Place, lowered: Lowered, output: int) -> Usage:
        """Returns the usage of one request."""
        n_bytes, n_images = _sizes(lowered, self.facts)
        rate = self._rates.of(place)
        if rate is None:
            n_tokens = n_bytes / self.facts.bytes_per_token
            n_tokens += self.facts.tokens_a_message * (_n_messages(lowered) + 1)
        else:
            n_tokens = n_bytes * rate
        prompt_tokens = max(round(n_tokens), 1) + n_images * self.facts.image_tokens
        kept = self._cache.ask(lowered, prompt_tokens, n_bytes)
        prices = self.facts.prices
        cost = None
        if prices is not None:
            cost = prices.cost(prompt_tokens, kept.cached, kept.written_5m, kept.written_1h, output)
        return Usage(
            prompt_tokens=prompt_tokens,
            cached_tokens=kept.cached,
            computed_tokens=prompt_tokens - kept.cached,
            completion_tokens=output,
            cache_written_tokens=kept.written_5m + kept.written_1h,
            cost_usd=cost,
        )


class Calibration(ProviderMeter):
    """Finds token rates from requests whose usage is known."""

    def __init__(self, facts: Facts, known: Mapping[Place, Usage]) -> None:
        super().__init__(facts)
        self._known = known
        self._sums: dict[Generation, tuple[int, int]] = {}

    def usage(self, place: Place, lowered: Lowered, output: int) -> Usage:
        known = self._known.get(place)
        if known is not None and known.prompt_tokens:
            n_bytes, n_images = _sizes(lowered, self.facts)
            key = (place.line, place.name)
            bytes_before, before = self._sums.get(key, (0, 0))
            n_tokens = max(known.prompt_tokens - n_images * self.facts.image_tokens, 0)
            self._sums[key] = (bytes_before + n_bytes, before + n_tokens)
        return super().usage(place, lowered, output)

    def rates(self) -> Rates:
        sums = {key: both for key, both in self._sums.items() if all(both)}
        if not sums:
            return Rates()
        n_bytes, n_tokens = map(sum, zip(*sums.values(), strict=True))
        return Rates({key: n / size for key, (size, n) in sums.items()}, n_tokens / n_bytes)


def _sizes(lowered: Lowered, facts: Facts) -> tuple[int, int]:
    """The bytes of a request's texts, and the number of its images."""
    n_images = 0
    if isinstance(lowered.asked, Conversation):
        media = [media for each in lowered.asked.messages for media in each.media]
        n_images = sum(max(each.n_frames, 1) for each in media)
    return request_size(lowered, facts)[0], n_images


def _n_messages(lowered: Lowered) -> int:
    return len(lowered.asked.messages) if isinstance(lowered.asked, Conversation) else 0
