"""A chat as a dialogue: each message with its role, generated text in colour."""

from __future__ import annotations

from collections.abc import Iterator

from sgc.cli.output.colours import generated, role
from sgc.runtime.executor.run.record import StreamResult

GENERATED = ("generated", "chosen")
_ROLES = ("role_begin", "role_end")


def dialogue(stream: StreamResult) -> str | None:
    """The messages of a stream; None if text is outside them, or one holds more than text."""
    contents = [message["content"] for message in stream.messages]
    if not contents or not all(isinstance(each, str) for each in contents):
        return None
    said = "".join(text for kind, text in stream.pieces if kind not in _ROLES)
    if "".join(said.split()) != "".join("".join(contents).split()):
        return None
    replies = (text.strip() for kind, text in stream.pieces if kind in GENERATED)
    waiting = [text for text in replies if text]
    shown = []
    for message in stream.messages:
        content = "".join(_coloured(message["content"], waiting))
        shown.append(f"{role(message['role'] + ':')} {content}")
    return "\n\n".join(shown)


def _coloured(content: str, waiting: list[str]) -> Iterator[str]:
    """The content in parts. waiting: generated texts not found yet; found ones leave it."""
    at = 0
    while waiting and (found := content.find(waiting[0], at)) >= 0:
        text = waiting.pop(0)
        yield content[at:found]
        yield generated(text)
        at = found + len(text)
    yield content[at:]
