"""Parameters that a backend cannot honour: an error, or a check and a retry.

A constraint (`regex`, `json_schema`) that a backend cannot decode under is checked here, and the
generation is repeated a few times; any other refused parameter is an error. Nothing is dropped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from sgc.errors import BackendError, UnsupportedParameter, UsageError
from sgc.runtime.executor.interface.backend import (
    Backend,
    FinishReason,
    Generated,
    Prompt,
    Sampling,
)
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.interface.seeds import draw_seed
from sgc.runtime.executor.patterns.schemas import schema_check
from sgc.runtime.executor.patterns.timed_regex import Pattern

MAX_TRIES = 4
EXCERPT = 120  # characters of a rejected reply that the next try may show the model

_NEUTRAL = {field.name: field.default for field in fields(Sampling)}
# Fields that may be refused without an error: a reply is as good without them.
_UNSEEN = frozenset({"seed"})


class ConstraintFailed(BackendError):
    """No reply of the backend met the constraint in `MAX_TRIES` tries."""


@dataclass(frozen=True, slots=True)
class Check:
    """A constraint on replies. field: of `Sampling`, regex or json_schema; given: its value.

    Both may be hostile, so no check runs on the event loop.
    """

    field: str
    given: str

    @property
    def what(self) -> str:
        return "the pattern" if self.field == "regex" else "the JSON schema"

    async def prepare(self) -> None:
        """Raises UsageError for an invalid pattern or schema."""
        await asyncio.to_thread(_compiled, self)

    async def meets(self, text: str) -> bool:
        return await asyncio.to_thread(meets, self, text)


@lru_cache(maxsize=256)
def _compiled(check: Check) -> Callable[[str], bool]:
    if check.field == "regex":
        return Pattern(check.given).is_whole
    return schema_check(check.given)


def meets(check: Check, text: str) -> bool:
    """Whether a text meets the constraint; may be slow."""
    return _compiled(check)(text)


@dataclass(frozen=True, slots=True)
class Try:
    """One request of a generation: its sampling, its reply, and its times (monotonic seconds)."""

    sampling: Sampling
    reply: Generated
    start_s: float
    end_s: float


# Receives each try whose reply does not meet the constraint.
OnThrown = Callable[[Try], None]


@dataclass(frozen=True, slots=True)
class ConstraintPlan:
    """How to request a generation. check: the constraint that is checked here."""

    sampling: Sampling
    check: Check | None = None

    @property
    def can_stream(self) -> bool:
        return self.check is None

    async def generate(
        self,
        backend: Backend,
        prompt: Prompt,
        on_delta: Callable[[str], None] | None,
        on_thrown: OnThrown,
    ) -> Try:
        """Returns the try whose reply is used."""
        if self.check is None:
            return await _try(backend, prompt, self.sampling, on_delta)
        return await self._checked(self.check, backend, prompt, self.sampling, on_thrown)

    async def generate_n(
        self,
        backend: Backend,
        prompt: Prompt,
        seeds: Sequence[tuple[int, int | None]],
        on_thrown: OnThrown,
    ) -> tuple[Try, ...]:
        """Returns one try per seed. seeds: pairs of `Sampling.seed` and `Sampling.own_seed`."""
        samplings = [replace(self.sampling, seed=seed, own_seed=own) for seed, own in seeds]
        if self.check is not None:
            return tuple(
                [
                    await self._checked(self.check, backend, prompt, each, on_thrown)
                    for each in samplings
                ]
            )
        start_s = time.monotonic()
        replies = await backend.generate_n(prompt, samplings)
        end_s = time.monotonic()
        both = zip(samplings, replies, strict=True)
        return tuple([Try(sampling, reply, start_s, end_s) for sampling, reply in both])

    async def _checked(
        self, check: Check, backend: Backend, prompt: Prompt, sampling: Sampling, thrown: OnThrown
    ) -> Try:
        await check.prepare()
        refused: tuple[str, ...] = ()
        for _ in range(MAX_TRIES):
            tried = await _try(backend, prompt, retried(sampling, len(refused), refused))
            if await check.meets(tried.reply.text):
                return tried
            thrown(tried)
            refused = (*refused, excerpt(tried.reply.text))
        is_cut = tried.reply.finish_reason is FinishReason.LENGTH
        raise ConstraintFailed(
            f"none of {MAX_TRIES} replies met {check.what}; the last was {refused[-1]!r}",
            hint=f"it was cut off by max_tokens={sampling.max_tokens}; raise max_tokens"
            if is_cut
            else "this backend cannot decode under a constraint; its replies are checked, and "
            "it is asked again",
        )


async def _try(
    backend: Backend,
    prompt: Prompt,
    sampling: Sampling,
    on_delta: Callable[[str], None] | None = None,
) -> Try:
    start_s = time.monotonic()
    reply = await backend.generate(prompt, sampling, on_delta)
    return Try(sampling, reply, start_s, time.monotonic())


def excerpt(text: str) -> str:
    """Returns the beginning of a reply, as text that can be encoded."""
    shown = text if len(text) <= EXCERPT else text[:EXCERPT] + "…"
    return shown.encode("utf-8", "replace").decode()


def retried(sampling: Sampling, number: int, refused: tuple[str, ...] = ()) -> Sampling:
    """Returns the sampling of a try: later tries are never greedy, which would repeat the reply."""
    if number == 0:
        return sampling
    temperature = 1.0 if sampling.is_greedy else sampling.temperature
    seed = draw_seed(sampling.seed, "", "retry", number)
    own = None if sampling.own_seed is None else draw_seed(sampling.own_seed, "", "retry", number)
    return replace(
        sampling,
        temperature=temperature,
        seed=seed,
        refused=refused,
        own_seed=own,
        is_repeatable=sampling.is_deterministic,
    )


def plan_constraint(sampling: Sampling, capabilities: Capabilities) -> ConstraintPlan:
    """Plans a generation's requests; raises UnsupportedParameter if they are impossible."""
    plan = _plan_refused(sampling, capabilities)
    sent = [name for name in sorted(capabilities.checked) if getattr(sampling, name) is not None]
    if len(sent) > 1:
        raise _one_constraint(capabilities)
    return replace(plan, check=Check(sent[0], getattr(sampling, sent[0]))) if sent else plan


def _one_constraint(capabilities: Capabilities) -> UnsupportedParameter:
    return UnsupportedParameter(
        f"{capabilities.model} cannot honour regex and json_schema at once",
        hint="leave one of them out; a reply is checked against one",
    )


def _plan_refused(sampling: Sampling, capabilities: Capabilities) -> ConstraintPlan:
    given = [
        name for name in capabilities.refuses - _UNSEEN if getattr(sampling, name) != _NEUTRAL[name]
    ]
    if not given:
        return ConstraintPlan(sampling)
    refused = sorted(set(given) - {"regex", "json_schema"})
    if refused:
        raise UnsupportedParameter(
            f"{capabilities.model} cannot honour {', '.join(refused)}",
            hint="leave it out, or run on a backend that can; parameters are never dropped",
        )
    if len(given) > 1:
        raise _one_constraint(capabilities)
    (name,) = given
    constraint = getattr(sampling, name)
    if not isinstance(constraint, str):
        raise UsageError(f"{name} must be a text, found {constraint!r}")
    sent = replace(sampling, regex=None) if name == "regex" else replace(sampling, json_schema=None)
    return ConstraintPlan(sent, Check(name, constraint))
