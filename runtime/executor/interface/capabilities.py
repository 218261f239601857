"""What a backend is and can do, and the text of its chat template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RoleFormat:
    prefix: str
    suffix: str


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """The text that a chat template puts around each role's content.

    stop: strings that end every generation. system_in_user: a system message that comes first
    stands inside the user message that follows it, as in Llama 2. image_token: the text of an image
    or a video.
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

    refuses: fields of `Sampling` that it cannot honour, a subset of OPTIONAL_SAMPLING.
    unconditional: it scores choices without the prompt too. images: it takes images. checked:
    constraints, regex and json_schema, that are sent although the executor checks the replies as
    well. scores: it returns log-probabilities of choices, and not only the chosen one. tells_stop:
    it says which stop string ended a generation. speculates: each request pays for its whole
    prompt, so one request for several generations is cheaper. takes_messages: a prompt without
    roles is one message, which no generation continues. goes_on: it continues an assistant's
    message. pool_tokens: the size of its own KV pool in tokens, if it has one. prefetches: it
    computes prompts ahead of their use. joins: it takes prompts with `Joined` parts.
    offers_logprobs: it is known to return log-probabilities,
    so they may be requested where the program does not.
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
    joins: bool = False
