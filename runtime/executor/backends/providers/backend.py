"""A provider's model as a backend: requests are lowered, paced, retried and priced.

One class serves all providers, each with its own `Api`. It has no program state; every request
carries its whole prompt. An object belongs to the event loop that it was made on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from sgc.errors import BackendError, UsageError
from sgc.runtime.executor.backends.providers.caches.cache_write_leader import Leaders
from sgc.runtime.executor.backends.providers.caches.keys import CacheKeys
from sgc.runtime.executor.backends.providers.models.models import Facts, refusal
from sgc.runtime.executor.backends.providers.models.prices import Prices
from sgc.runtime.executor.backends.providers.select import select
from sgc.runtime.executor.backends.providers.wire.limits import (
    Clock,
    Limits,
    LimitSettings,
    RealClock,
)
from sgc.runtime.executor.backends.providers.wire.lower import (
    Lowered,
    lower,
    refused_fields,
)
from sgc.runtime.executor.backends.providers.wire.messages import (
    Conversation,
    Prefix,
    marked_prefixes,
)
from sgc.runtime.executor.backends.providers.wire.reply import Replies, generated
from sgc.runtime.executor.backends.providers.wire.retry import Attempts, Estimate
from sgc.runtime.executor.backends.providers.wire.safe_stream import SafeStream
from sgc.runtime.executor.interface.backend import (
    Backend,
    FinishReason,
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities, ChatFormat, RoleFormat
from sgc.runtime.executor.prompts.chat_templates import template_for

MAX_IN_FLIGHT = 64
# Tokens around each message, beside its text; an upper bound.
TOKENS_A_MESSAGE = 16
FEWEST_BYTES_A_TOKEN = 3  # of a prompt that may be long enough to be cached
BYTES_A_TOKEN = 4  # for estimates; upper bounds count a token per byte


class Api(Protocol):
    @property
    def base_url(self) -> str: ...

    async def send(self, lowered: Lowered, facts: Facts, on_text: OnDelta | None) -> Replies: ...

    async def close(self) -> None: ...


class ProviderBackend(Backend):
    """A `Backend` (see `../backend.py`) of one model. prices: instead of the table's;
    settings_digest: a hash of settings that are sent with each request.

    Raises UsageError if cost is limited and prices are not known.
    """

    def __init__(
        self,
        api: Api,
        facts: Facts,
        settings: LimitSettings,
        prices: Prices | None = None,
        clock: Clock | None = None,
        settings_digest: str = "",
    ) -> None:
        self.api = api
        self._settings_digest = settings_digest
        self.facts = facts if prices is None else replace(facts, prices=prices)
        if settings.max_cost is not None and self.facts.prices is None:
            raise UsageError(
                f"--max-cost needs the prices of {facts.model}, which are not known",
                hint='give --prices FILE, with {"MODEL": {"input": 1.0, "output": 2.0}}',
            )
        self.max_in_flight = settings.max_concurrency or MAX_IN_FLIGHT
        self.limits = Limits(settings, self.max_in_flight, clock or RealClock())
        self.attempts = Attempts(self.limits, lambda replies: self.cost(replies) or 0.0)
        self.leaders = Leaders(self.facts.caching, self.limits.clock)
        self._keys = CacheKeys(self.facts.caching, self.limits.clock)
        self._capabilities = capabilities_of(self.facts, self.max_in_flight)

    async def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def scope(self) -> str:
        """What replies depend on beside the model's name: the server and request settings."""
        facts = self.facts
        ways = (facts.api, facts.prefill, *facts.select, facts.effort)
        digest = (self._settings_digest,) if self._settings_digest else ()
        return " ".join((facts.provider, self.api.base_url, *ways, *digest))

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        if sampling.max_tokens == 0:
            return _nothing(sampling, self.facts)
        lowered = lower(prompt, sampling, self.facts)
        shown = None if on_delta is None else SafeStream(on_delta, lowered)
        found = (await self.send(lowered, sampling.seed, shown))[0]
        if shown is not None:
            shown.finish(found.text)
        return found

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        """Makes one request if the API has `n`; the first reply carries the prompt's usage."""
        if not samplings:
            return ()
        if len(samplings) == 1 or not self.facts.n or samplings[0].max_tokens == 0:
            return await super().generate_n(prompt, samplings)
        lowered = lower(prompt, samplings[0], self.facts, n=len(samplings))
        return await self.send(lowered, samplings[0].seed)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        """The model's choice; with scores only if the API returns log-probabilities of prompts."""
        assert not unconditional, "the capabilities say so"
        return await select(self.send, self.facts, prompt, choices)

    async def flush_cache(self) -> int:
        """Does nothing: a provider's cache cannot be flushed."""
        return 0

    async def close(self) -> None:
        """Closes the connections; unfinished calls fail."""
        await self.api.close()

    # Asking.

    async def send(
        self, lowered: Lowered, seed: int, shown: SafeStream | None = None
    ) -> tuple[Generated, ...]:
        """The generations of a request; the first one carries the usage.

        If its prompt has cache marks, one request writes the cache entry and the others wait.
        """
        prefixes = self._prefixes(lowered)
        key = self._keys.key_for(prefixes)
        if key:  # a cache entry is found only with its key
            prefixes = tuple(replace(p, digest=f"{key} {p.digest}") for p in prefixes)
            lowered = replace(lowered, params={**lowered.params, "prompt_cache_key": key})
        async with self.leaders.turn(prefixes) as begun:
            replies = await self._ask(lowered, seed, shown, begun)
        usage = replies.spent.usage(self.cost(replies))
        usages = [usage, *[Usage()] * (len(replies.replies) - 1)]
        pairs = zip(replies.replies, usages, strict=True)
        found = tuple([generated(reply, lowered, each) for reply, each in pairs])
        if not self.facts.is_known and lowered.top_logprobs is not None:
            _check_logprobs(found)
        return found

    async def _ask(
        self,
        lowered: Lowered,
        seed: int,
        shown: SafeStream | None,
        begun: Callable[[], None] | None,
    ) -> Replies:
        """begun: called at the first text, if other requests wait for it."""
        # Structured output is unwrapped to text only when complete, so it is not streamed.
        streams = shown is not None and (lowered.shape is None or lowered.shape.unwrap is None)
        if begun is not None and lowered.n == 1:
            lowered = replace(lowered, is_streamed=True)

        def on_text(text: str) -> None:
            if begun is not None:
                begun()
            if shown is not None and streams:
                shown.add(text)

        async def once() -> Replies:
            if shown is not None and streams:
                shown.begin_anew()
            is_streamed = lowered.is_streamed or streams
            return await self.api.send(lowered, self.facts, on_text if is_streamed else None)

        def may_retry() -> bool:
            return shown is None or not shown.has_shown

        return await self.attempts.send(once, self.estimate(lowered), seed, may_retry)

    def _prefixes(self, lowered: Lowered) -> tuple[Prefix, ...]:
        """The marked prefixes that are long enough to be cached."""
        caching, asked = self.facts.caching, lowered.asked
        is_planned = isinstance(asked, Conversation) and asked.is_planned
        if caching is None or self.facts.cache != "plan" or not is_planned:
            return ()
        assert isinstance(asked, Conversation)
        also = "" if lowered.shape is None else json.dumps(lowered.shape.schema, sort_keys=True)
        found = marked_prefixes(asked.messages, also)
        least = caching.min_tokens * FEWEST_BYTES_A_TOKEN
        return tuple(each for each in found if each.n_bytes >= least)

    def cost(self, replies: Replies) -> float | None:
        prices, spent = self.facts.prices, replies.spent
        if prices is None or not spent.is_known:
            return None
        return prices.cost(
            spent.prompt, spent.cached, spent.written_5m, spent.written_1h, spent.output
        )

    def estimate(self, lowered: Lowered) -> Estimate:
        """What a request may use; the upper bound counts a token per byte."""
        n_bytes, n_fixed = request_size(lowered, self.facts)
        n_output = lowered.max_tokens * lowered.n
        prices = self.facts.prices
        is_bounded = self.limits.budget.cap is not None and prices is not None
        ceiling = prices.ceiling(n_bytes + n_fixed, n_output) if is_bounded and prices else 0.0
        return Estimate(n_bytes // BYTES_A_TOKEN + n_fixed + n_output, ceiling)


def capabilities_of(facts: Facts, max_in_flight: int = MAX_IN_FLIGHT) -> Capabilities:
    """The capabilities of a model's backend."""
    return Capabilities(
        model=facts.model,
        chat=_chat_of(facts),
        max_context=facts.context,
        max_in_flight=max_in_flight,
        refuses=refused_fields(facts),
        # Rewriting turns a begun message into a different prompt, with different text.
        speculates=facts.prefill != "rewrite" or facts.api == "completions",
        takes_messages=facts.api != "completions",
        goes_on=facts.api == "completions" or facts.prefill != "none",
        images=facts.images and facts.api != "completions",
        checked=frozenset({"regex", "json_schema"}),
        scores=facts.select[0] == "echo",
        tells_stop=facts.tells_stop,
        offers_logprobs=facts.is_known,
    )


def request_size(lowered: Lowered, facts: Facts) -> tuple[int, int]:
    """The bytes of a request's texts, and the tokens of its other parts."""
    schema = len(str(lowered.shape.schema)) if lowered.shape is not None else 0
    if not isinstance(lowered.asked, Conversation):
        return len(lowered.asked.encode("utf-8", "surrogatepass")) + schema, 0
    messages = lowered.asked.messages
    texts = [message.text for message in messages] + [lowered.asked.prefill]
    n_images = sum(max(media.n_frames, 1) for each in messages for media in each.media)
    fixed = TOKENS_A_MESSAGE * (len(messages) + 2) + facts.image_tokens * n_images
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) + schema, fixed


def _chat_of(facts: Facts) -> ChatFormat:
    """How messages look in a program's text; the API gets them as messages.

    A completions model uses the chat template found by its name.
    """
    if facts.api == "completions":
        return template_for(facts.model)[1]
    roles = {role: RoleFormat(f"{role.upper()}:", "\n") for role in facts.roles}
    return ChatFormat(roles=roles, image_token="<image>")


def _check_logprobs(found: Sequence[Generated]) -> None:
    if any(each.text and each.logprobs is None for each in found):
        raise BackendError(
            "the server returned no log-probabilities, which return_logprob asks for",
            hint="leave it out, or run on a server that returns them",
        )


def _nothing(sampling: Sampling, facts: Facts) -> Generated:
    if sampling.logprobs is not None:
        raise refusal(facts, "returns no log-probabilities without generating (max_tokens=0)")
    return Generated("", (), (), "", FinishReason.LENGTH, None, Usage())
