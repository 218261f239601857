"""Images among the segments of a prompt: they become text, in which the image token stands for
each of their tokens.

So an image's text is tokenized together with the text beside it, as transformers' processors do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sgc.runtime.engine.images.decoding import ImageError
from sgc.runtime.engine.text.tokenizer import Text

if TYPE_CHECKING:  # a server without images does no numerics
    from sgc.runtime.engine.images.reader import ImageReader, Read


@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """A segment of images. before, after: the text around each."""

    images: tuple[Read, ...]
    before: str = ""
    after: str = ""

    @property
    def text(self) -> str:
        return "".join(f"{self.before}{each.text}{self.after}" for each in self.images)


def pictures(images: Sequence[Read], text: str, reader: ImageReader) -> Pictures:
    """text: the text for each image, with the image token once. Raises `ImageError`."""
    if not text:
        return Pictures(tuple(images))
    before, token, after = text.partition(reader.token)
    if not token or reader.token in after:
        raise ImageError(f"the text of images must hold {reader.token!r} once; found {text[:80]!r}")
    return Pictures(tuple(images), before, after)


def as_texts(segments: Iterable[Any]) -> list[Any]:
    """The segments with images as texts; adjacent texts are then joined."""
    found: list[Any] = []
    joins = False
    for segment in segments:
        is_image = isinstance(segment, Pictures)
        text = Text(segment.text) if isinstance(segment, Pictures) else segment
        last = found[-1] if found else None
        if (joins or is_image) and isinstance(last, Text) and isinstance(text, Text):
            at = len(last.text)
            literal = tuple((start + at, end + at) for start, end in text.literal)
            found[-1] = Text(last.text + text.text, (*last.literal, *literal))
        else:
            found.append(text)
        joins = is_image
    return found
