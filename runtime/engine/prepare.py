"""A client's request to the worker's: checked and tokenized. Runs on any thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.bounds import (
    RequestError,
    ServerLimits,
    check_positions,
    check_request,
    invalid,
)
from sgc.runtime.engine.tokenizer import PROBES, Ids, Text, Tokenizer


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request for the worker (its id still to be set) and the client's own."""

    request: pb.Request
    work: wpb.WorkerRequest


def prepare_all(
    requests: Sequence[pb.Request], tokenizer: Tokenizer, limits: ServerLimits
) -> list[Prepared | RequestError]:
    """Each request prepared, or why it is refused."""
    return [_prepare_or_refuse(request, tokenizer, limits) for request in requests]


def n_chars(request: pb.Request) -> int:
    """The characters to tokenize, each choice and head counted with the run it follows."""
    follow: Sequence[str]
    runs = [len(segment.text.text) for segment in request.prompt.segments]
    follow = request.score.choices or request.commit.heads
    if request.WhichOneof("kind") == "commit" and not follow:
        follow = PROBES
    return sum(runs) + sum(len(text) + (runs[-1] if runs else 0) for text in follow)


def _prepare_or_refuse(
    request: pb.Request, tokenizer: Tokenizer, limits: ServerLimits
) -> Prepared | RequestError:
    try:
        check_request(request, limits)
        return Prepared(request, _work(request, tokenizer, limits))
    except RequestError as error:
        return error
    except Exception as error:  # one request must never break the others
        return RequestError(pb.ERROR_CODE_INTERNAL, f"preparing the request failed: {error!r}")


def _work(request: pb.Request, tokenizer: Tokenizer, limits: ServerLimits) -> wpb.WorkerRequest:
    segments = _segments(request.prompt)
    kind = request.WhichOneof("kind")
    if kind == "score":
        return _score(segments, request.score.choices, tokenizer, limits)
    work = wpb.WorkerRequest()
    if kind == "commit":
        work.commit.SetInParent()
        work.tokens.extend(tokenizer.encode_commit(segments, request.commit.heads))
        check_positions(len(work.tokens), limits)
        return work
    work.tokens.extend(tokenizer.encode_prompt(segments))
    if not work.tokens:
        raise invalid("the prompt is empty, and this model has no begin-of-sequence token")
    if request.generate.sampling.max_tokens:
        check_positions(len(work.tokens) + 1, limits, "the prompt with one generated token")
    else:
        check_positions(len(work.tokens), limits)
    work.generate.CopyFrom(request.generate.sampling)
    if not work.generate.ignore_eos:
        known = set(work.generate.stop_token_ids)
        ends = (i for i in tokenizer.eos_ids if i < limits.vocab_size)
        work.generate.stop_token_ids.extend(i for i in ends if i not in known)
    return work


def _score(
    segments: list[Text | Ids], choices: Sequence[str], tokenizer: Tokenizer, limits: ServerLimits
) -> wpb.WorkerRequest:
    try:
        prompt_ids, choice_ids = tokenizer.encode_choices(segments, choices)
    except ValueError as error:
        raise invalid(str(error)) from error
    longest = max(map(len, choice_ids))
    check_positions(len(prompt_ids) + longest, limits, "the prompt with the longest choice")
    work = wpb.WorkerRequest(tokens=prompt_ids)
    work.score.choices.extend(wpb.TokenIds(ids=ids) for ids in choice_ids)
    return work


def _segments(prompt: pb.Prompt) -> list[Text | Ids]:
    out: list[Text | Ids] = []
    for segment in prompt.segments:
        if segment.WhichOneof("content") == "text":
            spans = tuple((span.start, span.end) for span in segment.text.literal)
            out.append(Text(segment.text.text, spans))
        else:
            out.append(Ids(tuple(segment.tokens.ids)))
    return out
