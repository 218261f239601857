"""Anthropic's messages as plain data: requests out, replies and events in. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sgc.runtime.executor.backends.providers.models.models import Facts, refusal
from sgc.runtime.executor.backends.providers.wire.errors import ContentRefused, MalformedReply
from sgc.runtime.executor.backends.providers.wire.fields import count, mapping, put
from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.messages import (
    Message,
    Spot,
    Text,
    marks_of,
)
from sgc.runtime.executor.backends.providers.wire.reply import Replies, Reply, Spent
from sgc.runtime.executor.backends.providers.wire.texts import Pieces, joined
from sgc.runtime.executor.interface.backend import FinishReason
from sgc.runtime.executor.interface.media import Media, frames_of

Json = dict[str, Any]
IMAGE_KINDS = ("image/jpeg", "image/png", "image/gif", "image/webp")
_ENDS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
}


def body_of(lowered: Lowered, facts: Facts, is_streamed: bool) -> Json:
    assert not isinstance(lowered.asked, str)
    asked = lowered.asked
    ttls = _ttls(asked.messages, facts)
    blocks: list[Json] = []
    messages: list[Json] = []
    for number, message in enumerate(asked.messages):
        own = {part: ttl for (at, part), ttl in ttls.items() if at == number}
        if message.role == "system":
            blocks += _blocks(message, own, facts)
        else:
            messages.append({"role": message.role, "content": _content(message, own, facts)})
    if asked.prefill:
        messages.append({"role": "assistant", "content": asked.prefill})
    body: Json = {"model": facts.model, "max_tokens": lowered.max_tokens, "messages": messages}
    if blocks:
        body["system"] = blocks
    if facts.cache == "vendor" and facts.caching is not None:
        body["cache_control"] = _cache_control(facts.cache_ttl)
    if lowered.sent_stop:
        body["stop_sequences"] = list(lowered.sent_stop)
    if lowered.shape is not None:
        put(body, "output_config.format", {"type": "json_schema", "schema": lowered.shape.schema})
    for path, value in lowered.params.items():
        put(body, path, value)
    if is_streamed:
        body["stream"] = True
    return body


def _ttls(messages: Sequence[Message], facts: Facts) -> dict[Spot, str]:
    """The last marks, up to the number of allowed breakpoints, with their lifetimes.

    A prefix with a longer lifetime must come first, so each mark lives at least as long as those
    after it.
    """
    caching = facts.caching
    if caching is None or not caching.explicit or facts.cache != "plan":
        return {}
    found: dict[Spot, str] = {}
    longest = ""
    for spot, mark in reversed(marks_of(messages)[-caching.breakpoints :]):
        asked = mark.ttl if mark.ttl in caching.ttl else facts.cache_ttl
        longest = max(
            longest, asked, key=lambda ttl: (*caching.ttl, "").index(ttl or caching.ttl[0])
        )
        found[spot] = longest
    return found


def _cache_control(ttl: str) -> Json:
    return {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}


def _content(message: Message, ttls: Mapping[int, str], facts: Facts) -> str | list[Json]:
    """Text without marks as one string. Marked text stays split: the cache matches by blocks."""
    if not message.is_one_text or ttls:
        return _blocks(message, ttls, facts)
    if not message.text.strip():
        raise refusal(facts, f"takes no empty message of the role {message.role!r}", "say more")
    return message.text


def _blocks(message: Message, ttls: Mapping[int, str], facts: Facts) -> list[Json]:
    found: list[Json] = []
    for number, part in enumerate(message.parts):
        if isinstance(part, Media):
            found += [_image(frame, facts) for frame in frames_of(part)]
        elif isinstance(part, Text) and part.text.strip():
            # The API refuses a block of white space; beside images such a block has no meaning.
            found.append({"type": "text", "text": part.text})
        elif number in ttls and found:
            found[-1]["cache_control"] = _cache_control(ttls[number])
    return found


def _image(image: Media, facts: Facts) -> Json:
    if image.mime not in IMAGE_KINDS:
        raise refusal(facts, f"takes no images of the kind {image.mime}", ", ".join(IMAGE_KINDS))
    source = {"type": "base64", "media_type": image.mime, "data": image.base64()}
    return {"type": "image", "source": source}


# Replies: `model_dump`s of the SDK's objects.


def replies_of(message: Mapping[str, Any], n: int) -> Replies:
    assert n == 1
    return Replies((reply_of(message),), spent_of(message.get("usage")))


def reply_of(message: Mapping[str, Any]) -> Reply:
    blocks = message.get("content")
    if not isinstance(blocks, list):
        raise MalformedReply(f"the reply has no content but {str(blocks)[:80]}")
    texts = [each.get("text") for each in map(mapping, blocks) if each.get("type") == "text"]
    if not all(isinstance(text, str) for text in texts):
        raise MalformedReply("the reply has a text block without text")
    return reply_with("".join(map(str, texts)), message)


def reply_with(text: str, end: Mapping[str, Any]) -> Reply:
    text, reason = joined(text), end.get("stop_reason")
    if reason == "refusal":
        raise ContentRefused(f"the model refused: {str(end.get('stop_details') or '')[:200]}")
    if reason == "model_context_window_exceeded":
        return Reply(text, FinishReason.LENGTH)
    if not isinstance(reason, str) or reason not in _ENDS:
        raise MalformedReply(f"the reply ended with {str(reason)[:80]!r}")
    matched = end.get("stop_sequence")
    return Reply(text, _ENDS[reason], joined(matched) if isinstance(matched, str) else None)


def spent_of(usage: Mapping[str, Any] | None) -> Spent:
    """The reply's usage. `input_tokens` excludes tokens read from the cache or written to it."""
    if not usage or not isinstance(usage, Mapping):
        return Spent(is_known=False)
    cached = count(usage, "cache_read_input_tokens")
    for_an_hour = count(mapping(usage.get("cache_creation")), "ephemeral_1h_input_tokens")
    written = max(count(usage, "cache_creation_input_tokens"), for_an_hour)
    return Spent(
        prompt=count(usage, "input_tokens") + cached + written,
        cached=cached,
        written_5m=written - for_an_hour,
        written_1h=for_an_hour,
        output=count(usage, "output_tokens"),
        reasoning=count(mapping(usage.get("output_tokens_details")), "thinking_tokens"),
    )


class Stream:
    """Reads a streamed reply, event by event; raises MalformedReply for an invalid stream."""

    def __init__(self) -> None:
        self._text = Pieces()
        self._usage: dict[str, Any] = {}
        self._end: Mapping[str, Any] | None = None
        self._open: int | None = None
        self._n_blocks = 0
        self._has_begun = self._is_over = False

    def add(self, event: Mapping[str, Any]) -> str:
        """Adds an event; returns the text that it adds."""
        kind = event.get("type")
        if self._is_over or (kind == "message_start") == self._has_begun:
            raise MalformedReply(f"an event out of order: {str(kind)[:40]!r}")
        if kind == "message_start":
            self._has_begun = True
            self._usage |= _given(mapping(event.get("message")).get("usage"))
        elif kind == "content_block_start":
            self._begin(event)
        elif kind == "content_block_delta":
            return self._delta(event)
        elif kind == "content_block_stop":
            self._open = None
        elif kind == "message_delta":
            self._end = mapping(event.get("delta"))
            self._usage |= _given(event.get("usage"))
        elif kind == "message_stop":
            self._is_over = True
        return ""

    def _begin(self, event: Mapping[str, Any]) -> None:
        if self._open is not None or event.get("index") != self._n_blocks:
            raise MalformedReply("a block of the stream begins twice, or out of order")
        self._open = self._n_blocks
        self._n_blocks += 1

    def _delta(self, event: Mapping[str, Any]) -> str:
        if self._open is None or event.get("index") != self._open:
            raise MalformedReply("a piece of the stream belongs to no open block")
        delta = mapping(event.get("delta"))
        if delta.get("type") != "text_delta":
            return ""
        text = delta.get("text")
        if not isinstance(text, str):
            raise MalformedReply("a piece of text without text")
        return self._text.add(text)

    def result(self) -> tuple[Reply, Spent]:
        if not self._is_over or self._end is None:
            raise MalformedReply("the stream ended before the reply did")
        return reply_with(self._text.whole(), self._end), spent_of(self._usage)


def _given(usage: Any) -> Json:
    """The counts in an event. They are cumulative, and missing ones keep their value."""
    fields = usage if isinstance(usage, Mapping) else {}
    return {name: value for name, value in fields.items() if value is not None}
