"""Turns a prompt into chat messages: roles, texts, media, and the begun assistant message.

A program without roles is one user message. Pure functions; the wire modules write an API's form.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sgc.errors import UnsupportedParameter
from sgc.runtime.executor.interface.backend import CacheMark, MediaRun, Prompt, TextRun
from sgc.runtime.executor.interface.media import Media

HINT_ROLES = "put it into a role, e.g. s += sgc.user(...), or use no roles at all"


@dataclass(frozen=True, slots=True)
class Text:
    """A part of a message's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A cache mark after the part before it. ttl: the lifetime, "" for the default."""

    ttl: str = ""


Part = Text | Media | Mark


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def media(self) -> list[Media]:
        return [part for part in self.parts if isinstance(part, Media)]

    @property
    def is_one_text(self) -> bool:
        """Whether it is only text, without a mark inside; a mark at its end is allowed."""
        inner = self.parts[:-1] if self.parts and isinstance(self.parts[-1], Mark) else self.parts
        return all(isinstance(part, Text) for part in inner)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Complete messages, and the begun assistant text that a generation continues.

    is_planned: cache marks were placed by a plan, so nothing else is to be cached.
    """

    messages: tuple[Message, ...]
    prefill: str = ""
    is_planned: bool = False

    def with_instruction(self, text: str) -> Conversation:
        """Adds an instruction at the end, in the last user message or in a new one."""
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == "user":
            parts = (*last.parts, Text("\n\n" + text))
            return replace(self, messages=(*self.messages[:-1], replace(last, parts=parts)))
        return replace(self, messages=(*self.messages, Message("user", (Text(text),))))


def conversation_of(prompt: Prompt, model: str) -> Conversation:
    """The conversation of a prompt; raises UnsupportedParameter if messages cannot express it."""
    reader = _Reader(model)
    for run in prompt:
        if isinstance(run, MediaRun):
            reader.add(run.media)
        elif isinstance(run, TextRun):
            _read_run(reader, run)
        else:
            reader.add(Text(run.text))
    return reader.result()


def plain_text(prompt: Prompt, model: str) -> str:
    """The whole prompt, for an API that completes text; raises UnsupportedParameter for images."""
    if any(isinstance(run, MediaRun) for run in prompt):
        raise UnsupportedParameter(
            f"{model} completes text and takes no images", hint="use a chat model"
        )
    return "".join(run.text for run in prompt)


def _read_run(reader: _Reader, run: TextRun) -> None:
    at = 0
    marks = deque(run.cache_marks)
    for role in run.roles:
        _read_text(reader, run.text, marks, at, role.start)
        if role.is_begin:
            reader.begin(role.role)
        else:
            reader.end()
        at = role.end
    _read_text(reader, run.text, marks, at, len(run.text))


def _read_text(reader: _Reader, text: str, marks: deque[CacheMark], start: int, end: int) -> None:
    """Reads the text between two role marks; a cache mark in a template's text moves after it."""
    while marks and marks[0].at <= end:
        mark = marks.popleft()
        cut = max(mark.at, start)
        reader.add(Text(text[start:cut]))
        reader.mark(Mark(mark.ttl))
        start = cut
    reader.add(Text(text[start:end]))


class _Reader:
    """Collects messages while the prompt is read from start to end."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._messages: list[Message] = []
        self._outside: list[Part] = []
        self._parts: list[Part] = []
        self._role: str | None = None
        self._is_planned = False

    def add(self, part: Text | Media) -> None:
        if isinstance(part, Media) or part.text:
            (self._outside if self._role is None else self._parts).append(part)

    def mark(self, mark: Mark) -> None:
        """Marks the content so far, or the message before if this one is still empty."""
        self._is_planned = True
        parts = self._outside if self._role is None else self._parts
        if _says_something(parts):
            parts.append(mark)
        elif self._messages:
            self._mark_last(mark)

    def _mark_last(self, mark: Mark) -> None:
        last = self._messages[-1]
        self._messages[-1] = replace(last, parts=tuple(merged([*last.parts, mark])))

    def begin(self, role: str) -> None:
        if self._role is not None:
            raise UnsupportedParameter(
                f"a message of the role {role!r} begins before that of {self._role!r} has ended",
                hint="end each role before the next begins",
            )
        self._role = role

    def end(self) -> None:
        if self._role is None:
            raise UnsupportedParameter("a role ends that has not begun", hint=HINT_ROLES)
        self._messages.append(Message(self._role, tuple(merged(self._parts))))
        self._parts, self._role = [], None

    def result(self) -> Conversation:
        if not self._messages and self._role is None:
            if not _says_something(self._outside):
                raise UnsupportedParameter(
                    f"{self._model} is asked with an empty prompt", hint="begin with some text"
                )
            said = Message("user", tuple(merged(self._outside)))
            return Conversation((said,), is_planned=self._is_planned)
        if _says_something(self._outside):
            shown = "".join(p.text for p in self._outside if isinstance(p, Text)).strip()[:60]
            raise UnsupportedParameter(
                f"{self._model} takes messages, and a text stands outside of them: {shown!r}",
                hint=HINT_ROLES,
            )
        if self._role != "assistant":
            where = "outside of roles" if self._role is None else f"in the role {self._role!r}"
            raise UnsupportedParameter(
                f"{self._model} generates the assistant's messages only, and is asked {where}",
                hint="s += sgc.assistant(sgc.gen(...))",
            )
        prefill = Message("assistant", tuple(self._parts))
        if prefill.media:
            raise UnsupportedParameter(f"{self._model} takes no images in its own messages")
        for part in prefill.parts:
            if isinstance(part, Mark) and self._messages:
                self._mark_last(part)
        return Conversation(tuple(self._messages), prefill.text, self._is_planned)


def _says_something(parts: list[Part]) -> bool:
    return any(
        isinstance(part, Media) or (isinstance(part, Text) and part.text.strip()) for part in parts
    )


def merged(parts: Iterable[Part]) -> list[Part]:
    """Joins adjacent texts, except across a mark.

    Drops a mark without content before it, or that would leave a text of only white space, which
    APIs refuse.
    """
    found: list[Part] = []
    for part in parts:
        if isinstance(part, Text):
            _add_text(found, part)
        elif isinstance(part, Media):
            _join_blank(found)
            found.append(part)
        elif found and not _is_blank(found[-1]):
            if isinstance(found[-1], Mark):
                found.pop()
            found.append(part)
    _join_blank(found)
    return found


def _add_text(found: list[Part], text: Text) -> None:
    last = found[-1] if found else None
    if isinstance(last, Text):
        found[-1] = Text(last.text + text.text)
    else:
        found.append(text)


def _join_blank(found: list[Part]) -> None:
    """Joins white space after a mark to the text before it, and drops the mark."""
    if len(found) < 3 or not _is_blank(found[-1]) or not isinstance(found[-2], Mark):
        return
    if isinstance(found[-3], Text):
        blank = found.pop()
        found.pop()
        assert isinstance(blank, Text)
        _add_text(found, blank)


def _is_blank(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()


# The position of a mark: the message's and the part's index.
Spot = tuple[int, int]


def marks_of(messages: Sequence[Message]) -> list[tuple[Spot, Mark]]:
    return [
        ((i, j), part)
        for i, message in enumerate(messages)
        for j, part in enumerate(message.parts)
        if isinstance(part, Mark)
    ]


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prompt up to a mark, as its hash. n_bytes: of its texts and media digests."""

    digest: str
    n_bytes: int


def marked_prefixes(messages: Sequence[Message], also: str = "") -> tuple[Prefix, ...]:
    """The prefix of each mark, shortest first. also: what else must be equal, such as a schema."""
    running, n_bytes = hashlib.sha256(also.encode()), 0
    found = []
    for message in messages:
        running.update(json.dumps(["message", message.role]).encode())
        for part in message.parts:
            if isinstance(part, Mark):
                found.append(Prefix(running.hexdigest(), n_bytes))
                continue
            said = part.text if isinstance(part, Text) else part.digest
            running.update(json.dumps([type(part).__name__, said]).encode())
            n_bytes += len(said.encode("utf-8", "surrogatepass"))
    return tuple(found)
