"""A prompt as the messages of a chat: roles, texts and media, and where it is to be gone on with.

A program without roles is one user message. Pure; what an API makes of it is in the wire modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sgc.errors import UnsupportedParameter
from sgc.runtime.executor.backend import MediaRun, Prompt, TextRun
from sgc.runtime.executor.media import Media

HINT_ROLES = "put it into a role, e.g. s += sgc.user(...), or use no roles at all"


@dataclass(frozen=True, slots=True)
class Text:
    """Some of a message's text. is_marked: the prompt is worth keeping up to its end."""

    text: str
    is_marked: bool = False


Part = Text | Media


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def media(self) -> list[Media]:
        return [part for part in self.parts if not isinstance(part, Text)]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that have ended, and the assistant's text that a generation goes on with."""

    messages: tuple[Message, ...]
    prefill: str = ""

    def with_instruction(self, text: str) -> Conversation:
        """The same with a last word to the model, in the last user message or one of its own."""
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == "user":
            parts = (*last.parts, Text("\n\n" + text))
            return replace(self, messages=(*self.messages[:-1], replace(last, parts=parts)))
        return replace(self, messages=(*self.messages, Message("user", (Text(text),))))


def conversation_of(prompt: Prompt, model: str) -> Conversation:
    """Raises UnsupportedParameter for a prompt that no list of messages can say."""
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
    for mark in run.roles:
        _read_text(reader, run, at, mark.start)
        if mark.is_begin:
            reader.begin(mark.role)
        else:
            reader.end()
        at = mark.end
    _read_text(reader, run, at, len(run.text))


def _read_text(reader: _Reader, run: TextRun, start: int, end: int) -> None:
    """Text between two role marks, cut after each cache mark.

    A mark within a template's own text, or at its end, counts for the content before it.
    """
    marks = sorted(mark for mark in run.cache_marks if start < mark <= end)
    for mark in marks:
        reader.add(Text(run.text[start:mark], is_marked=True))
        start = mark
    if start < end:
        reader.add(Text(run.text[start:end]))


class _Reader:
    """Messages as the prompt is read from its beginning to its end."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._messages: list[Message] = []
        self._outside: list[Part] = []
        self._parts: list[Part] = []
        self._role: str | None = None

    def add(self, part: Part) -> None:
        if isinstance(part, Media) or part.text:
            (self._outside if self._role is None else self._parts).append(part)

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
            return Conversation((Message("user", tuple(merged(self._outside))),))
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
        return Conversation(tuple(self._messages), prefill.text)


def _says_something(parts: list[Part]) -> bool:
    return any(isinstance(part, Media) or part.text.strip() for part in parts)


def merged(parts: list[Part]) -> Iterator[Part]:
    """Neighbouring texts as one, but for where a mark is between them."""
    held: Text | None = None
    for part in parts:
        if isinstance(part, Text) and held is not None and not held.is_marked:
            held = Text(held.text + part.text, part.is_marked)
            continue
        if held is not None:
            yield held
            held = None
        if isinstance(part, Text):
            held = part
        else:
            yield part
    if held is not None:
        yield held


def frames_of(media: Media) -> list[Media]:
    """An image itself, or the frames of a video, each a PNG."""
    if not media.n_frames:
        return [media]
    found, start = [], 0
    while start < len(media.data):
        end = _end_of_png(media.data, start)
        found.append(Media(media.data[start:end], "image/png", f"{media.digest}:{start}"))
        start = end
    return found


def _end_of_png(data: bytes, start: int) -> int:
    """A PNG is a signature of 8 bytes, then chunks: length, name, content, checksum."""
    at = start + 8
    while at + 12 <= len(data):
        length, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        at += 12 + length
        if name == b"IEND":
            return min(at, len(data))
    raise UnsupportedParameter("a video's frames are no PNG images", hint="use sgc.video(path, n)")
