"""What an executor asks of a backend: a small interface and the frozen data it speaks.

Implementations: `engine_backend.py` (our engine, over gRPC), scripted ones in tests. A
backend holds no program state: every request carries its whole prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

GREEDY_BELOW = 1e-5


@dataclass(frozen=True, slots=True)
class TextRun:
    """A maximal run of text, tokenized as one string.

    literal: half-open ranges of code points in which special tokens are plain text.
    """

    text: str
    literal: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TokenRun:
    """Generated tokens, kept with the ids they were generated with."""

    ids: tuple[int, ...]
    text: str


Prompt = tuple[TextRun | TokenRun, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample one generation; every value is decided, nothing is a default."""

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

    @property
    def is_greedy(self) -> bool:
        return self.temperature < GREEDY_BELOW


@dataclass(frozen=True, slots=True)
class Usage:
    """Token positions; prompt_tokens = cached_tokens + computed_tokens. Times in seconds."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    completion_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0


class FinishReason(Enum):
    STOP = "stop"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Generated:
    """A finished generation.

    text: without the stop string. ids: every sampled token. kept_ids: those that stay in the
    prompt as they are; tail: text after them that joins the next run. matched: the stop
    string or token id that ended it.
    """

    text: str
    ids: tuple[int, ...]
    kept_ids: tuple[int, ...]
    tail: str
    finish_reason: FinishReason
    matched: str | int | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class ChoiceScore:
    """Log-probabilities of a choice's tokens, from where any choice can differ."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    choices: tuple[ChoiceScore, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class RoleFormat:
    prefix: str
    suffix: str


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """What a chat template puts around each role's content."""

    roles: Mapping[str, RoleFormat]
    default_system: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend is and can do."""

    model: str
    chat: ChatFormat
    max_context: int
    special_tokens: tuple[str, ...] = ()
    max_in_flight: int = 256
    fingerprints: Mapping[str, str] = field(default_factory=dict)


class Backend(Protocol):
    """All methods raise `BackendError`s; cancelling a call frees what it held at once."""

    async def capabilities(self) -> Capabilities: ...

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: Callable[[str], None] | None = None
    ) -> Generated:
        """Generates from the prompt; `on_delta` gets text as it appears, never retracted."""
        ...

    async def score(self, prompt: Prompt, choices: tuple[str, ...]) -> Scored: ...

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        """Computes and caches the longest common token prefix of the prompt before `heads`."""
        ...

    async def close(self) -> None: ...
