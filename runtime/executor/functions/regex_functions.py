"""Functions of patterns: results are those of Python's `re`, in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from sgc.runtime.executor.interface.value_limits import check_length
from sgc.runtime.executor.patterns.linear_regex import Span, linear_pattern, shape_of
from sgc.runtime.executor.patterns.regex_classes import UnsupportedPattern

_REFERENCE = re.compile(r"\\(?:g<(\w+)>|(\d{1,2})|(.)|$)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


def _spans(name: str) -> Callable[..., list[list[int] | None]]:
    """A function that returns a match's spans: a list or None for each group, [] for no match."""

    def function(pattern: str, flags: int, text: str) -> list[list[int] | None]:
        found = getattr(linear_pattern(pattern, flags), name)(text)
        return [None if span is None else list(span) for span in found or ()]

    return function


def _findall(pattern: str, flags: int, text: str) -> list[str]:
    group = min(shape_of(pattern, flags).n_groups, 1)
    return [_cut(text, spans[group]) for spans in _all(pattern, flags, text)]


def _split(pattern: str, flags: int, text: str, most: int) -> list[str]:
    parts, at = [], 0
    if most >= 0:
        for number, spans in enumerate(_all(pattern, flags, text)):
            if most and number >= most:
                break
            start, end = _whole(spans)
            parts.append(text[at:start])
            at = end
    return [*parts, text[at:]]


def _sub(pattern: str, flags: int, text: str, template: str, most: int) -> str:
    pieces = template_pieces(template, pattern, flags)
    parts, at, n_chars = [], 0, len(text)
    if most >= 0:
        for number, spans in enumerate(_all(pattern, flags, text)):
            if most and number >= most:
                break
            start, end = _whole(spans)
            made = "".join(p if isinstance(p, str) else _cut(text, spans[p]) for p in pieces)
            n_chars += len(made)
            check_length(n_chars)
            parts += [text[at:start], made]
            at = end
    return "".join([*parts, text[at:]])


def template_pieces(template: str, pattern: str, flags: int) -> list[str | int]:
    r"""The texts and group numbers of a template of `re.sub`.

    Raises UnsupportedPattern for unknown groups, and for escapes other than those of groups, \n,
    \r, \t and the backslash.
    """
    shape = shape_of(pattern, flags)
    pieces: list[str | int] = []
    at = 0
    for found in _REFERENCE.finditer(template):
        pieces.append(template[at : found.start()])
        pieces.append(_piece(found, shape.names, shape.n_groups))
        at = found.end()
    pieces.append(template[at:])
    return [piece for piece in pieces if piece != ""]


def _piece(found: re.Match[str], names: dict[str, int], n_groups: int) -> str | int:
    name, digits, char = found.groups()
    if char in _ESCAPES:
        return _ESCAPES[char]
    number = names.get(name or "", -1)
    if digits and not (digits.startswith("0") or len(digits) > 1):
        number = int(digits)
    elif name and name.isascii() and name.isdigit():
        number = int(name[:4])
    if not 0 <= number <= n_groups:
        raise UnsupportedPattern(
            f"the template has {found[0]!r}, which is not a group of the pattern",
            hint=r"write groups as \1 or \g<name>, and a backslash as \\",
        )
    return number


def _all(pattern: str, flags: int, text: str) -> Iterator[list[Span]]:
    if not shape_of(pattern, flags).skips_none:
        raise UnsupportedPattern(
            "the pattern may match the empty text before others that begin there",
            hint="use + in place of *?, or write the empty alternative last",
        )
    return linear_pattern(pattern, flags).all(text)


def _whole(spans: list[Span]) -> tuple[int, int]:
    assert spans[0] is not None
    return spans[0]


def _cut(text: str, span: Any) -> str:
    return "" if span is None else text[span[0] : span[1]]


REGEX_EVALUATORS: dict[str, Callable[..., Any]] = {
    "re_end": lambda spans, group: spans[group][1],
    "re_escape": re.escape,
    "re_findall": _findall,
    "re_fullmatch": _spans("fullmatch"),
    "re_group": lambda spans, group, text: _cut(text, spans[group]),
    "re_match": _spans("match"),
    "re_search": _spans("search"),
    "re_split": _split,
    "re_start": lambda spans, group: spans[group][0],
    "re_sub": _sub,
    "re_took_part": lambda spans, group: spans[group] is not None,
}
