"""The spelling of texts, numbers and names in the text form, in both directions.

Texts are spelled as in JSON with two differences, so that every Python string round-trips:
`\\uXXXX` is exactly one code point (halves of a surrogate pair are never merged), and an
unprintable character beyond `\\uffff` is `\\UXXXXXXXX`. Printable text of any script is not
escaped; control, format and bidirectional characters are, so that a reader sees what the parser
reads. The printer and the tokenizer call this.
"""

from __future__ import annotations

import re

from sgc.ir.graph import Scalar

WORDS: dict[str, Scalar] = {
    "true": True,
    "false": False,
    "none": None,
    "inf": float("inf"),
    "nan": float("nan"),
}
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*\Z")
PLAIN_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_SHORT_BACK = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    '"': '"',
    "\\": "\\",
    "/": "/",
}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.)|\Z)", re.DOTALL)
# Python refuses to print or read longer decimal numbers.
_MAX_DECIMAL_BITS = 4096
_MAX_SHOWN_CHARS = 60
_MAX_ESCAPES = 10_000


def quote(text: str) -> str:
    """A text between double quotes, on one line."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + escape(text) + '"'


def escape(text: str) -> str:
    """A text on one line, without quotes around it."""
    return text.translate(_ESCAPED)


class _Escapes(dict[int, str]):
    """The spelling of each character by its code, computed once."""

    def __missing__(self, code: int) -> str:
        spelled = _escape_char(chr(code))
        if len(self) < _MAX_ESCAPES:
            self[code] = spelled
        return spelled


_ESCAPED = _Escapes()


def _escape_char(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def unquote(token: str) -> str:
    """The text of a token in double quotes; raises ValueError for a bad escape."""
    body = token[1:-1]
    return _ESCAPE.sub(_unescape, body) if "\\" in body else body


def _unescape(match: re.Match[str]) -> str:
    digits = match[1] or match[2]
    if digits:
        code = int(digits, 16)
        if code > 0x10FFFF:
            raise ValueError(f"{match[0]} is beyond Unicode")
        return chr(code)
    if match[3] not in _SHORT_BACK:
        raise ValueError(f"no escape is spelled {match[0]}")
    return _SHORT_BACK[match[3]]


def name_text(name: str) -> str:
    """A value's, block's or program's name after its sigil: quoted unless plain."""
    return name if PLAIN_NAME.match(name) else quote(name)


def value_ref(name: str) -> str:
    """A reference to a value in the text form."""
    return f"%{name_text(name)}"


def label(name: str) -> str:
    """A reference to a block in the text form."""
    return f"^{name_text(name)}"


def shown_name(name: str) -> str:
    """`name_text` for errors, cut if it is long: a file's names may be huge."""
    return name_text(name) if len(name) <= _MAX_SHOWN_CHARS else name_text(_begun(name))


def shown_value(name: str) -> str:
    return f"%{shown_name(name)}"


def shown_label(name: str) -> str:
    return f"^{shown_name(name)}"


def _begun(name: str) -> str:
    return name[: _MAX_SHOWN_CHARS - 1] + "…"


def word_text(word: str) -> str:
    """A word without a sigil: quoted unless it is an identifier."""
    return word if PLAIN_WORD.match(word) else quote(word)


def scalar_text(value: Scalar) -> str:
    """A literal, whose spelling tells its type: `1` int, `1.0` float, `true` bool, `none`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int):
        return hex(value) if value.bit_length() > _MAX_DECIMAL_BITS else str(int(value))
    # Other values are not valid literals, but an error must be able to show them.
    return repr(float(value)) if isinstance(value, float) else escape(repr(value))


def read_number(token: str) -> int | float:
    """The value of a number's token; raises ValueError if it is malformed."""
    digits = token.removeprefix("-")
    if digits in ("inf", "nan"):
        return float(token)
    if digits.startswith("0x"):
        return int(token, 16)
    return float(token) if any(char in digits for char in ".eE") else int(token)
