"""What an executor asks of a backend: a small interface and the frozen data it speaks.

Implementations: `engine/backend.py` (our engine, over gRPC), scripted ones in tests. A
backend holds no program state: every request carries its whole prompt.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

from sgc.ir.sampling import GREEDY_BELOW
from sgc.runtime.executor.interface.media import Media


@dataclass(frozen=True, slots=True)
class RoleMark:
    """Where in a run's text a chat template begins or ends a message; code points, half open."""

    start: int
    end: int
    role: str
    is_begin: bool


@dataclass(frozen=True, slots=True)
class CacheMark:
    """Where in a run's text a provider is told to keep the prompt, in code points; ttl: for how
    long, "" the provider's default. At the very beginning it keeps nothing, and says that all that
    is worth keeping is marked.
    """

    at: int
    ttl: str = ""


@dataclass(frozen=True, slots=True)
class TextRun:
    """A maximal run of text, tokenized as one string.

    literal: half-open ranges of code points in which special tokens are plain text. roles: the
    parts of the text that are a chat template's, for backends that take messages. cache_marks:
    in order; hints, no part of the request.
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
    """An image or video. text: what stands for it in the text of the prompt."""

    media: Media
    text: str = ""


Prompt = tuple[TextRun | TokenRun | MediaRun, ...]


@dataclass(frozen=True, slots=True)
class LogprobsAsked:
    """Log-probabilities wanted with a generation.

    start: the prompt position from which on the prompt's are wanted too, None for none; top:
    how many of the likeliest alternatives a position; text: each token's text as well.
    """

    start: int | None = None
    top: int = 0
    text: bool = False


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample one generation; every value is decided, nothing is a default.

    heal: the prompt's last tokens are decided anew, under its text, where the text ends inside
    what could be one token. refused: how replies to this began that did not meet its constraint,
    which a backend may tell the model. is_repeatable: the seed is one that the user gave, or comes
    from such a one, so that the same draw may be asked for again; no part of the request. own_seed:
    the seed as the program gave it to the generation, for backends with seeds of their own; `seed`
    is drawn from it, so that what is equal without it is equal.
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
        """Whether an equal request stands for the same text."""
        return self.is_greedy or self.is_repeatable


@dataclass(frozen=True, slots=True)
class Usage:
    """Token positions; prompt_tokens = cached_tokens + computed_tokens. Times in seconds.

    forced_tokens: of completion_tokens, those a constraint forced without a step of their own.
    from_log: the reply was in the run's log; what it says was spent when that was written.
    from_ahead: an earlier reply had said it already (`speculation.py`); nothing was asked.
    from_cache, from_shared: it is the reply to an equal request, of a run before or of this one;
    what it says was spent on that one.
    Of providers: cache_written_tokens of computed_tokens, reasoning_tokens of completion_tokens,
    and what it cost in US dollars, None where no price is known.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    completion_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    forced_tokens: int = 0
    from_log: bool = False
    from_ahead: bool = False
    from_cache: bool = False
    from_shared: bool = False
    cache_written_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None

    def with_more(self, other: Usage) -> Usage:
        """With the tokens of another request that was made beside this one."""
        return replace(
            self,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            computed_tokens=self.computed_tokens + other.computed_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cache_written_tokens=self.cache_written_tokens + other.cache_written_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost_usd=sum_costs([self.cost_usd, other.cost_usd]),
        )


def sum_costs(costs: Iterable[float | None]) -> float | None:
    """The sum of those that are known; None where none is."""
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if known else None


class FinishReason(Enum):
    STOP = "stop"
    LENGTH = "length"


# [log-probability, token id, text]; the first of a prompt has no log-probability.
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

    text: without the stop string. ids: every sampled token. kept_ids: those that stay in the
    prompt as they are; head: text before them that joins the run before it, where the border
    was healed; tail: text after them that joins the next run. matched: the stop string or
    token id that ended it. extra: what else a server says of it; tells_all: and nothing else is
    told.
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
    """Log-probabilities of a choice's tokens, from where any choice can differ.

    texts: the tokens' texts where the backend tells them. unconditional: log-probabilities of
    the same tokens without the prompt, where asked for; the first has none. before: the token
    before them, without one; after: what would come next. Both only where the backend tells.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    texts: tuple[str | None, ...] = ()
    unconditional: tuple[float | None, ...] = ()
    before: tuple[Logprob, ...] = ()
    after: tuple[Logprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """What a backend says of choices: scores, or only the index of the one it `chosen`, and how.

    meta: all that `get_meta_info` is to tell, where the backend says it.
    """

    choices: tuple[ChoiceScore, ...]
    usage: Usage
    chosen: int | None = None
    how: str = ""
    meta: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RoleFormat:
    prefix: str
    suffix: str


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """What a chat template puts around each role's content.

    stop: strings that end every generation. system_in_user: a system message that comes first
    is put inside the user message that follows it, as Llama 2 wants. image_token: what stands
    for an image or a video in the text.
    """

    roles: Mapping[str, RoleFormat]
    default_system: str = ""
    stop: tuple[str, ...] = ()
    system_in_user: bool = False
    image_token: str = ""


# Fields of `Sampling` that not every backend can honour.
OPTIONAL_SAMPLING = frozenset(
    {"stop_regex", "regex", "json_schema", "ebnf", "logit_bias", "logprobs"}
    | {"min_tokens", "top_k", "min_p", "repetition_penalty", "stop_token_ids", "ignore_eos"}
    | {"frequency_penalty", "presence_penalty", "seed", "heal"}
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend is and can do.

    refuses: fields of `Sampling` it cannot honour, of OPTIONAL_SAMPLING. unconditional: it
    scores choices without the prompt too. images: it takes images. checked: constraints, regex and
    json_schema, that are sent and whose replies are checked all the same. scores: it tells
    log-probabilities of choices, and not only which it takes. tells_stop: it tells which stop
    string ended a generation. speculates: a request costs its whole prompt, so that asking for more
    than one generation at once pays. takes_messages: a prompt without roles is a message, which no
    generation goes on with. goes_on: it goes on with an assistant's message that has begun.
    pool_tokens: of how many tokens it keeps the KV at once, where it has a pool of its own.
    prefetches: it computes prompts ahead of their use. offers_logprobs: it is
    known to tell log-probabilities, so that they may be asked for where the program does not.
    """

    model: str
    chat: ChatFormat
    max_context: int
    special_tokens: tuple[str, ...] = ()
    max_in_flight: int = 256
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    refuses: frozenset[str] = frozenset()
    unconditional: bool = False
    images: bool = False
    checked: frozenset[str] = frozenset()
    scores: bool = True
    tells_stop: bool = True
    speculates: bool = False
    takes_messages: bool = False
    goes_on: bool = True
    pool_tokens: int | None = None
    prefetches: bool = False
    offers_logprobs: bool = True


class Delta(str):
    """Text as it comes, from a server that says more of it. meta: what it says."""

    __slots__ = ("meta",)

    def __new__(cls, text: str, meta: Mapping[str, Any]) -> Delta:
        delta = super().__new__(cls, text)
        delta.meta = meta
        return delta

    meta: Mapping[str, Any]


class Backend(Protocol):
    """All methods raise `BackendError`s; cancelling a call frees what it held at once."""

    async def capabilities(self) -> Capabilities: ...

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: Callable[[str], None] | None = None
    ) -> Generated:
        """Generates from the prompt; `on_delta` gets text as it appears, never retracted."""
        ...

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        """Several generations of one prompt; the samplings differ in their seeds only."""
        ...

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        """Log-probabilities of each choice after the prompt, and without it where asked."""
        ...

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        """Computes and caches the longest common token prefix of the prompt before `heads`."""
        ...

    async def prefetch(self, prompt: Prompt) -> Usage:
        """The same of any text that may follow, when nothing else waits: a hint. Its capabilities
        say whether it does anything."""
        ...

    async def close(self) -> None: ...


async def generate_each(
    backend: Backend, prompt: Prompt, samplings: Sequence[Sampling]
) -> tuple[Generated, ...]:
    """`generate_n` for a backend that knows single generations only."""
    work = [asyncio.ensure_future(backend.generate(prompt, each)) for each in samplings]
    try:
        return tuple(await asyncio.gather(*work))
    except BaseException:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        raise
