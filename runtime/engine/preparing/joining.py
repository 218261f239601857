"""Tokenizes prompts with joined contexts: the tokens, and where the parts of the joins are.

A part is tokenized as its own stream is, after the text before the join, so that its tokens are
those that its stream was generated with. Tokens that all of these sequences share with the prompt
before the join are outside the join. The text after a join is tokenized separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.requests.joined import Join, Joins, Part, moved
from sgc.runtime.engine.text.tokenizer import GoOn, Ids, Text, Tokenizer, common_prefix_length


@dataclass(frozen=True, slots=True)
class Parts:
    """A segment of a prompt: parts that are encoded side by side."""

    parts: tuple[tuple[Segment, ...], ...]


Segment = Text | Ids | Parts
Segments = Sequence[Segment]
Plain = list[Text | Ids]


def plain_segments(segments: Segments, tokenizer: Tokenizer, go_on: GoOn) -> tuple[Plain, Joins]:
    """The prompt, with everything up to its last join as ids, and its joins in terms of tokens."""
    return _Joining(tokenizer, go_on).plain([], (), segments)


def last_parts(segments: Segments) -> int | None:
    """The index of the last join."""
    found = [n for n, each in enumerate(segments) if isinstance(each, Parts)]
    return found[-1] if found else None


def flat(segments: Segments) -> Iterator[Text | Ids]:
    """The segments, with parts replaced by their own segments."""
    for each in segments:
        if isinstance(each, Parts):
            for part in each.parts:
                yield from flat(part)
        else:
            yield each


def kinds_of(prompt: pb.Prompt) -> list[str | None]:
    """The kind of each segment. Reading content makes an object, so prompts of text alone are told
    apart by this."""
    return [segment.WhichOneof("content") for segment in prompt.segments]


def chars_again(prompt: pb.Prompt, n_before: int = 0) -> int:
    """The characters tokenized again, as each part is tokenized with the text before it."""
    if "joined" not in kinds_of(prompt):
        return 0
    n_again = 0
    for segment in prompt.segments:
        if segment.WhichOneof("content") != "joined":
            n_before += len(segment.text.text)
            continue
        n_parts = 0
        for part in segment.joined.parts:
            n_again += n_before + chars_again(part, n_before)
            n_parts += sum(len(each.text.text) for each in part.segments)
        n_before += n_parts
    return n_again


def add_joins(messages: Any, joins: Joins) -> None:
    """messages: a repeated field of the worker's protocol."""
    for join in joins:
        message = messages.add(start=join.start)
        for part in join.parts:
            add_joins(message.parts.add(end=part.end).joins, part.joins)


@dataclass(frozen=True, slots=True)
class _Joining:
    tokenizer: Tokenizer
    go_on: GoOn

    def plain(self, before: Plain, joins: Joins, segments: Segments) -> tuple[Plain, Joins]:
        """The tokens before, with their joins, continued by segments."""
        for n, each in enumerate(segments):
            if isinstance(each, Parts):
                ids, joins = self._joined(before, joins, each)
                before = [Ids(tuple(ids[len(self.tokenizer.prefix_ids) :]))]
            else:
                before = _followed(before, each) if n == 0 else [*before, each]
        return before, joins

    def _joined(self, before: Plain, joins: Joins, parts: Parts) -> tuple[list[int], Joins]:
        trunk = self.tokenizer.encode_prompt(before)
        alone: list[tuple[list[int], Joins]] = []
        for part in parts.parts:
            self.go_on()
            plain, found = self.plain(before, joins, part)
            alone.append((self.tokenizer.encode_prompt(plain), found[len(joins) :]))
        cut = common_prefix_length([trunk, *(ids for ids, _ in alone)])
        cut = min([cut, *(join.start for _, inner in alone for join in inner)])
        ids, made = trunk[:cut], list[Part]()
        for own, inner in alone:
            if len(own) > cut:
                by = cut - len(ids)
                ids = ids + own[cut:]
                made.append(Part(len(ids), tuple(moved(join, by) for join in inner)))
        if len(made) < 2:  # no other part is beside it
            return ids if made else trunk, joins + sum((part.joins for part in made), ())
        return ids, (*joins, Join(cut, tuple(made)))


def _followed(before: Plain, first: Text | Ids) -> Plain:
    """The segments before a part, and the part's first segment; two adjacent texts become one."""
    if not before or not isinstance(before[-1], Text) or not isinstance(first, Text):
        return [*before, first]
    last, n = before[-1], len(before[-1].text)
    literal = tuple((start + n, end + n) for start, end in first.literal)
    return [*before[:-1], Text(last.text + first.text, last.literal + literal)]
