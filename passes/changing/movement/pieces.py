"""Cuts a prompt's text into the pieces that a proposal reorders.

A piece is a paragraph of constant text, or an argument with its label and delimiters. Text between
delimiters is one piece; so is a heading, or a line that ends in a colon, with the paragraph below
it. The last line is a cue if it begins the reply. `rule.py` decides what may move.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import Enum

# Stands for an argument in a prompt's text.
SLOT = "\ufffc"


class Kind(Enum):
    TEXT = "text"
    ARGUMENT = "argument"
    CUE = "cue"


@dataclass(frozen=True, slots=True)
class Piece:
    """gap: the white space after the text, up to the next piece."""

    kind: Kind
    text: str
    gap: str


ITEM = re.compile(r"^\s*(?:[-*•+]|\(?\w{1,2}[.)])\s+(?=\S)")
_ENDED = re.compile(r"[.!?][\"'”’)\]*_]*$")
_HEADING = re.compile(r"#{1,6} \S[^\n]*|\*\*[^\n]*\*\*:?")
_BEGINS_REPLY = re.compile(r"(?:let's|sure|here (?:is|are)|okay|i|my|the answer is)\b", re.I)
_AFTER_SENTENCE = re.compile(rf"{SLOT}[^\n{SLOT}]*[.!?][\"')]*\s+(?=[A-Z])")
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)[^<>\n]*>")
_RULE = re.compile(r"([-=_*#~])\1{2,}")
_PAIRS = ("()", "[]", "{}", "“”", "«»")
_MARKS = ("```", '"""', "'''", '"')

_Span = tuple[int, int]
_Starts = list[tuple[int, Kind]]


def cut(text: str) -> tuple[Piece, ...]:
    """The pieces in order; together they are the text without white space in front."""
    lines = [found.span() for found in re.finditer(r"\S[^\n]*", text)]
    n = 0  # lines of the cue
    while n < min(2, len(lines) - 1) and _is_cue(text[slice(*lines[-1 - n])].strip()):
        n += 1
    starts, is_open = _starts(text, lines[: len(lines) - n])
    if n and is_open:  # the last line closes something
        starts, _ = _starts(text, lines)
    elif n:
        starts.append((lines[-n][0], Kind.CUE))
    ends = [*(start for start, _ in starts[1:]), len(text)]
    parts = ((kind, text[start:end]) for (start, kind), end in zip(starts, ends, strict=True))
    return tuple(Piece(kind, part.rstrip(), part[len(part.rstrip()) :]) for kind, part in parts)


def _starts(text: str, lines: list[_Span]) -> tuple[_Starts, bool]:
    """Where pieces begin, and whether a delimiter is left open in the last one."""
    closed = {found[2] for found in _TAG.finditer(text) if found[1]}
    starts: _Starts = []
    start, opened = -1, Counter[str]()
    for number, (low, high) in enumerate(lines):
        start = low if start < 0 else start
        opened.update(_opened(text[low:high], closed))
        following = lines[number + 1] if number + 1 < len(lines) else None
        if following and (_is_open(opened) or _belongs(text, start, (low, high), following)):
            continue
        starts += _of_block(text, start, high)
        if following:
            start, opened = -1, Counter()
    return starts, _is_open(opened)


def _is_cue(line: str) -> bool:
    if SLOT in line or ITEM.match(line):
        return False
    return len(line) < 4 or not _ENDED.search(line) or bool(_BEGINS_REPLY.match(line))


def _opened(line: str, closed: set[str]) -> dict[str, int]:
    """Delimiters that a line opens, minus those that it closes. closed: tags closed anywhere."""
    counts = {mark: line.count(mark) for mark in _MARKS}
    counts |= {pair: line.count(pair[0]) - line.count(pair[1]) for pair in _PAIRS}
    tags = [found for found in _TAG.finditer(line) if found[2] in closed and found[0][-2] != "/"]
    counts["<>"] = sum(-1 if found[1] else 1 for found in tags)
    counts["---"] = bool(_RULE.fullmatch(line.strip()))
    return counts


def _is_open(opened: Counter[str]) -> bool:
    is_odd = any(opened[mark] % 2 for mark in (*_MARKS, "---"))
    return is_odd or any(opened[pair] > 0 for pair in (*_PAIRS, "<>"))


def _belongs(text: str, start: int, last: _Span, following: _Span) -> bool:
    """Whether the next line belongs to the piece that begins at start."""
    line = text[slice(*last)].strip()
    if line.endswith(":") or _HEADING.fullmatch(line):
        return True
    if text.count("\n", last[1], following[0]) > 1:
        return False
    # Sentences on lines before an argument are not part of its label.
    is_lead = text.find(SLOT, start, following[1]) >= following[0]
    return not (is_lead and _ENDED.search(line))


def _of_block(text: str, start: int, end: int) -> _Starts:
    """One piece, or two: an argument's sentence and the text after it."""
    behind = [found.end() for found in _AFTER_SENTENCE.finditer(text, start, end)]
    is_apart = bool(behind) and SLOT not in text[behind[-1] : end]
    if is_apart and not _is_open(Counter(_opened(text[start : behind[-1]], set()))):
        return [(start, Kind.ARGUMENT), (behind[-1], Kind.TEXT)]
    return [(start, Kind.ARGUMENT if SLOT in text[start:end] else Kind.TEXT)]
