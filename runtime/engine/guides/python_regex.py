r"""Translates patterns of Python's `re` to the constraint library's syntax.

Python's own parser reads the pattern, so that `\w`, `[[]` or `x{,3}` mean what they mean in Python.
Both match the same whole texts, as `re.fullmatch` does: so lazy repeats equal greedy ones, and `^`
and `$` at the ends mean nothing. A construct that a finite automaton cannot express, or that would
make it too large, raises an error that names it. (?i) uses Unicode's simple case folding. Classes
are written out from this Python's tables, as the library may have another version of Unicode.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from re import _parser  # type: ignore[attr-defined]
from typing import Any

MAX_OPTIONAL = 500  # repeats and empty branches; in a row they take quadratic time to build
MAX_COUNT = 10_000  # in {m,n}
MAX_DEPTH = 6  # of repeats in repeats
MAX_CLASSES = 2000  # such as \w
FOLDED_AS = 100  # what a wide class counts under (?i), in units of MAX_CLASSES
WIDE = 1000  # characters of a range
WORD_AS = 10  # what a category counts, in units of MAX_CLASSES: \w has some 700 ranges
LAST_LETTER = 0x33000  # there are no letters beyond it
SIMPLER = "write a simpler one"


class PatternError(ValueError):
    """A pattern cannot be used. reason: what is wrong with it; hint: what to do."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(f"{reason}; {hint}")
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Pattern:
    """translated: in the library's syntax. shortest: the fewest characters a match can have."""

    translated: str
    shortest: int


def translate(pattern: str, *, is_reversed: bool = False, is_whole: bool = True) -> Pattern:
    """Translates a pattern; raises PatternError. is_reversed: for texts read backwards. is_whole:
    the pattern describes a whole text, so that anchors at its ends mean nothing."""
    tree = _parsed(pattern)
    place = _Place(is_whole, is_whole)
    written = _written(tree, tree.state.flags, _Writer(is_reversed), place)
    return Pattern(written, int(tree.getwidth()[0]))


def _parsed(pattern: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of `[[`, read literally here
            return _parser.parse(pattern)
    except (re.error, OverflowError) as error:
        raise PatternError(f"is invalid: {error}", "see Python's re") from error
    except RecursionError as error:
        raise PatternError("is nested too deeply", SIMPLER) from error


def _written(nodes: Any, flags: int, writer: _Writer, place: _Place) -> str:
    try:
        return writer.write(nodes, flags, place)
    except RecursionError as error:
        raise PatternError("is nested too deeply", SIMPLER) from error


def search(pattern: str) -> str:
    """A pattern of the library that matches the whole texts in which `re.search` finds a match."""
    tree = _parsed(pattern)
    is_branch = len(tree) == 1 and tree[0][0].name == "BRANCH"
    arms = tree[0][1][1] if is_branch else [tree]
    writer = _Writer(False)
    return f"^{joined([_searched(arm, tree.state.flags, writer) for arm in arms])}$"


def _searched(arm: Any, flags: int, writer: _Writer) -> str:
    names = [value.name if op.name == "AT" else "" for op, value in arm]
    is_start, is_end = bool(names) and names[0] in _STARTS, bool(names) and names[-1] in _ENDS
    written = _written(arm, flags, writer, _Place(is_start, is_end))
    return f"{'' if is_start else '(?s:.*)'}{written}{'' if is_end else '(?s:.*)'}"


def literal(text: str) -> str:
    """A pattern of the library that matches exactly this text."""
    return "".join(_char(ord(char)) for char in text)


@dataclass(frozen=True, slots=True)
class _Place:
    """Whether a node is at the start or end of the pattern, where anchors mean nothing."""

    is_first: bool = False
    is_last: bool = False


_INSIDE = _Place()


class _Writer:
    """Writes Python's parse trees, a method per kind of node, and counts what is costly."""

    def __init__(self, is_reversed: bool) -> None:
        self._is_reversed = is_reversed
        self._n_optional = 0
        self._n_classes = 0
        self._depth = 0

    def write(self, nodes: Any, flags: int, place: _Place) -> str:
        written = self._sequence(nodes, flags, place)
        if self._n_optional > MAX_OPTIONAL:
            raise PatternError(f"makes over {MAX_OPTIONAL} repeats and optional parts", SIMPLER)
        if self._n_classes > MAX_CLASSES:
            hint = f"a wide one under (?i) counts as {FOLDED_AS // WORD_AS}; {SIMPLER}"
            raise PatternError(rf"makes over {MAX_CLASSES // WORD_AS} classes such as \w", hint)
        return written

    def _sequence(self, nodes: Any, flags: int, place: _Place) -> str:
        nodes = list(nodes)
        bodies = [i for i, (op, _) in enumerate(nodes) if op.name != "AT"]
        first, last = (bodies[0], bodies[-1]) if bodies else (len(nodes), -1)
        written = []
        for i, (op, value) in enumerate(nodes):
            at = _Place(place.is_first and i <= first, place.is_last and i >= last)
            written.append(self._node(op.name, value, flags, at))
        return "".join(reversed(written) if self._is_reversed else written)

    def _node(self, name: str, value: Any, flags: int, place: _Place) -> str:
        write: Callable[..., str] | None = getattr(self, f"_{name.lower()}", None)
        if write is None:
            raise PatternError(*_REFUSED.get(name, (f"has {name}", "leave it out")))
        return write(value, flags, place)

    def _at(self, kind: Any, _: int, place: _Place) -> str:
        is_start, is_end = kind.name in _STARTS, kind.name in _ENDS
        if (is_start and place.is_first) or (is_end and place.is_last):
            return ""
        if not is_start and not is_end:
            raise PatternError(r"has a word boundary (\b, \B)", "write what stands there")
        raise PatternError("has an anchor (^ $) where it says something", "write what stands there")

    def _literal(self, code: int, flags: int, _: _Place) -> str:
        if 0xD800 <= code < 0xE000:
            raise PatternError("has half a surrogate pair", "write the character")
        return _folded(_char(code), flags)

    def _not_literal(self, code: int, flags: int, _: _Place) -> str:
        return _folded(f"[^{_range(code, code)}]", flags)

    def _any(self, _: None, flags: int, __: _Place) -> str:
        return "(?s:.)" if flags & re.DOTALL else r"[^\x{A}]"

    def _in(self, items: Any, flags: int, _: _Place) -> str:
        mark = "^" if items[0][0].name == "NEGATE" else ""
        written = "".join(_class_item(op.name, value, flags) for op, value in items)
        n_categories = sum(op.name == "CATEGORY" for op, _ in items)
        self._n_classes += WORD_AS * n_categories
        if n_categories and n_categories + bool(mark) == len(items):  # the same in either case
            return f"[{mark}{written}]"
        if flags & re.IGNORECASE:
            self._n_classes += FOLDED_AS * any(_is_wide(op.name, value) for op, value in items)
        return _folded(f"[{mark}{written}]", flags)

    def _branch(self, value: Any, flags: int, place: _Place) -> str:
        written = [self._sequence(nodes, flags, place) for nodes in value[1]]
        self._n_optional += "" in written
        return f"(?:{'|'.join(written)})"

    def _subpattern(self, value: Any, flags: int, place: _Place) -> str:
        _, added, removed, nodes = value
        if added & re.UNICODE:
            removed |= re.ASCII
        return f"(?:{self._sequence(nodes, (flags | added) & ~removed, place)})"

    def _max_repeat(self, value: Any, flags: int, place: _Place) -> str:
        low, high, nodes = value
        unlimited = high == _parser.MAXREPEAT
        if max(low, 0 if unlimited else high) > MAX_COUNT:
            raise PatternError(f"repeats over {MAX_COUNT} times", "use + or *")
        self._n_optional += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise PatternError(f"has repeats in repeats over {MAX_DEPTH} deep", SIMPLER)
        written = self._sequence(nodes, flags, place if (low, high) == (1, 1) else _INSIDE)
        self._depth -= 1
        is_atom = len(nodes) == 1 and "REPEAT" not in nodes[0][0].name
        atom = written if is_atom else f"(?:{written})"
        return f"{atom}{{{low},{'' if unlimited else high}}}"

    _min_repeat = _max_repeat  # the same texts match


_STARTS = frozenset({"AT_BEGINNING", "AT_BEGINNING_STRING"})
_ENDS = frozenset({"AT_END", "AT_END_STRING"})
_REFUSED = {
    "ASSERT": ("looks ahead or behind", "make it part of the match"),
    "ASSERT_NOT": ("looks ahead or behind", "make it part of the match"),
    "GROUPREF": ("refers back to a group", "write the group's pattern again"),
    "GROUPREF_EXISTS": ("refers back to a group", "write the cases as (?:a|b)"),
    "ATOMIC_GROUP": ("has an atomic group", "write (?:…) for (?>…)"),
    "POSSESSIVE_REPEAT": ("has a possessive repeat", "write a+ for a++"),
    "FAILURE": ("can never match", "leave it out"),
}
_MEMBERS: dict[str, Callable[[str], bool]] = {  # the members of each category of `re`
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
    "WORD": lambda char: char.isalnum() or char == "_",
}
_NOTHING = r"[^\x{0}-\x{10FFFF}]"


@cache
def _category(kind: str, is_ascii: bool) -> str:
    """A category's characters as ranges, from this Python's tables."""
    is_member, end = _MEMBERS[kind], 0x80 if is_ascii else LAST_LETTER
    codes = [code for code in range(end) if is_member(chr(code))]
    if is_ascii:  # in ASCII mode the separators 1C to 1F are not white space
        codes = [code for code in codes if not 0x1C <= code <= 0x1F]
    starts = [code for code, before in zip(codes, [-2, *codes], strict=False) if before != code - 1]
    ends = [code for code, after in zip(codes, [*codes[1:], -2], strict=True) if after != code + 1]
    return "".join(map(_range, starts, ends))


def _class_item(name: str, value: Any, flags: int) -> str:
    if name == "NEGATE":
        return ""
    if name == "CATEGORY":
        *negated, kind = value.name.removeprefix("CATEGORY_").split("_")
        return f"[{'^' if negated else ''}{_category(kind, bool(flags & re.ASCII))}]"
    return _range(*(value if name == "RANGE" else (value, value)))


def _is_wide(name: str, value: Any) -> bool:
    return name == "CATEGORY" or (name == "RANGE" and value[1] - value[0] >= WIDE)


def _range(low: int, high: int) -> str:
    """A range of a class, without surrogates: texts have none, and the library refuses them."""
    low = 0xE000 if 0xD800 <= low < 0xE000 else low
    high = 0xD7FF if 0xD800 <= high < 0xE000 else high
    return f"{_char(low)}-{_char(high)}" if low <= high else _NOTHING


def _folded(written: str, flags: int) -> str:
    if not flags & re.IGNORECASE:
        return written
    if flags & re.ASCII:
        raise PatternError(
            "folds case in ASCII alone, (?ai)", "write both cases, or leave out (?a)"
        )
    return f"(?i:{written})"


def _char(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else rf"\x{{{code:X}}}"


def joined(patterns: Sequence[str]) -> str:
    """A pattern of the library that matches where any of `patterns` does."""
    return f"(?:{'|'.join(patterns)})"
