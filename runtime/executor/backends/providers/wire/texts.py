"""A provider's text as Unicode: halves of surrogate pairs are joined, a lone one is refused."""

from __future__ import annotations

from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply


def joined(text: str) -> str:
    """The text with each surrogate pair as its character; raises MalformedReply for a lone half."""
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise MalformedReply("the server's text holds half of a surrogate pair") from error


class Pieces:
    """The pieces of a streamed text. JSON may escape a character as two halves in two pieces."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""

    def add(self, piece: str) -> str:
        """Returns the text that is added; a first half waits for the second one."""
        piece = self._half + piece
        self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        text = joined(piece.removesuffix(self._half))
        self._pieces.append(text)
        return text

    def whole(self) -> str:
        """The whole text, with a half whose other one never came."""
        return "".join(self._pieces) + self._half
