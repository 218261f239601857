"""Translates between the executor's data and `engine.proto`; `engine/backend.py` uses it."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any

from sgc.errors import (
    BackendError,
    ContextExceeded,
    DeadlineExceeded,
    EngineUnavailable,
    Overloaded,
    UnsupportedParameter,
)
from sgc.proto import engine_pb2 as pb
from sgc.runtime.executor.backends.engine.ends import InvalidRequest
from sgc.runtime.executor.interface.backend import (
    ChoiceScore,
    FinishReason,
    Generated,
    Joined,
    Logprob,
    Logprobs,
    Prompt,
    Sampling,
    Scored,
    TextRun,
    TokenRun,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities, ChatFormat, RoleFormat
from sgc.runtime.executor.interface.media import frames_of

ERRORS: dict[int, type[BackendError]] = {
    pb.ERROR_CODE_INVALID_ARGUMENT: InvalidRequest,
    pb.ERROR_CODE_CONTEXT_EXCEEDED: ContextExceeded,
    pb.ERROR_CODE_RESOURCE_EXHAUSTED: Overloaded,
    pb.ERROR_CODE_UNAVAILABLE: EngineUnavailable,
    pb.ERROR_CODE_DEADLINE_EXCEEDED: DeadlineExceeded,
}


def prompt_message(prompt: Prompt) -> pb.Prompt:
    message = pb.Prompt()
    _write_prompt(message, prompt)
    return message


def request_of(prompt: Prompt, **kind: Any) -> pb.Request:
    """A request of the given kind. Its prompt is written in place, because protobuf copies messages
    passed to a constructor, and prompts may be long.
    """
    request = pb.Request(**kind)
    request.prompt.SetInParent()  # present even if empty
    _write_prompt(request.prompt, prompt)
    return request


def _write_prompt(message: pb.Prompt, prompt: Prompt) -> None:
    for run in prompt:
        segment = message.segments.add()
        if isinstance(run, TextRun):
            segment.text.text = checked_text(run.text, "the prompt")
            for start, end in run.literal:
                segment.text.literal.add(start=start, end=end)
        elif isinstance(run, TokenRun):
            segment.tokens.ids.extend(run.ids)
        elif isinstance(run, Joined):
            segment.joined.SetInParent()
            for part in run.parts:
                _write_prompt(segment.joined.parts.add(), part)
        else:
            segment.images.text = checked_text(run.text, "the text of an image")
            segment.images.images.extend(frame.data for frame in frames_of(run.media))


def generate_message(sampling: Sampling, stream: bool) -> pb.Generate:
    """The message of a sampling; greedy samplings are cached, as many requests share one."""
    found = _messages.get((id(sampling), stream))
    if found is not None and found[0] is sampling:
        return found[1]
    made = _generate_message(sampling, stream)
    if sampling.is_greedy:
        if len(_messages) >= MAX_MESSAGES:
            _messages.clear()
        _messages[id(sampling), stream] = (sampling, made)
    return made


MAX_MESSAGES = 1024
_AS_THEY_ARE = (
    "max_tokens", "min_tokens", "temperature", "top_p", "top_k", "min_p", "frequency_penalty",
    "presence_penalty", "repetition_penalty", "stop_token_ids", "ignore_eos", "heal",
)  # fmt: skip
_messages: dict[tuple[int, bool], tuple[Sampling, pb.Generate]] = {}


def _generate_message(sampling: Sampling, stream: bool) -> pb.Generate:
    stop = [checked_text(text, "a stop string") for text in sampling.stop]
    try:
        values = pb.Sampling(
            **{name: getattr(sampling, name) for name in _AS_THEY_ARE},
            seed=sampling.seed % 2**64,
            stop=stop,
            stop_regex=[checked_text(text, "a stop pattern") for text in sampling.stop_regex],
            logit_bias=[pb.TokenBias(id=i, bias=bias) for i, bias in sampling.logit_bias],
            **_constraint(sampling),
        )
        if sampling.logprobs is not None:
            asked = sampling.logprobs
            values.logprobs.top, values.logprobs.text = asked.top, asked.text
            if asked.start is not None:
                values.logprobs.start = asked.start
    except (ValueError, TypeError) as error:
        raise InvalidRequest(f"a sampling parameter is out of range: {error}") from error
    return pb.Generate(sampling=values, stream=stream)


def _constraint(sampling: Sampling) -> dict[str, Any]:
    """The field of the constraint, if there is one."""
    given = {
        "regex": sampling.regex,
        "json_schema": sampling.json_schema,
        "grammar": sampling.ebnf,
    }
    found = {name: text for name, text in given.items() if text is not None}
    if len(found) > 1:
        raise UnsupportedParameter(f"{' and '.join(found)} are both given; a text can follow one")
    return {name: checked_text(text, f"the {name}") for name, text in found.items()}


def checked_text(text: str, what: str) -> str:
    """The text; raises InvalidRequest if it is not valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"{what} holds a lone surrogate ({text[error.start]!r} at position {error.start}), "
            "which is no text",
            hint='decode bytes with errors="replace", not "surrogateescape"',
        ) from error
    return text


def generated_of(message: pb.Generated) -> Generated:
    ids = tuple(message.ids)
    is_length = message.finish_reason == pb.FINISH_REASON_LENGTH
    by_id = message.matched_id if message.matched_id >= 0 and not is_length else None
    return Generated(
        text=message.text,
        ids=ids,
        kept_ids=ids[message.healed : message.kept],
        head=message.head,
        tail=message.tail,
        finish_reason=FinishReason.LENGTH if is_length else FinishReason.STOP,
        matched=message.matched or by_id,
        usage=usage_of(message.usage),
        logprobs=_logprobs_of(message),
    )


def _logprobs_of(message: pb.Generated) -> Logprobs | None:
    if not message.logprobs and not message.prompt_logprobs:
        return None
    given, made = message.prompt_logprobs, message.logprobs
    return Logprobs(
        input=tuple(map(_logprob, given)),
        output=tuple(map(_logprob, made)),
        input_top=tuple(map(_top, given)),
        output_top=tuple(map(_top, made)),
    )


def _logprob(message: pb.TokenLogprob) -> Logprob:
    value = message.logprob if message.HasField("logprob") else None
    return value, message.id, message.text or None


def _top(message: pb.TokenLogprob) -> tuple[Logprob, ...] | None:
    return tuple(map(_logprob, message.top)) or None


def scored_of(message: pb.Scored) -> Scored:
    return Scored(tuple(map(_choice_score, message.choices)), usage_of(message.usage))


def _choice_score(message: pb.ChoiceScore) -> ChoiceScore:
    before = (_logprob(message.before),) if message.HasField("before") else ()
    ids, logprobs = tuple(message.ids), tuple(message.logprobs)
    return ChoiceScore(ids, logprobs, tuple(message.texts), before=before)


# The message's fields are the first fields of `Usage`; all are read in its order, for speed.
_counts = attrgetter(*[field.name for field in fields(Usage)[: len(pb.Usage.DESCRIPTOR.fields)]])


def usage_of(message: pb.Usage) -> Usage:
    return Usage(*_counts(message))


def error_of(message: pb.Error) -> BackendError:
    error = ERRORS.get(message.code, BackendError)(message.message)
    if isinstance(error, Overloaded) and message.retry_after_s > 0:
        error.retry_after_s = message.retry_after_s
    return error


def capabilities_of(info: pb.Info) -> Capabilities:
    roles = {name: RoleFormat(r.prefix, r.suffix) for name, r in info.chat.roles.items()}
    return Capabilities(
        model=info.model,
        chat=ChatFormat(roles, info.chat.default_system, image_token=info.images.text),
        max_context=info.max_context,
        special_tokens=tuple(info.special_tokens),
        max_in_flight=info.max_in_flight,
        fingerprints={
            "tokenizer": info.tokenizer_fingerprint,
            "template": info.template_fingerprint,
        },
        unconditional=True,
        pool_tokens=info.pool_tokens or None,
        prefetches=True,
        joins=info.takes_joined,
        images=info.HasField("images"),
    )


def identity(info: pb.Info) -> tuple[str, ...]:
    """What must not change of an engine during a run: prompts and replies depend on it."""
    adapters = (each.fingerprint for each in info.adapters)
    return (info.model, info.tokenizer_fingerprint, info.template_fingerprint, *adapters)


def too_large(request: pb.Request, size: int, limit: int) -> BackendError:
    if (prompt := request.prompt.ByteSize()) > limit:
        return ContextExceeded(f"a prompt of {prompt} bytes; this engine holds less than {limit}")
    return BackendError(f"a request of {size} bytes is too large; at most {limit} are sent")


def expected(reply: pb.Reply, kind: str) -> pb.Reply:
    if reply.WhichOneof("kind") != kind:
        raise BackendError(f"the engine answered with {reply.WhichOneof('kind')}, not {kind}")
    return reply
