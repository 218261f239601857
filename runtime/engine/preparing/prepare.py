"""Turns a client's request into the worker's: checks and tokenizes it. Runs on any thread.

A text that cannot fit the context however it is tokenized is refused before tokenization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.guides.stop_patterns import PatternError, stop_patterns
from sgc.runtime.engine.images.decoding import ImageError
from sgc.runtime.engine.images.pictures import Pictures
from sgc.runtime.engine.preparing.bounds import (
    MAX_LOGPROBS,
    RequestError,
    Segment,
    ServerLimits,
    check_choices,
    check_heads,
    check_positions,
    check_run,
    check_salt,
    check_sampling,
    checked_adapter,
    checked_cut,
    checked_segments,
    invalid,
    text_segments,
)
from sgc.runtime.engine.preparing.constrain import constrain
from sgc.runtime.engine.preparing.joining import (
    add_joins,
    chars_again,
    flat,
    kinds_of,
    last_parts,
    plain_segments,
)
from sgc.runtime.engine.preparing.salts import cache_key
from sgc.runtime.engine.text.tokenizer import (
    PROBES,
    GoOn,
    Ids,
    Text,
    Tokenizer,
    always,
    common_prefix_length,
    tokenizing_for,
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The worker's request, whose id is not set yet, and the client's own."""

    request: pb.Request
    work: wpb.WorkerRequest


class Dropped(Exception):
    """The client no longer waits for the requests."""


def prepare_all(
    requests: Sequence[pb.Request],
    tokenizer: Tokenizer,
    limits: ServerLimits,
    domain: bytes = b"",
    go_on: GoOn = always,
) -> list[Prepared | RequestError]:
    """Each request prepared, or the error that refuses it.

    domain: of the client's token, see `cache_key`. go_on: called between texts; raises `Dropped` to
    stop.
    """
    return [_prepare_or_refuse(each, tokenizer, limits, domain, go_on) for each in requests]


def too_long(
    texts: Sequence[str], tokenizer: Tokenizer, limits: ServerLimits
) -> RequestError | None:
    """The error if a prompt with these texts cannot fit; None if it may fit."""
    try:
        check_least(texts, tokenizer, limits)
    except RequestError as error:
        return error.with_traceback(None)  # its frames hold the texts
    return None


def check_least(
    texts: Sequence[str], tokenizer: Tokenizer, limits: ServerLimits, n_ids: int = 0
) -> None:
    """Raises CONTEXT_EXCEEDED for a prompt that has too many tokens however it is tokenized."""
    n_least = n_ids + sum(map(tokenizer.least_tokens, texts))
    check_positions(n_least, limits, is_least=True)


def is_cut(request: pb.Request) -> bool:
    """Whether a prompt that is too long is cut, and not refused."""
    return request.WhichOneof("kind") == "embed" and request.embed.HasField("last")


def texts_of(request: pb.Request) -> list[str]:
    """The text of each segment of the prompt, those of joined parts in their places. Protobuf
    copies a text at every access."""
    return _texts_in(request.prompt)


def _texts_in(prompt: pb.Prompt) -> list[str]:
    texts: list[str] = []
    for segment in prompt.segments:
        if segment.WhichOneof("content") == "joined":
            texts += [text for part in segment.joined.parts for text in _texts_in(part)]
        else:
            texts.append(segment.text.text)
    return texts


def n_chars(request: pb.Request, texts: Sequence[str]) -> int:
    """The characters to tokenize, each choice and head counted with the run it follows, and each
    joined part with what comes before its join."""
    runs = list(map(len, texts))
    n = sum(runs) + chars_again(request.prompt)
    n += sum(IMAGE_COST + len(file) for file in files_of(request))
    kind = request.WhichOneof("kind")
    if kind == "generate":
        return n + CONSTRAINT_COST * _n_constraint_chars(request.generate.sampling)
    follow: Sequence[str] = request.score.choices or request.commit.heads
    if kind == "commit" and not follow:
        follow = PROBES
    elif kind == "prefetch":
        follow = HEADS_AHEAD
    return n + sum(len(text) + (runs[-1] if runs else 0) for text in follow)


def files_of(request: pb.Request) -> list[bytes]:
    """The image files in the prompt."""
    if "images" not in kinds_of(request.prompt):
        return []
    segments = (each for each in request.prompt.segments if each.WhichOneof("content") == "images")
    return [file for segment in segments for file in segment.images.images]


# Texts that may follow a prefetched prompt, to see which of its last tokens they change: fewer than
# for a commit, since a wrong token only costs its computation.
HEADS_AHEAD = ("", "a", " a", "\n", "1")
_FAR = 2  # times the context
# A constraint's character takes about this many times as long as a prompt's.
CONSTRAINT_COST = 16
# An image takes as long as this many, however few bytes its file has.
IMAGE_COST = 64 * 1024


def _n_constraint_chars(s: pb.Sampling) -> int:
    """The characters of the constraint and stop patterns, which are parsed here."""
    text = s.regex or s.json_schema or s.grammar
    return len(text) + sum(map(len, s.stop_regex))


def _prepare_or_refuse(
    request: pb.Request, tokenizer: Tokenizer, limits: ServerLimits, domain: bytes, go_on: GoOn
) -> Prepared | RequestError:
    go_on()
    try:
        check_salt(request.cache_salt)
        check_run(request.run)
        number, digest = checked_adapter(request.adapter, limits)
        namespace = cache_key(domain, request.cache_salt, digest)
        with tokenizing_for(namespace):
            work = _work(request, tokenizer, limits, go_on)
        work.namespace = namespace
        work.adapter = number
        if request.HasField("run"):
            work.run.CopyFrom(request.run)
        return Prepared(request, work)
    except RequestError as error:
        return error.with_traceback(None)  # its frames hold the texts
    except Dropped:
        raise
    except Exception as error:  # one request must not fail the others
        return RequestError(pb.ERROR_CODE_INTERNAL, f"preparing the request failed: {error!r}")


def _work(
    request: pb.Request, tokenizer: Tokenizer, limits: ServerLimits, go_on: GoOn
) -> wpb.WorkerRequest:
    kind = request.WhichOneof("kind")
    if kind is None:
        expected = "generate, score, commit, prefetch or embed"
        raise invalid(f"the request has no kind: expected {expected}")
    given = checked_segments(request.prompt, limits)
    shown = text_segments(given)
    if kind == "score":
        check_choices(request.score.choices, request.prompt)
    elif kind == "commit":
        check_heads(request.commit.heads, request.prompt)
    texts = [each.text for each in flat(shown) if isinstance(each, Text)]
    n_ids = sum(len(each.ids) for each in flat(shown) if isinstance(each, Ids))
    if not is_cut(request):
        check_least(texts, tokenizer, limits, n_ids)
    segments, joins = plain_segments(shown, tokenizer, go_on)
    if joins and kind == "embed":
        raise invalid("an embedding is of a prompt without joined parts")
    if kind not in ("generate", "embed"):
        _check_alone(segments, tokenizer, limits)
    if kind == "generate":
        work = _generate(segments, request.generate.sampling, tokenizer, limits)
        constrain(work, request.generate.sampling, segments, tokenizer)
    elif kind == "score":
        work = _score(segments, request.score.choices, tokenizer, limits, go_on)
    elif kind == "commit":
        work = _commit(segments, request.commit, tokenizer, limits, go_on)
    elif kind == "embed":
        work = _embed(segments, request.embed, tokenizer, limits)
    else:
        ids = tokenizer.encode_commit(segments, HEADS_AHEAD, go_on)
        check_positions(len(ids), limits)
        work = wpb.WorkerRequest(tokens=ids, prefetch=wpb.CommitTokens())
    add_joins(work.joins, joins)
    if request.HasField("reusable"):
        work.n_reusable = _n_reusable(given, request.reusable, work.tokens, tokenizer, go_on)
    if any(isinstance(each, Pictures) for each in given):
        _place_images(work, given, limits)
    return work


def _n_reusable(
    segments: Sequence[Segment],
    end: pb.Position,
    tokens: Sequence[int],
    tokenizer: Tokenizer,
    go_on: GoOn,
) -> int:
    """The tokens with which later requests may begin; what is before the end of a join is cached
    elsewhere without it."""
    reusable = text_segments(checked_cut(segments, end))
    if last_parts(reusable) != last_parts(text_segments(segments)):
        return 0
    plain, _ = plain_segments(reusable, tokenizer, go_on)
    return common_prefix_length([tokenizer.encode_prompt(plain), tokens])


def _place_images(
    work: wpb.WorkerRequest, segments: Sequence[Segment], limits: ServerLimits
) -> None:
    from sgc.runtime.engine.images.messages import add_image  # only these do numerics here
    from sgc.runtime.engine.images.prompts import placed

    assert not isinstance(limits.images, str)
    if work.HasField("embed"):
        raise invalid("embeddings are made of texts; this one has images")
    try:
        found = placed(work.tokens, segments, limits.images)
    except ImageError as error:
        raise invalid(str(error)) from error
    logprobs = work.generate.logprobs
    if logprobs.HasField("start") and found and logprobs.start < found[-1].end:
        raise invalid(
            "log-probabilities of the prompt: tokens of images have none; start from "
            f"{found[-1].end}, after the last image, or leave them out"
        )
    for each in found:
        add_image(work, each)


def _check_alone(
    segments: Sequence[Text | Ids], tokenizer: Tokenizer, limits: ServerLimits
) -> None:
    """Raises CONTEXT_EXCEEDED for a prompt that is far too long, before it is tokenized again with
    each text that may follow it. Such a text changes at most its last few tokens."""
    n_chars = sum(len(each.text) for each in segments if isinstance(each, Text))
    if n_chars > _FAR * limits.max_positions:
        n_alone = len(tokenizer.encode_prompt(segments))
        if n_alone > _FAR * limits.max_positions:
            check_positions(n_alone, limits)


def _commit(
    segments: list[Text | Ids],
    commit: pb.Commit,
    tokenizer: Tokenizer,
    limits: ServerLimits,
    go_on: GoOn,
) -> wpb.WorkerRequest:
    ids = tokenizer.encode_commit(segments, commit.heads, go_on)
    check_positions(len(ids), limits)
    return wpb.WorkerRequest(tokens=ids, commit=wpb.CommitTokens())


def _embed(
    segments: list[Text | Ids], asked: pb.Embed, tokenizer: Tokenizer, limits: ServerLimits
) -> wpb.WorkerRequest:
    if limits.pooling.refusal:
        raise invalid(limits.pooling.refusal)
    last = asked.last if asked.HasField("last") else None
    if last == 0:
        raise invalid("an embedding needs one token at least, and last is 0")
    ids = tokenizer.encode_whole(segments, last)
    if not ids:
        raise invalid("the text to embed is empty, and this model puts no token around it")
    check_positions(len(ids), limits, "the text to embed")
    return wpb.WorkerRequest(tokens=ids, embed=wpb.EmbedTokens(pooling=limits.pooling.name))


def _generate(
    segments: list[Text | Ids], asked: pb.Sampling, tokenizer: Tokenizer, limits: ServerLimits
) -> wpb.WorkerRequest:
    sampling = _sampling(asked.SerializeToString(), tokenizer.eos_ids, limits.vocab_size)
    if asked.stop_regex:
        _check_patterns(tuple(asked.stop_regex))
    ids = tokenizer.encode_prompt(segments)
    if asked.HasField("logprobs"):
        _check_logprobs(asked, len(ids), limits)
    if not ids:
        raise invalid("the prompt is empty, and this model has no begin-of-sequence token")
    if sampling.max_tokens:
        check_positions(len(ids) + 1, limits, "the prompt with one generated token")
    else:
        check_positions(len(ids), limits)
    return wpb.WorkerRequest(tokens=ids, generate=sampling)


def _check_patterns(patterns: tuple[str, ...]) -> None:
    try:
        stop_patterns(patterns)
    except PatternError as error:
        raise invalid(f"{error.message}; {error.hint}") from error


def _check_logprobs(asked: pb.Sampling, n_prompt: int, limits: ServerLimits) -> None:
    """Limits log-probabilities: they go into one bounded message, written within a step."""
    start = asked.logprobs.start if asked.logprobs.HasField("start") else n_prompt
    n_tokens = max(0, n_prompt - start) + min(asked.max_tokens, limits.max_context)
    n_values = n_tokens * (1 + asked.logprobs.top)
    if n_values > MAX_LOGPROBS:
        raise invalid(
            f"log-probabilities: up to {n_values} are asked for, of at most {MAX_LOGPROBS}; "
            "ask for fewer alternatives, a later start or fewer tokens"
        )


@lru_cache(maxsize=1024)  # many greedy requests have equal parameters
def _sampling(asked: bytes, eos_ids: tuple[int, ...], vocab_size: int) -> pb.Sampling:
    """The checked sampling, with end-of-sequence tokens as stop tokens; not to be changed."""
    sampling = pb.Sampling.FromString(asked)
    check_sampling(sampling, vocab_size)
    for name in ("regex", "json_schema", "grammar"):  # the step process gets it as one grammar
        sampling.ClearField(name)
    if not sampling.ignore_eos:
        known = set(sampling.stop_token_ids)
        ends = (i for i in eos_ids if i < vocab_size)
        sampling.stop_token_ids.extend(i for i in ends if i not in known)
    return sampling


def _score(
    segments: list[Text | Ids],
    choices: Sequence[str],
    tokenizer: Tokenizer,
    limits: ServerLimits,
    go_on: GoOn,
) -> wpb.WorkerRequest:
    for choice in choices:
        check_positions(tokenizer.least_tokens(choice), limits, "a choice", is_least=True)
    try:
        prompt_ids, choice_ids = tokenizer.encode_choices(segments, choices, go_on)
    except ValueError as error:
        raise invalid(str(error)) from error
    longest = max(map(len, choice_ids))
    check_positions(len(prompt_ids) + longest, limits, "the prompt with the longest choice")
    work = wpb.WorkerRequest(tokens=prompt_ids)
    work.score.choices.extend(wpb.TokenIds(ids=ids) for ids in choice_ids)
    return work
