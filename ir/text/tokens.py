"""The tokenizer of the text form, which drops comments and white space.

Lines matter (a node ends with its line) except between parentheses and brackets, where a
newline is white space. Only the parser calls this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sgc.errors import ParseError
from sgc.ir.text.literals import quote, unquote

_STRING = r'"(?:[^"\\\n]|\\[^\n])*"'
_NAME = rf"(?:[A-Za-z0-9_][A-Za-z0-9_.]*|{_STRING})"
_PATTERN = re.compile(
    rf"""
    (?P<space> [ \t\r]+ | \#[^\n]* )
  | (?P<newline> \n )
  | (?P<sigil> [%@^]{_NAME} )
  | (?P<string> {_STRING} )
  | (?P<number> -?(?: 0x[0-9a-fA-F]+ | \d+(?:\.\d+)?(?:[eE][+-]?\d+)? | inf\b | nan\b )(?![\w.]) )
  | (?P<word> [A-Za-z_][A-Za-z0-9_]* )
  | (?P<mark> [=,:()\[\]{{}}] )
    """,
    re.VERBOSE | re.ASCII,
)
_MAX_SHOWN = 60
_OPENING, _CLOSING = "([", ")]"


@dataclass(frozen=True, slots=True)
class Token:
    """kind: sigil, string, number, word, mark, newline or end; line and column from 1."""

    kind: str
    text: str
    line: int
    column: int

    def __str__(self) -> str:
        if self.kind in ("newline", "end"):
            return f"the end of the {'line' if self.kind == 'newline' else 'text'}"
        text = self.text if len(self.text) <= _MAX_SHOWN else self.text[:_MAX_SHOWN] + "…"
        return text if self.kind == "string" else f"`{text}`"

    @property
    def name(self) -> str:
        """The name in a sigil's token, unquoted."""
        body = self.text[1:]
        return unquote(body) if body.startswith('"') else body


def tokenize(text: str, source: str) -> Iterator[Token]:
    """The tokens of a text, the last one of kind `end`; raises ParseError for any other text."""
    line, line_start, depth, position = 1, 0, 0, 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        column = position - line_start + 1
        if match is None:
            raise no_token_error(text, position, Token("end", "", line, column), source)
        kind, word = match.lastgroup or "", match[0]
        position = match.end()
        depth += (word in _OPENING) - (word in _CLOSING) if kind == "mark" else 0
        if kind == "newline":
            if depth <= 0:
                yield Token(kind, word, line, column)
            line, line_start = line + 1, position
        elif kind != "space":
            yield Token(kind, word, line, column)
    yield Token("end", "", line, position - line_start + 1)


def no_token_error(text: str, position: int, at: Token, source: str) -> ParseError:
    char = text[position]
    if char == '"':
        return parse_error(at, source, "a closing quote on the same line", "none")
    if char in "%@^":
        return parse_error(
            at, source, f"a name after `{char}`", quote(text[position + 1 : position + 2])
        )
    return parse_error(at, source, "a name, a literal or one of = , : ( ) [ ] { }", quote(char))


def parse_error(at: Token, source: str, expected: str, found: str = "") -> ParseError:
    """An error at a token: its position, what was expected and what was found."""
    place = f"line {at.line}, column {at.column}"
    return ParseError(f"{place}: expected {expected}, found {found or at}", where=source)
