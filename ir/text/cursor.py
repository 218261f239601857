"""A position in a list of tokens, and the primitive steps of a recursive-descent parser.

Every step either consumes tokens or raises a ParseError that names what was expected and what was
found. This module knows no grammar; only the parser calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sgc.errors import ParseError
from sgc.ir.text.literals import unquote
from sgc.ir.text.tokens import Token, parse_error, tokenize

T = TypeVar("T")


class Cursor:
    def __init__(self, text: str, source: str) -> None:
        self._tokens = list(tokenize(text, source))
        self._next = 0
        self.source = source

    @property
    def token(self) -> Token:
        return self._tokens[self._next]

    def error(self, expected: str, at: Token | None = None) -> ParseError:
        return parse_error(at or self.token, self.source, expected)

    def at(self, kind: str, text: str = "") -> bool:
        return self.token.kind == kind and (not text or self.token.text == text)

    def at_sigil(self, sigil: str) -> bool:
        return self.token.kind == "sigil" and self.token.text[0] == sigil

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._next += 1
        return token

    def skip(self, mark: str) -> bool:
        found = self.at("mark", mark)
        self._next += found
        return found

    def expect(self, kind: str, text: str = "", what: str = "") -> Token:
        if not self.at(kind, text):
            raise self.error(what or f"`{text}`")
        return self.take()

    def skip_newlines(self) -> None:
        while self.at("newline"):
            self._next += 1

    def end_line(self) -> None:
        if not self.at("end"):
            self.expect("newline", what="the end of the line")
        self.skip_newlines()

    def separated(self, closing: str, item: Callable[[], T]) -> tuple[T, ...]:
        """Items between commas up to the closing mark; a trailing comma is allowed."""
        items: list[T] = []
        while not self.skip(closing):
            if items:
                self.expect("mark", ",", what=f"`,` or `{closing}`")
                if self.skip(closing):
                    break
            items.append(item())
        return tuple(items)

    def sigil(self, sigil: str, what: str) -> str:
        if not self.at_sigil(sigil):
            raise self.error(what)
        token = self.take()
        return self.checked(lambda: token.name, token)

    def string(self, what: str) -> str:
        return self.unquoted(self.expect("string", what=f"{what} in quotes"))

    def unquoted(self, token: Token) -> str:
        return self.checked(lambda: unquote(token.text), token)

    def checked(self, read: Callable[[], T], token: Token) -> T:
        try:
            return read()
        except ValueError as error:
            raise self.error(f"a well-formed literal ({error})", at=token) from None
