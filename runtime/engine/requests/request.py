"""The records of a request: its parameters (frozen), its state while it lives, and its updates.

`Work` is the only mutable record; the scheduler and the core change it. No tensors here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.cache.radix import Node
from sgc.runtime.engine.images.image import Placed, positions_of
from sgc.runtime.engine.ints import IntBuffer, Ints
from sgc.runtime.engine.requests.choices import ChoiceTrie
from sgc.runtime.engine.requests.guesses import Guesses
from sgc.runtime.engine.requests.joined import Joins, shift_of
from sgc.runtime.engine.requests.logprobs import LogprobLog, TokenLogprob
from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.requests.pooling import Pooled
from sgc.runtime.engine.requests.recurrence import Recurrence
from sgc.runtime.engine.requests.text_rules import Constraint, Guide, StopChecker


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to draw a token; the defaults are greedy. See `sampler.py` for the definitions."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    logit_bias: tuple[tuple[int, float], ...] = ()

    @property
    def is_greedy(self) -> bool:
        return self.temperature < 1e-5

    @property
    def has_penalties(self) -> bool:
        return (
            self.frequency_penalty != 0
            or self.presence_penalty != 0
            or self.repetition_penalty != 1
        )


@dataclass(frozen=True, slots=True)
class Stops:
    """Texts and patterns that end a generation, matched after the first `n_skipped` characters."""

    texts: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    n_skipped: int = 0

    def __bool__(self) -> bool:
        return bool(self.texts or self.patterns)


@dataclass(frozen=True, slots=True)
class LogprobsAsked:
    """start: the prompt's from this position on, too; top: how many likeliest tokens each; streams:
    whether they are told as tokens come, and not only at the end."""

    start: int | None = None
    top: int = 0
    streams: bool = False


@dataclass(frozen=True, slots=True)
class Generate:
    """stop_ids: tokens that end it, end-of-sequence ones included."""

    max_tokens: int
    params: SamplingParams = SamplingParams()
    min_tokens: int = 0
    stop: Stops = Stops()
    stop_ids: tuple[int, ...] = ()
    constraint: Constraint | None = None
    logprobs: LogprobsAsked | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """Log-probabilities of each choice's tokens after the prompt."""

    choices: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """Computes and caches the prompt."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Computes and caches the prompt when the engine has time (`prefetch_queue.py`)."""


@dataclass(frozen=True, slots=True)
class Embed:
    """A vector of the prompt's hidden states (`pooling.py`)."""

    pooling: str


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """The run of a program that a request belongs to (`scheduling/programs.py`).

    id: of its owner's runs. remaining: tokens that the longest path from the request's beginning to
    the program's end generates; None: its client does not know.
    """

    id: int
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """id: unique among unfinished requests. namespace: cached prefixes are shared within one.

    owner: the client that it belongs to; in the policy `program`, owners take turns. n_reusable:
    later requests begin with at most this many of the tokens (the compiler's last-use mark); None:
    they may begin with all of them and the generated ones. joins: parts of the prompt that are
    encoded side by side; base: the namespace of prefixes without joins. adapter: its number, from 1
    on; 0: none. images: the tokens that stand for them are below zero. priority: higher ones go
    first (`scheduling/classes.py`).
    """

    id: int
    tokens: Ints
    kind: Generate | Score | Commit | Prefetch | Embed
    namespace: bytes = b""
    n_reusable: int | None = None
    owner: bytes = b""
    run: ProgramRun | None = None
    joins: Joins = ()
    base: bytes = b""
    adapter: int = 0
    images: tuple[Placed, ...] = ()
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Token positions, and times in seconds; prompt_tokens = cached_tokens + computed_tokens.

    forced_tokens: the completion_tokens that a constraint forced without a step. joined_tokens: the
    prompt_tokens in parts that were encoded side by side.
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


@dataclass(frozen=True, slots=True)
class EngineError:
    code: pb.ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class Update:
    """Progress of one request; the final one carries its usage or its error."""

    id: int
    new_ids: tuple[int, ...] = ()
    final: bool = False
    finish_reason: pb.FinishReason = pb.FINISH_REASON_UNSPECIFIED
    matched: str = ""
    matched_id: int | None = None
    n_over: int | None = None  # the characters after a stop pattern's match that ended it
    choices: tuple[tuple[float, ...], ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    prompt_logprobs: tuple[TokenLogprob, ...] = ()
    embedding: tuple[float, ...] = ()
    usage: Usage | None = None
    error: EngineError | None = None
    gave_way: bool = False  # of a prefetch that was dropped unfinished


class State(Enum):
    WAITING = auto()
    PARKED = auto()  # waits while a running request computes its prefix
    RUNNING = auto()
    DONE = auto()


@dataclass(slots=True, eq=False)
class Wait:
    """The state of a waiting request (`waiting.py`). group: the one it arrived with, None once it
    had its turn; pin: the locked end of its cached prefix; n_known: the length of that prefix,
    known_since: when it was found; left: of its program's run, in tokens (`programs.py`); charged:
    the tokens that its owner was charged; prompt: its bytes, while the queue is sorted by them;
    has_loaded: whether a load from disk was decided on (`loads.py`)."""

    group: int | None = None
    pin: Node | None = None
    n_known: int = 0
    known_since: int = 0
    left: int = 0
    charged: int = 0
    prompt: bytes | None = None
    has_loaded: bool = False


@dataclass(slots=True, eq=False)
class Times:
    submitted_at: float
    admitted_at: float | None = None
    prefilled_at: float | None = None


@dataclass(slots=True, eq=False)
class Decoding:
    """The state that decides a generation's next tokens and its end. n_forced: tokens forced
    without a step; ending: the final update, if it is known before anything is run; guesses: made
    when it first guesses."""

    checker: StopChecker | None = None
    penalties: Penalties | None = None
    guide: Guide | None = None
    logprobs: LogprobLog | None = None
    n_forced: int = 0
    ending: Update | None = None
    guesses: Guesses | None = None

    @property
    def may_guess(self) -> bool:
        """Whether its draws depend only on logits and their number (`lookup.py`)."""
        return self.guide is None and self.penalties is None and self.logprobs is None


@dataclass(slots=True, eq=False)
class Work:
    """The state of an unfinished request.

    tokens: the prompt and what was generated. pages: those of tokens[:len(pages)], in order;
    pages[n_computed:] are reserved for the next step. tokens[:n_published] are in the tree, locked
    down to `node`.
    """

    request: EngineRequest
    order: int  # of arrival
    times: Times
    tokens: IntBuffer
    decoding: Decoding = field(default_factory=Decoding)
    wait: Wait = field(default_factory=Wait)
    trie: ChoiceTrie | None = None
    pooled: Pooled | None = None
    state: State = State.WAITING
    node: Node | None = None
    pages: IntBuffer = field(default_factory=IntBuffer)
    n_computed: int = 0
    n_published: int = 0
    cached_tokens: int | None = None  # None: never admitted
    choice_ends: list[Node] = field(default_factory=list)  # in the tree, longest paths first
    keys: tuple[tuple[Node, int], ...] = ()  # its keys in `InFlight`
    followers: list[tuple[int, Work]] = field(default_factory=list)
    was_delayed: bool = False  # a prefetch has lengthened one of its steps (`prefetch_queue.py`)
    n_gathered: int = 0  # computed for its joins, in other sequences
    is_part: bool = False  # whether it computes a part of another request's join
    recurrence: Recurrence | None = None  # while it runs, of a model that has states
    n_joined: int = field(init=False)  # tokens up to the end of its last join
    n_in_joins: int = field(init=False)
    shift: int = field(init=False)  # of the positions after them, and after images
    places: Ints | None = field(init=False, default=None)  # [3, n_prompt], where images give them
    n_prompt: int = field(init=False)
    wants_logits: bool = field(init=False)  # whether its last position must run even if cached

    def __post_init__(self) -> None:
        self.n_prompt = len(self.request.tokens)
        joins = self.request.joins
        self.n_joined, self.shift = (joins[-1].end, shift_of(joins)) if joins else (0, 0)
        self.n_in_joins = sum(join.end - join.start for join in joins)
        images = self.request.images
        if images and images[0].image.grid is not None:
            self.places = positions_of(self.n_prompt + 1, images)
            self.shift = self.n_prompt - int(self.places[0, -1])
        kind = self.request.kind
        is_generate = isinstance(kind, Generate) and kind.max_tokens > 0
        self.wants_logits = is_generate or isinstance(kind, Score)

    def places_of(self, start: int, end: int) -> Ints | None:
        """[3, end - start], the positions of these tokens; None where `shift` tells them."""
        if self.places is None or start >= self.request.images[-1].end:
            return None
        after = np.arange(self.n_prompt, end) - self.shift
        known = self.places[:, start : min(end, self.n_prompt)]
        return np.concatenate([known, np.tile(after, (3, 1))], 1) if len(after) else known

    @property
    def is_gone_back_to(self) -> bool:
        """Whether a later request of its program's run continues it, as the compiler's marks of
        last uses say (`n_reusable`)."""
        asked = self.request
        is_known = asked.run is not None and asked.run.remaining is not None
        return is_known and asked.n_reusable is None and not self.is_part

    @property
    def n_generated(self) -> int:
        return len(self.tokens) - self.n_prompt

    @property
    def n_matchable(self) -> int:
        """How many of its tokens may come from the cache."""
        n = len(self.tokens) - self.wants_logits
        if self.pooled is not None:
            return self.pooled.n_unneeded
        return n if self.decoding.logprobs is None else min(n, self.decoding.logprobs.n_unneeded)

    @property
    def n_todo(self) -> int:
        """Positions of the sequence still to run."""
        return len(self.tokens) - self.n_computed

    @property
    def n_todo_in_all(self) -> int:
        """Positions still to run, those of its choices included."""
        n_todo = len(self.tokens) - self.n_computed
        return n_todo if self.trie is None else n_todo + self.trie.n_todo

    @property
    def n_left(self) -> int:
        """How many tokens it may still generate."""
        kind = self.request.kind
        return kind.max_tokens - self.n_generated if isinstance(kind, Generate) else 0

    @property
    def is_decoding(self) -> bool:
        return self.n_computed >= self.n_prompt and self.n_todo == 1 and self.wants_logits

    def private_pages(self) -> list[Ints]:
        """The pages it holds outside the tree."""
        own = [self.pages.view[self.n_published :]]
        return own if self.trie is None else own + self.trie.all_pages()

    def prompt_usage(self) -> Usage:
        """The prompt's share in the totals, once it is computed."""
        cached = self.cached_tokens or 0
        return Usage(self.n_prompt, cached, self.n_prompt - cached)

    def usage_so_far(self) -> Usage:
        """Its share in the totals if it ends now; without times."""
        if self.cached_tokens is None:
            return Usage()
        n_trie = 0 if self.trie is None else self.trie.n_done
        n_prompt = self.n_prompt
        if self.times.prefilled_at is None:  # else the whole prompt was computed
            n_prompt = max(self.cached_tokens, min(self.n_prompt, self.n_computed))
        return Usage(
            n_prompt + n_trie,
            self.cached_tokens,
            n_prompt + n_trie - self.cached_tokens,
            self.n_generated,
            forced_tokens=self.decoding.n_forced,
            joined_tokens=self.n_in_joins,
        )

    def usage(self, now: float) -> Usage:
        n_trie = 0 if self.trie is None else self.trie.n_positions
        cached = self.cached_tokens or 0
        admitted = now if self.times.admitted_at is None else self.times.admitted_at
        prefilled = now if self.times.prefilled_at is None else self.times.prefilled_at
        return Usage(
            prompt_tokens=self.n_prompt + n_trie,
            cached_tokens=cached,
            computed_tokens=self.n_prompt + n_trie - cached,
            completion_tokens=self.n_generated,
            queue_s=admitted - self.times.submitted_at,
            prefill_s=prefilled - admitted,
            decode_s=now - prefilled,
            forced_tokens=self.decoding.n_forced,
            joined_tokens=self.n_in_joins,
        )
