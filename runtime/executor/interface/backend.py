"""The interface between executor and backends, and the frozen data that they exchange.

`engine/backend.py` (our engine, over gRPC) is one backend, `scripted.py` (for tests) another. A
backend holds no program state: every request carries its whole prompt.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol, Self

from sgc.errors import UsageError
from sgc.ir.sampling import GREEDY_BELOW
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.interface.media import Media


@dataclass(frozen=True, slots=True)
class RoleMark:
    """Where in a text run a chat template begins or ends a message: half open, in code points."""

    start: int
    end: int
    role: str
    is_begin: bool


@dataclass(frozen=True, slots=True)
class CacheMark:
    """The place in a text run, in code points, up to which a provider caches the prompt.

    ttl: for how long, "" for the provider's default. A mark at the very beginning caches nothing;
    it says that all text worth caching is marked.
    """

    at: int
    ttl: str = ""


@dataclass(frozen=True, slots=True)
class TextRun:
    """A maximal run of text, tokenized as one string.

    literal: half-open ranges of code points in which special tokens are plain text. roles: the
    parts of the text that come from a chat template, for backends that take messages. cache_marks:
    in order; hints, not part of the request.
    """

    text: str
    literal: tuple[tuple[int, int], ...] = ()
    roles: tuple[RoleMark, ...] = ()
    cache_marks: tuple[CacheMark, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class TokenRun:
    """Generated tokens, kept with the ids they were generated with."""

    ids: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class MediaRun:
    """An image or video. text: its placeholder in the text of the prompt."""

    media: Media
    text: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """Parts that may be encoded side by side, each after what comes before them."""

    parts: tuple[Prompt, ...]

    @property
    def text(self) -> str:
        return "".join(run.text for part in self.parts for run in part)


Prompt = tuple[TextRun | TokenRun | MediaRun | Joined, ...]
OnDelta = Callable[[str], None]  # gets a text as it appears, piece by piece


@dataclass(frozen=True, slots=True)
class LogprobsAsked:
    """The log-probabilities that a generation returns.

    start: the first prompt position whose log-probability is returned too, None for none; top: how
    many of the likeliest alternatives at each position; text: each token's text as well.
    """

    start: int | None = None
    top: int = 0
    text: bool = False


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample one generation; all values are decided: a backend fills in no defaults.

    heal: if the prompt's text ends inside a possible token, its last tokens are sampled again,
    constrained to begin with that text. refused: beginnings of earlier replies that did not meet
    the constraint, which a backend may show the model. is_repeatable: the user set the seed, so an
    equal draw has an equal reply; not part of the request. own_seed: the seed that the program set,
    for backends with seeds of their own; `seed` is derived from it, so it is not compared.
    """

    max_tokens: int
    min_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    stop_regex: tuple[str, ...] = ()
    regex: str | None = None
    json_schema: str | None = None
    ebnf: str | None = None
    logit_bias: tuple[tuple[int, float], ...] = ()
    heal: bool = False
    logprobs: LogprobsAsked | None = None
    refused: tuple[str, ...] = ()
    is_repeatable: bool = field(default=False, compare=False)
    own_seed: int | None = field(default=None, compare=False)

    @property
    def is_greedy(self) -> bool:
        return self.temperature < GREEDY_BELOW

    @property
    def is_deterministic(self) -> bool:
        """Whether an equal request has an equal reply."""
        return self.is_greedy or self.is_repeatable


@dataclass(frozen=True, slots=True)
class Usage:
    """Token positions; prompt_tokens = cached_tokens + computed_tokens. Times in seconds.

    forced_tokens: those of completion_tokens that a constraint forced without a step of their own.
    joined_tokens: those of prompt_tokens that were encoded side by side, an approximation.
    from_log: the reply is from the run's log; its tokens and times were spent when the log was
    written. from_ahead: an earlier reply already held the text (`speculation.py`); no request was
    made. from_cache, from_shared: the reply to an equal request, of an earlier run or of this one;
    its tokens and times were spent on that request. Providers only: cache_written_tokens (part of
    computed_tokens), reasoning_tokens (part of completion_tokens), and cost_usd, None where no
    price is known.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    completion_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    forced_tokens: int = 0
    joined_tokens: int = 0
    from_log: bool = False
    from_ahead: bool = False
    from_cache: bool = False
    from_shared: bool = False
    cache_written_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None

    def with_more(self, other: Usage) -> Usage:
        """Returns the sum with a request that was made concurrently; times are not added."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _ADDED}
        return replace(self, **sums, cost_usd=sum_costs([self.cost_usd, other.cost_usd]))


_ADDED = (
    "prompt_tokens", "cached_tokens", "computed_tokens", "completion_tokens", "joined_tokens",
    "cache_written_tokens",
)  # fmt: skip


def sum_costs(costs: Iterable[float | None]) -> float | None:
    """Returns the sum of the known costs; None if none is known."""
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if known else None


class FinishReason(Enum):
    STOP = "stop"
    LENGTH = "length"


# (log-probability, token id, text); the first token of a prompt has no log-probability.
Logprob = tuple[float | None, int, str | None]


@dataclass(frozen=True, slots=True)
class Logprobs:
    """Log-probabilities of the prompt's tokens and the generated ones, and of alternatives."""

    input: tuple[Logprob, ...] = ()
    output: tuple[Logprob, ...] = ()
    input_top: tuple[tuple[Logprob, ...] | None, ...] = ()
    output_top: tuple[tuple[Logprob, ...] | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Generated:
    """A finished generation: its text is `head`, the text of the kept ids, and `tail`.

    text: without the stop string. ids: every sampled token. kept_ids: those that stay in the prompt
    unchanged; head: text before them, which joins the text run before it if the border was healed;
    tail: text after them, which joins the next text run. matched: the stop string or token id that
    ended it. extra: further facts from the server; tells_all: `extra` is the whole meta info.
    """

    text: str
    ids: tuple[int, ...]
    kept_ids: tuple[int, ...]
    tail: str
    finish_reason: FinishReason
    matched: str | int | None
    usage: Usage
    logprobs: Logprobs | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    head: str = ""
    tells_all: bool = False


@dataclass(frozen=True, slots=True)
class ChoiceScore:
    """Log-probabilities of a choice's tokens, from the first position where choices can differ.

    texts: the tokens' texts. unconditional: log-probabilities of the same tokens without the
    prompt, if requested; the first has none. before: the token before them, without a
    log-probability; after: the likeliest next tokens. texts, before and after are empty if the
    backend does not return them.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    texts: tuple[str | None, ...] = ()
    unconditional: tuple[float | None, ...] = ()
    before: tuple[Logprob, ...] = ()
    after: tuple[Logprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """A backend's reply on choices: their scores, or only the index that it has `chosen`.

    how: how it chose. meta: the whole result of `get_meta_info`, if the backend returns it.
    """

    choices: tuple[ChoiceScore, ...]
    usage: Usage
    chosen: int | None = None
    how: str = ""
    meta: Mapping[str, Any] | None = None


class Delta(str):
    """Text of a stream with further facts from the server. meta: those facts."""

    __slots__ = ("meta",)

    def __new__(cls, text: str, meta: Mapping[str, Any]) -> Delta:
        delta = super().__new__(cls, text)
        delta.meta = meta
        return delta

    meta: Mapping[str, Any]


class Backend(Protocol):
    """A model that programs run on.

    A subclass defines `generate`, `score` and `capabilities`; by default it caches no prompts and
    has nothing to close. All methods raise `BackendError`s; cancelling a call frees its resources
    at once.
    """

    async def capabilities(self) -> Capabilities: ...

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        """Generates from the prompt; `on_delta` gets text as it appears, never retracted."""
        ...

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        """Several generations of one prompt; the samplings differ in their seeds only."""
        work = [asyncio.ensure_future(self.generate(prompt, each)) for each in samplings]
        try:
            return tuple(await asyncio.gather(*work))
        except BaseException:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            raise

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        """Returns log-probabilities of each choice after the prompt, and without it if asked."""
        ...

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        """Computes and caches the longest common token prefix of the prompt before `heads`."""
        return Usage()

    async def prefetch(self, prompt: Prompt) -> Usage:
        """Computes and caches a prompt ahead of its use, when nothing else waits: a hint.

        `Capabilities.prefetches` says whether it has an effect.
        """
        return Usage()

    def with_adapter(self, name: str) -> Backend:
        """The same backend, whose requests ask for an adapter of the engine by its name. Raises
        UsageError where there are none."""
        raise UsageError(
            f"adapter={name!r} is for engines of sgc, and this backend is none",
            hint="start one with `sgc serve --adapter NAME=FOLDER`",
        )

    async def close(self) -> None:
        """Closes the connections; unfinished calls fail."""
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
