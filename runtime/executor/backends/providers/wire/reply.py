"""A provider's reply, and its conversion to a generation."""

from __future__ import annotations

from dataclasses import dataclass

from sgc.errors import BackendError
from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply
from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.texts import joined
from sgc.runtime.executor.backends.stops import first_stop
from sgc.runtime.executor.interface.backend import FinishReason, Generated, Logprobs, Usage


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens as a provider counts them. prompt: includes cached and written ones.

    output: includes reasoning; is_known: whether the reply had the counts. A sum that is less than
    its parts (some servers leave them out of it) is taken as their sum.
    """

    prompt: int = 0
    cached: int = 0
    written_5m: int = 0
    written_1h: int = 0
    output: int = 0
    reasoning: int = 0
    is_known: bool = True

    def __post_init__(self) -> None:
        parts = self.cached + self.written_5m + self.written_1h
        object.__setattr__(self, "prompt", max(self.prompt, parts))
        object.__setattr__(self, "output", max(self.output, self.reasoning))

    def usage(self, cost_usd: float | None) -> Usage:
        return Usage(
            prompt_tokens=self.prompt,
            cached_tokens=self.cached,
            computed_tokens=self.prompt - self.cached,
            completion_tokens=self.output,
            cache_written_tokens=self.written_5m + self.written_1h,
            reasoning_tokens=self.reasoning,
            cost_usd=cost_usd,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """One completion, and what ended it."""

    text: str
    finish_reason: FinishReason
    matched: str | int | None = None
    logprobs: Logprobs | None = None


@dataclass(frozen=True, slots=True)
class Replies:
    """The completions of one request, and their total usage."""

    replies: tuple[Reply, ...]
    spent: Spent


def generated(reply: Reply, lowered: Lowered, usage: Usage) -> Generated:
    """A reply's generation: unwrapped, cut at its stop, without the prompt's white space."""
    text = reply.text
    if not text and reply.finish_reason is FinishReason.LENGTH and usage.reasoning_tokens:
        raise BackendError(
            f"all of max_tokens={lowered.max_tokens} went into the model's reasoning, and no text "
            "was left",
            hint="give it more max_tokens, or less to reason with: ?effort=low",
        )
    stop = lowered.local_stop
    if lowered.shape is not None:
        try:
            text = joined(lowered.shape.text_of(reply.text))
        except (ValueError, RecursionError, MalformedReply):
            stop = ()  # cut off or not of the shape: the later check reports it
    text = without_cut(text, lowered.cut)
    matched, finish_reason = reply.matched, reply.finish_reason
    found = first_stop(text, stop)
    if found is not None:
        at, matched = found
        text, finish_reason = text[:at], FinishReason.STOP
    return Generated(text, (), (), text, finish_reason, matched, usage, reply.logprobs)


def without_cut(text: str, cut: str) -> str:
    """The text without the part of `cut` that it repeats at its beginning."""
    n = next((n for n in range(len(cut), 0, -1) if text.startswith(cut[len(cut) - n :])), 0)
    return text[n:]
