"""Reads requests for embeddings, scores and ranks, as OpenAI, vLLM, Jina and Cohere have them, with
pure functions; docs/embeddings.md lists each field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http import sampling as sampling_of
from sgc.runtime.engine.http.errors import HttpError, Json, bad
from sgc.runtime.engine.http.fields import Fields, Refused
from sgc.runtime.engine.http.openai.requests import Prompt, adapter_of, checked, prompts_of
from sgc.runtime.engine.preparing.bounds import MAX_SALT_BYTES
from sgc.runtime.engine.server.server import EngineFacts

MAX_TEXTS = 2048  # as OpenAI's; each is a request of the engine
WHOLE_CONTEXT = -1  # of `truncate_prompt_tokens`
_SHARED = frozenset({"model", "user", "truncate_prompt_tokens", "add_special_tokens", "cache_salt"})
EMBEDDINGS = _SHARED | {"input", "encoding_format", "dimensions", "normalize"}
SCORE = _SHARED | {"text_1", "text_2"}
RERANK = _SHARED | {"query", "documents", "top_n", "return_documents"}
_REFUSED: dict[str, Refused] = {
    "messages": ("send the texts that a chat template would make of them",),
    "softmax": ("scores are cosines",),
}


@dataclass(frozen=True, slots=True)
class Texts:
    """The engine's requests, whose ids are their indexes. fields: the field of each, for errors."""

    requests: list[pb.Request]
    fields: list[str]


@dataclass(frozen=True, slots=True)
class Embeddings:
    """dimensions: how many numbers of a vector are returned; None is all."""

    texts: Texts
    in_base64: bool
    dimensions: int | None
    is_normalized: bool


@dataclass(frozen=True, slots=True)
class Pairs:
    """Texts to compare: for each pair, the numbers of their requests."""

    texts: Texts
    pairs: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The query's request is the first, and those of documents follow. documents: as they are to be
    returned; None for not at all."""

    texts: Texts
    top_n: int
    documents: list[Json] | None


def embeddings(body: Json, facts: EngineFacts) -> Embeddings:
    """Raises HttpError."""
    fields = _checked(body, EMBEDDINGS, facts)
    form = fields.text("encoding_format", "float")
    if form not in ("float", "base64"):
        message = f"encoding_format must be float or base64, found {form[:40]!r}"
        raise bad(message, "encoding_format")
    width = facts.ready.hidden_size
    dimensions = None
    if "dimensions" in fields:
        dimensions = fields.integer("dimensions", low=1, high=width)
    is_normalized = fields.boolean("normalize", True)
    given = prompts_of(fields, "input")
    is_list = given == fields.get("input")
    names = [f"input[{i}]" for i in range(len(given))] if is_list else ["input"]
    return Embeddings(_texts(fields, given, names, facts), form == "base64", dimensions,
                      is_normalized)  # fmt: skip


def pairs(body: Json, facts: EngineFacts) -> Pairs:
    """Raises HttpError."""
    fields = _checked(body, SCORE, facts)
    first, second = _texts_of(fields, "text_1"), _texts_of(fields, "text_2")
    if len(first) not in (1, len(second)):
        raise bad(
            f"text_1 must be one text, or as many as text_2 has: there are {len(first)} and "
            f"{len(second)}",
            "text_1",
        )
    names = _names(fields, "text_1", len(first)) + _names(fields, "text_2", len(second))
    texts = _texts(fields, [*first, *second], names, facts)
    n = len(first)
    return Pairs(texts, [(i % n, n + i) for i in range(len(second))])


def ranking(body: Json, facts: EngineFacts) -> Ranking:
    """Raises HttpError."""
    fields = _checked(body, RERANK, facts)
    if "query" not in fields:
        raise bad("query is missing", "query", "invalid_type")
    given = fields.get("documents")
    if not isinstance(given, list) or not given:
        raise bad("documents must be a list of at least one", "documents", "invalid_type")
    documents = [_document(each, f"documents[{i}]") for i, each in enumerate(given)]
    top_n = fields.integer("top_n", len(given)) or len(given)  # 0: all, as in vLLM
    is_told = fields.boolean("return_documents", True)
    names = ["query", *(f"documents[{i}]" for i in range(len(given)))]
    texts = _texts(fields, [fields.text("query"), *documents], names, facts)
    return Ranking(texts, top_n, [{"text": each} for each in documents] if is_told else None)


def _checked(body: Json, known: frozenset[str], facts: EngineFacts) -> Fields:
    fields = checked(body, known, facts, _REFUSED)
    if facts.limits.pooling.refusal:
        raise bad(facts.limits.pooling.refusal, "model", "unsupported_model")
    if not fields.boolean("add_special_tokens", True):
        message = "add_special_tokens: every text has the tokens that the model's tokenizer adds"
        raise bad(f"{message}; send token ids for others", "add_special_tokens")
    return fields


def _texts_of(fields: Fields, name: str) -> list[str]:
    found = fields.texts(name)
    if not found:
        raise bad(f"{name} must be a text or a list of texts", name, "invalid_type")
    return found


def _names(fields: Fields, name: str, n: int) -> list[str]:
    return [f"{name}[{i}]" for i in range(n)] if isinstance(fields.get(name), list) else [name]


def _document(given: Any, where: str) -> str:
    """A document is a text, or an object with one."""
    if isinstance(given, str):
        return given
    if not isinstance(given, dict) or not isinstance(given.get("text"), str):
        message = f"{where} must be a text, or an object whose text is one"
        raise bad(message, where, "invalid_type")
    text: str = given["text"]
    return text


def _texts(fields: Fields, given: Sequence[Prompt], names: list[str], facts: EngineFacts) -> Texts:
    if len(given) > MAX_TEXTS:
        found = f"{len(given)} texts, of at most {MAX_TEXTS} in a request"
        raise bad(found, names[-1].partition("[")[0])
    embed, salt = pb.Embed(), fields.text("cache_salt").encode()
    if len(salt) > MAX_SALT_BYTES:
        raise bad(f"cache_salt: {len(salt)} bytes, of at most {MAX_SALT_BYTES}", "cache_salt")
    if "truncate_prompt_tokens" in fields:
        most = facts.limits.max_positions
        last = fields.integer("truncate_prompt_tokens", low=WHOLE_CONTEXT, high=most)
        if last == 0:
            raise bad(f"truncate_prompt_tokens must be from 1 to {most}, or -1 for as many as "
                      "fit", "truncate_prompt_tokens")  # fmt: skip
        embed.last = most if last == WHOLE_CONTEXT else last
    is_cut, requests = embed.HasField("last"), []
    adapter = adapter_of(fields, facts)
    for i, (each, name) in enumerate(zip(given, names, strict=True)):
        prompt = _prompt(each, name, facts, is_cut)
        requests.append(
            pb.Request(id=i, prompt=prompt, embed=embed, cache_salt=salt, adapter=adapter)
        )
    sampling_of.check_bytes(sum(request.prompt.ByteSize() for request in requests))
    return Texts(requests, names)


def _prompt(given: Prompt, name: str, facts: EngineFacts, is_cut: bool) -> pb.Prompt:
    if is_cut and isinstance(given, str):
        return pb.Prompt(segments=[pb.Segment(text=pb.TextRun(text=given))])
    try:
        return sampling_of.prompt_of(given, facts)[0]
    except HttpError as error:
        error.param = error.param or name
        raise
