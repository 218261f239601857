"""OpenAI's two completion APIs as plain data: requests out, replies in. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sgc.errors import BackendError
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.wire.errors import (
    ContentRefused,
    MalformedReply,
    printable,
)
from sgc.runtime.executor.backends.providers.wire.fields import count, mapping, put
from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.messages import (
    Conversation,
    Message,
    Spot,
    Text,
    marks_of,
)
from sgc.runtime.executor.backends.providers.wire.reply import Replies, Reply, Spent
from sgc.runtime.executor.backends.providers.wire.texts import Pieces, joined
from sgc.runtime.executor.interface.backend import FinishReason, Logprob, Logprobs
from sgc.runtime.executor.interface.media import Media, frames_of

Json = dict[str, Any]
# OpenAI sends stop and length; compatible servers also send other words.
_ENDS = {
    **dict.fromkeys(("stop", "eos", "eos_token", "stop_sequence", "end_turn"), FinishReason.STOP),
    **dict.fromkeys(("length", "max_tokens", "model_length"), FinishReason.LENGTH),
}
NO_TOKEN = -1  # this API returns tokens' texts, not their ids


def body_of(lowered: Lowered, facts: Facts, is_streamed: bool) -> Json:
    body: Json = {"model": facts.model, facts.limit_name: lowered.max_tokens}
    if isinstance(lowered.asked, str):
        body["prompt"] = lowered.asked
    else:
        body["messages"] = messages_of(lowered.asked, facts)
        if not _has_vendors_mark(lowered.asked, facts):
            body["prompt_cache_options"] = {"mode": "explicit"}
    if lowered.sent_stop:
        body["stop"] = list(lowered.sent_stop)
    if lowered.n > 1:
        body["n"] = lowered.n
    if lowered.shape is not None:
        schema = {
            "name": "reply",
            "schema": lowered.shape.schema,
            "strict": lowered.shape.is_strict,
        }
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if lowered.top_logprobs is not None:
        body |= _logprobs_asked(lowered.top_logprobs, facts)
    for path, value in lowered.params.items():
        put(body, path, value)
    if is_streamed:
        body["stream"] = True
        if facts.stream_usage:
            body["stream_options"] = {"include_usage": True}
    return body


def _logprobs_asked(top: int, facts: Facts) -> Json:
    if facts.api == "completions":
        return {"logprobs": top}
    return {"logprobs": True, **({"top_logprobs": top} if top else {})}


def messages_of(conversation: Conversation, facts: Facts) -> list[Json]:
    spots = _breakpoints(conversation.messages, facts)
    found = [
        _message(message, {part for at, part in spots if at == number})
        for number, message in enumerate(conversation.messages)
    ]
    if conversation.prefill:
        found.append({"role": "assistant", "content": conversation.prefill})
    return found


def _has_vendors_mark(conversation: Conversation, facts: Facts) -> bool:
    """Whether the provider may mark the prompt near its end, and bill the cache write."""
    if facts.caching is None or facts.caching.kind != "both":
        return True
    return facts.cache == "vendor" or (facts.cache == "plan" and not conversation.is_planned)


def _breakpoints(messages: Sequence[Message], facts: Facts) -> set[Spot]:
    """The last marks, as many as the API looks at; it writes only the very last."""
    if facts.caching is None or not facts.caching.explicit or facts.cache != "plan":
        return set()
    return {spot for spot, _ in marks_of(messages)[-facts.caching.look_back :]}


def _message(message: Message, breakpoints: set[int]) -> Json:
    """Content without media and sent marks as one text."""
    if not message.media and not breakpoints:
        return {"role": message.role, "content": message.text}
    parts: list[Json] = []
    for number, part in enumerate(message.parts):
        if isinstance(part, Media):
            urls = [frame.data_url() for frame in frames_of(part)]
            parts += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        elif isinstance(part, Text):
            parts.append({"type": "text", "text": part.text})
        elif number in breakpoints and parts:
            parts[-1]["prompt_cache_breakpoint"] = {"mode": "explicit"}
    return {"role": message.role, "content": parts}


# Replies: `model_dump`s of the SDK's objects, which include fields that a server adds.


def replies_of(found: Mapping[str, Any], n: int) -> Replies:
    choices = check_choices(found.get("choices"), n)
    return Replies(tuple(map(reply_of, choices)), spent_of(found.get("usage")))


def reply_of(choice: Mapping[str, Any]) -> Reply:
    """A whole choice of either API."""
    message = choice.get("message")
    text = message.get("content") if isinstance(message, Mapping) else choice.get("text")
    if isinstance(message, Mapping) and message.get("refusal"):
        raise ContentRefused(f"the model refused: {str(message['refusal'])[:200]}")
    return reply_with("" if text is None else text, choice.get("finish_reason"), choice)


def reply_with(text: Any, finish: Any, choice: Mapping[str, Any]) -> Reply:
    if not isinstance(text, str):
        raise MalformedReply(f"the server sent no text but {str(text)[:80]}")
    if finish == "content_filter":
        raise ContentRefused("the provider's filter ended the reply")
    if not isinstance(finish, str) or finish not in _ENDS:
        raise MalformedReply(f"the reply ended with {str(finish)[:80]!r}, not with stop or length")
    matched = choice.get("stop_reason", choice.get("matched_stop"))
    is_length = _ENDS[finish] is FinishReason.LENGTH
    matched = joined(matched) if isinstance(matched, str) else matched
    return Reply(
        joined(text),
        _ENDS[finish],
        matched if isinstance(matched, (str, int)) and not is_length else None,
        logprobs_of(choice.get("logprobs")),
    )


def spent_of(usage: Mapping[str, Any] | None) -> Spent:
    if not usage or not isinstance(usage, Mapping):
        return Spent(is_known=False)
    prompt = mapping(usage.get("prompt_tokens_details"))
    output = mapping(usage.get("completion_tokens_details"))
    return Spent(
        prompt=count(usage, "prompt_tokens"),
        cached=count(prompt, "cached_tokens"),
        written_5m=count(prompt, "cache_write_tokens"),
        output=count(usage, "completion_tokens"),
        reasoning=count(output, "reasoning_tokens"),
    )


def logprobs_of(given: Any) -> Logprobs | None:
    if not given:
        return None
    try:
        if "content" in given:
            return _chat_logprobs(given["content"] or [])
        return _text_logprobs(given)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise MalformedReply(f"the server sent odd logprobs: {str(given)[:80]}") from error


def _chat_logprobs(rows: Iterable[Mapping[str, Any]]) -> Logprobs:
    rows = list(rows)
    tops = [
        tuple((_value(each["logprob"]), NO_TOKEN, each["token"]) for each in row["top_logprobs"])
        if row.get("top_logprobs")
        else None
        for row in rows
    ]
    output = tuple((_value(row["logprob"]), NO_TOKEN, row["token"]) for row in rows)
    return Logprobs(output=output, output_top=tuple(tops) if any(tops) else ())


def _text_logprobs(given: Mapping[str, Any]) -> Logprobs:
    pairs = zip(given["token_logprobs"], given["tokens"], strict=True)
    output: tuple[Logprob, ...] = tuple((_value(value), NO_TOKEN, token) for value, token in pairs)
    tops = tuple(
        None if not row else tuple((_value(value), NO_TOKEN, token) for token, value in row.items())
        for row in given.get("top_logprobs") or ()
    )
    return Logprobs(output=output, output_top=tops)


def _value(logprob: Any) -> float | None:
    """A log-probability; the first token of a prompt has none."""
    return None if logprob is None else float(logprob)


class Stream:
    """Reads a streamed reply of either API, chunk by chunk; raises MalformedReply if invalid."""

    def __init__(self) -> None:
        self._text = Pieces()
        self._finish: Any = None
        self._last: Mapping[str, Any] = {}
        self._rows: list[Any] = []
        self._usage: Mapping[str, Any] | None = None
        self._id: Any = None

    def add(self, chunk: Mapping[str, Any]) -> str:
        """Adds a chunk; returns the text that it adds."""
        if self._id is not None and chunk.get("id") not in (None, "", self._id):
            raise MalformedReply("two replies came in one stream")
        self._id = chunk.get("id") or self._id
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices") or []
        if not choices:
            return ""
        if (
            not isinstance(choices, list)
            or len(choices) > 1
            or not isinstance(choices[0], Mapping)
            or count(choices[0], "index")
        ):
            raise MalformedReply("the stream has more completions than were asked for")
        return self._choice(choices[0])

    def _choice(self, choice: Mapping[str, Any]) -> str:
        delta = choice.get("delta")
        if isinstance(delta, Mapping) and delta.get("refusal"):
            raise ContentRefused(f"the model refused: {str(delta['refusal'])[:200]}")
        text = delta.get("content") if isinstance(delta, Mapping) else choice.get("text")
        if text is not None and not isinstance(text, str):
            raise MalformedReply(f"the server sent no text but {str(text)[:80]}")
        if text and self._finish is not None:
            raise MalformedReply("the stream goes on after its end")
        if choice.get("finish_reason") is not None:
            self._finish, self._last = choice["finish_reason"], choice
        rows = mapping(choice.get("logprobs")).get("content")
        self._rows += rows or []
        return self._text.add(text or "")

    def result(self) -> tuple[Reply, Spent]:
        if self._finish is None:
            raise MalformedReply("the stream ended before the reply did")
        last = {**self._last, "logprobs": {"content": self._rows} if self._rows else None}
        return reply_with(self._text.whole(), self._finish, last), spent_of(self._usage)


def check_choices(choices: Any, n: int) -> list[Mapping[str, Any]]:
    found = [each for each in choices or () if isinstance(each, Mapping)]
    if len(found) != n:
        raise MalformedReply(f"the server sent {len(found)} completions, not the {n} asked for")
    return sorted(found, key=lambda choice: count(choice, "index"))


def model_of(models: Any, wanted: str) -> tuple[str, str]:
    """A compatible server's model and its owner, from its list; raises BackendError."""
    rows = [row for row in models if isinstance(row, Mapping) and isinstance(row.get("id"), str)]
    by_name = {row["id"]: str(row.get("owned_by") or "") for row in rows}
    if wanted:
        return wanted, by_name.get(wanted, next(iter(by_name.values()), ""))
    if len(by_name) != 1:
        raise BackendError(
            f"the server has {len(by_name)} models, and none is named",
            hint=f"add #MODEL to the address; it has: {printable(', '.join(by_name)) or 'none'}",
        )
    return next(iter(by_name.items()))
