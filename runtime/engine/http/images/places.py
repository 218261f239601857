"""Images in HTTP requests: data URLs and base64, and their places in a prompt's text. Nothing is
fetched, and no file is opened."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import bad
from sgc.runtime.engine.http.sampling import text_prompt
from sgc.runtime.engine.server.server import EngineFacts

if TYPE_CHECKING:
    from sgc.runtime.engine.images.reader import ImageReader

_FORM = "data:image/png;base64,…"


def file_of(given: Any, where: str, *, bare: bool = False) -> bytes:
    """The bytes of a data URL, or with `bare` of base64 as well. Raises HttpError."""
    if not isinstance(given, str):
        raise bad(f"{where} must be a text, {_FORM}", where, "invalid_type")
    head, comma, body = given.partition(",")
    if not comma and bare and "://" not in head:
        head, body = "data:;base64", head
    if not head.startswith("data:") or not head.endswith(";base64"):
        raise bad(
            f"{where} must be a data URL, {_FORM}; found {given[:40]!r}. Nothing is fetched by "
            "URL, and no file of this machine is opened: send the image itself",
            where,
        )
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad(f"{where} holds no valid base64: {error}", where) from error


def image_prompt(
    text: str,
    facts: EngineFacts,
    files: Sequence[bytes],
    literal: Sequence[tuple[int, int]] = (),
    where: str = "messages",
) -> pb.Prompt:
    """The prompt of a text in which the image token stands for each file. literal: as for
    `text_prompt`; image tokens in these ranges are plain text. Raises HttpError."""
    whole = text_prompt(text, facts, literal)
    if not files:
        return whole
    reader = reader_of(facts, where)
    starts = _places(text, reader.token, literal)
    if len(starts) != len(files):
        raise bad(
            f"{where}: {len(files)} images are given, and the prompt's text has {len(starts)} "
            f"places for them ({reader.token!r})",
            where,
        )
    prompt, at = pb.Prompt(), 0
    for start, file in zip(starts, files, strict=True):
        _add_text(prompt, text, at, start, literal)
        prompt.segments.add().images.images.append(file)
        at = start + len(reader.token)
    _add_text(prompt, text, at, len(text), literal)
    return prompt


def reader_of(facts: EngineFacts, where: str) -> ImageReader:
    """The model's image reader; raises HttpError if the model takes no images."""
    reader = facts.limits.images
    if isinstance(reader, str):
        raise bad(f"{where}: {reader}", where, "unsupported_parameter")
    return reader


def _places(text: str, token: str, literal: Sequence[tuple[int, int]]) -> list[int]:
    found, at = [], text.find(token)
    while at >= 0:
        if not any(start < at + len(token) and at < end for start, end in literal):
            found.append(at)
        at = text.find(token, at + len(token))
    return found


def _add_text(
    prompt: pb.Prompt, text: str, start: int, end: int, literal: Sequence[tuple[int, int]]
) -> None:
    if start == end:
        return
    run = prompt.segments.add().text
    run.text = text[start:end]
    for first, last in literal:
        if first < end and start < last:
            run.literal.add(start=max(first, start) - start, end=min(last, end) - start)
