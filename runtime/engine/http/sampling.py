"""Turns sampling parameters, prompts and `n` of both HTTP APIs into the engine's messages."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import HttpError, bad, error_of
from sgc.runtime.engine.http.fields import UINT32, Fields
from sgc.runtime.engine.preparing.bounds import MAX_BIASES, RequestError, check_sampling
from sgc.runtime.engine.preparing.prepare import too_long
from sgc.runtime.engine.server.server import EngineFacts

GREEDY_BELOW = 1e-5
MAX_N = 128
MAX_COMPLETIONS = 1024  # per HTTP request
MAX_REQUEST_BYTES = 64 * 1024 * 1024  # each completion is a request with its whole prompt
CONSTRAINTS = {"regex": "regex", "json_schema": "json_schema", "ebnf": "grammar"}
# The fields that both APIs share; each has its own names for token limits and the seed.
NAMES = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty"}
    | {"repetition_penalty", "stop", "stop_token_ids", "stop_regex", "ignore_eos", "logit_bias"}
    | CONSTRAINTS.keys()
)


def read_sampling(fields: Fields, max_tokens: int, min_tokens: int, vocab_size: int) -> pb.Sampling:
    """The sampling parameters of `NAMES`, within the engine's bounds; raises HttpError."""
    sampling = pb.Sampling(
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        temperature=fields.number("temperature", 1.0),
        top_p=fields.number("top_p", 1.0),
        top_k=fields.integer("top_k", -1, -1, 2**31 - 1),
        min_p=fields.number("min_p", 0.0),
        frequency_penalty=fields.number("frequency_penalty", 0.0),
        presence_penalty=fields.number("presence_penalty", 0.0),
        repetition_penalty=fields.number("repetition_penalty", 1.0),
        stop=fields.texts("stop"),
        stop_regex=fields.texts("stop_regex"),
        stop_token_ids=fields.ids("stop_token_ids"),
        ignore_eos=fields.boolean("ignore_eos"),
    )
    biases = fields.object("logit_bias")
    if len(fields.get("logit_bias") or ()) > MAX_BIASES:
        raise bad(f"{biases.where[:-1]} has more than {MAX_BIASES} entries", "logit_bias")
    biased: set[int] = set()
    for token in fields.get("logit_bias") or {}:
        if not token.isascii() or not token.isdecimal() or len(token) > 10 or int(token) > UINT32:
            raise bad(f"{biases.where}{token[:20]}: expected a token id", "logit_bias")
        if int(token) in biased:
            raise bad(f"{biases.where}{token}: token {int(token)} is there twice", "logit_bias")
        biased.add(int(token))
        sampling.logit_bias.add(id=int(token), bias=biases.number(token, 0.0))
    for name, field in CONSTRAINTS.items():
        if name in fields:
            text = schema_text(fields, name) if name == "json_schema" else fields.text(name)
            constrain(sampling, field, text, fields.where + name)
    try:
        check_sampling(sampling, vocab_size)
    except RequestError as error:
        is_native = error.param == "min_tokens" and "min_new_tokens" in fields
        raise bad(
            error.message, fields.where + ("min_new_tokens" if is_native else error.param)
        ) from error
    return sampling


def constrain(sampling: pb.Sampling, field: str, text: str, param: str) -> None:
    """Sets the constraint; raises HttpError if there is one already."""
    if sampling.WhichOneof("constraint"):
        raise bad(f"{param}: a text can have one constraint, and there is another", param)
    setattr(sampling, field, text)


def schema_text(fields: Fields, name: str) -> str:
    """A JSON schema, given as an object or as its text."""
    if isinstance(fields.get(name), str):
        return fields.text(name)
    fields.object(name)
    return json.dumps(fields.get(name), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """One prompt with n draws. seed: of the first draw; None: a random one for each. n_added:
    tokens that the engine puts before the given ids."""

    prompt: pb.Prompt
    sampling: pb.Sampling
    n: int = 1
    salt: bytes = b""
    n_added: int = 0
    seed: int | None = None
    adapter: str = ""

    @property
    def n_bytes(self) -> int:
        """The size of all its requests; each holds the prompt and the sampling."""
        return (self.prompt.ByteSize() + self.sampling.ByteSize()) * self.n


def requests_of(asks: Sequence[Ask], stream: bool) -> list[pb.Request]:
    """A request for each draw, those of the first prompt first; its id is its index.

    Raises HttpError for more than one HTTP request may ask for.
    """
    check_completions(sum(ask.n for ask in asks))
    check_bytes(sum(ask.n_bytes for ask in asks))
    found: list[pb.Request] = []
    for ask in asks:
        is_greedy = ask.sampling.temperature < GREEDY_BELOW
        for index in range(ask.n):
            request = pb.Request(
                id=len(found), prompt=ask.prompt, cache_salt=ask.salt, adapter=ask.adapter
            )
            request.generate.sampling.CopyFrom(ask.sampling)
            request.generate.sampling.seed = 0 if is_greedy else _seed(ask.seed, index)
            request.generate.stream = stream
            found.append(request)
    return found


def check_completions(n: int) -> None:
    """Raises HttpError for more than one HTTP request may ask for."""
    if n > MAX_COMPLETIONS:
        raise bad(f"{n} completions are asked for, of at most {MAX_COMPLETIONS}")


def check_bytes(n: int) -> None:
    """Raises HttpError for more bytes than one HTTP request may expand to."""
    if n > MAX_REQUEST_BYTES:
        message = f"all prompts with their parameters, once a completion, are {n} bytes"
        raise HttpError(413, f"{message}, of at most {MAX_REQUEST_BYTES}; ask for fewer at a time")


def read_seed(fields: Fields, name: str) -> int | None:
    """None if it is not given."""
    if name not in fields:
        return None
    return fields.integer(name, low=-(2**63), high=2**64 - 1) % 2**64


def _seed(seed: int | None, index: int) -> int:
    if seed is None:
        return secrets.randbits(64)
    if index == 0:
        return seed
    data = seed.to_bytes(8, "big") + index.to_bytes(4, "big")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def text_prompt(
    text: str, facts: EngineFacts, literal: Sequence[tuple[int, int]] = ()
) -> pb.Prompt:
    """literal: code point ranges in which special tokens are plain text.

    Raises HttpError for a text that cannot fit, before it is copied once more.
    """
    problem = too_long([text], facts.tokenizer, facts.limits)
    if problem is not None:
        raise error_of(problem.to_message())
    run = pb.TextRun(text=text, literal=[pb.Span(start=a, end=b) for a, b in literal])
    return pb.Prompt(segments=[pb.Segment(text=run)])


def prompt_of(given: str | list[int], facts: EngineFacts) -> tuple[pb.Prompt, int]:
    """The prompt of a text or of token ids, and how many tokens the engine puts before the ids."""
    if isinstance(given, str):
        return text_prompt(given, facts), 0
    return ids_prompt(given, facts.tokenizer.prefix_ids)


def ids_prompt(ids: Sequence[int], beginning: Sequence[int]) -> tuple[pb.Prompt, int]:
    """The prompt of these ids, and how many tokens the engine puts before them.

    Every prompt begins with the model's beginning-of-sequence token, if it has one; ids that
    already begin with it do not get it twice.
    """
    n = len(beginning)
    brings_it = list(ids[:n]) == list(beginning)
    rest = ids[n:] if brings_it else ids
    segments = [pb.Segment(tokens=pb.TokenRun(ids=rest))] if rest else []
    return pb.Prompt(segments=segments), 0 if brings_it else n
