"""Translates Python's patterns for RE2: characters that belong to the same sets of a pattern become
one byte, and sets become classes of such bytes. `linear_regex.py` calls it, and explains why.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from re import _compiler, _parser  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any

from sgc.errors import UsageError
from sgc.ir.regex_tree import REPEATS, bodies
from sgc.runtime.executor.patterns.regex_marks import (
    ASSERTIONS,
    MAX_TESTS,
    MAX_WIDTH,
    Marks,
    is_short,
    test_of,
)

Node = tuple[Any, Any]

MAX_REPEAT = 1000  # RE2's limit
_LAST = 0x110000
_WORD = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
NEWLINE, _INNER_NEWLINE = 0x0A, 0x0B
_KEPT_FLAGS = re.IGNORECASE | re.DOTALL | re.MULTILINE | re.ASCII
_SCOPED = re.IGNORECASE | re.DOTALL | re.ASCII


class UnsupportedPattern(UsageError):
    """A pattern that cannot be matched in linear time with Python's results."""


def _refuse(what: str) -> UnsupportedPattern:
    return UnsupportedPattern(
        f"the pattern has {what}, which cannot be matched in linear time as Python does",
        hint="write the pattern without it, or use methods of the text such as split and find",
    )


class _BytesOf(dict[int, str]):
    """The byte of each character, found when `str.translate` first looks it up."""

    def __init__(self, starts: list[int], bytes_: list[int]) -> None:
        super().__init__()
        self._starts, self._bytes = starts, bytes_

    def __missing__(self, code: int) -> str:
        self[code] = found = chr(self._bytes[bisect_right(self._starts, code) - 1])
        return found


@dataclass(frozen=True, slots=True)
class Translated:
    """A translated pattern. source: for RE2; ends_at_newline: a newline at the end of the text has
    a byte of its own; marks: of the tests of places that RE2 does not have, if there are any.
    """

    tree: Any
    source: bytes
    bytes_of: _BytesOf
    ends_at_newline: bool
    marks: Marks | None


@lru_cache(maxsize=256)
def translated(pattern: str, flags: int) -> Translated:
    """Translates a pattern; raises re.error if it is invalid, or UnsupportedPattern."""
    tree = _parser.parse(pattern, flags)
    flags = tree.state.flags
    if flags & re.LOCALE:
        raise _refuse("the flag LOCALE")
    survey = _Survey()
    survey.see(tree, flags & _KEPT_FLAGS)
    survey.end()
    classes = _Classes(survey)
    writer = _Writer(classes, survey)
    source = writer.sequence(tree, flags & _KEPT_FLAGS)
    return Translated(tree, source, classes.bytes_of, survey.has_end, writer.marks)


def _check_scope(added: int, removed: int) -> None:
    if (added | removed) & re.MULTILINE:
        raise _refuse("the flag MULTILINE for a part of it")
    if added & re.ASCII or added & re.UNICODE:
        raise _refuse("the flag ASCII or UNICODE for a part of it")


class _Survey:
    """The character sets of a pattern, and the kinds of positions that it tests."""

    def __init__(self) -> None:
        self.sets: dict[tuple[str, int], Runs] = {}
        self.word_flags: int | None = None
        self.has_newlines = False
        self.has_end = False
        self.is_marked = False  # whether tests are marked, since RE2 does not have all of them
        self.tests: dict[tuple[str, int], Node] = {}
        self.n_tests = 0

    def end(self) -> None:
        """Notes that the whole pattern is seen."""
        if self.is_marked and self.n_tests > MAX_TESTS:
            raise _refuse(f"more than {MAX_TESTS} tests of places, some of them lookaround")
        if self.is_marked:
            self.word_flags, self.has_newlines, self.has_end = None, False, False

    def see(self, tree: Iterable[Node], flags: int) -> None:
        for op, arg in tree:
            if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
                self.sets[_key(op, arg, flags)] = _runs(op, _frozen(arg), flags & _SCOPED)
            elif op is sre.AT:
                self._see_place(arg, flags)
                self._see_test(op, arg, flags)
            elif op in ASSERTIONS:
                if not is_short(op, arg):
                    what = f"groups, repeats, or more than {MAX_WIDTH} characters"
                    raise _refuse(f"a look ahead or behind at {what}")
                self.is_marked = True
                self._see_test(op, arg, flags)
            elif str(op) in _UNSUPPORTED or not (inner := bodies(op, arg, flags)):
                raise _refuse(_UNSUPPORTED.get(str(op), f"a part {op}"))
            else:
                if op in REPEATS:
                    _check_repeat(arg)
                elif op is sre.SUBPATTERN:
                    _check_scope(*arg[1:3])
                for body, within in inner:
                    self.see(body, within & _KEPT_FLAGS)

    def _see_test(self, op: Any, arg: Any, flags: int) -> None:
        self.tests[_test_key(op, arg, flags)] = op, arg
        self.n_tests += 1

    def _see_place(self, place: Any, flags: int) -> None:
        if place is sre.AT_BOUNDARY:
            self.word_flags = flags & re.ASCII
        elif place is sre.AT_NON_BOUNDARY:
            self.is_marked = True
        elif place in (sre.AT_BEGINNING, sre.AT_END):
            self.has_newlines = True
            self.has_end |= place is sre.AT_END and not flags & re.MULTILINE


_UNSUPPORTED = {
    "GROUPREF": "a reference to a group",
    "GROUPREF_EXISTS": "a condition on a group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repeat",
}


def _check_repeat(arg: Any) -> None:
    low, high, inner = arg
    if inner.getwidth()[0] == 0 and high > 1:
        raise _refuse("a repeat of what may be empty")
    if low > MAX_REPEAT or (high is not sre.MAXREPEAT and high > MAX_REPEAT):
        raise _refuse(f"a repeat of more than {MAX_REPEAT} times")


def _key(op: Any, arg: Any, flags: int) -> tuple[str, int]:
    return f"{op} {arg!r}", flags & _SCOPED


def _test_key(op: Any, arg: Any, flags: int) -> tuple[str, int]:
    return f"{op} {arg!r}", flags


def _frozen(arg: Any) -> Any:
    return tuple(arg) if isinstance(arg, list) else arg


Runs = tuple[tuple[int, int], ...]


def _runs(op: Any, arg: Any, flags: int) -> Runs:
    """Returns the ranges of characters, ends excluded, that a set matches in Python's matcher."""
    if flags & re.IGNORECASE:
        return _matched(op, arg, flags)
    if op is sre.ANY:
        return _others(() if flags & re.DOTALL else ((NEWLINE, NEWLINE + 1),))
    if op is not sre.IN:
        one = ((arg, arg + 1),)
        return one if op is sre.LITERAL else _others(one)
    is_negated = arg[0][0] is sre.NEGATE
    found = _joined(run for kind, each in arg[is_negated:] for run in _item_runs(kind, each, flags))
    return _others(found) if is_negated else found


def _item_runs(op: Any, arg: Any, flags: int) -> Runs:
    """The ranges of one item of a set in brackets."""
    if op is sre.LITERAL:
        return ((arg, arg + 1),)
    if op is sre.RANGE:
        return ((arg[0], arg[1] + 1),)
    return _matched(sre.IN, ((op, arg),), flags)


def _joined(runs: Iterable[tuple[int, int]]) -> Runs:
    """Ranges in order, without those that overlap or touch."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(runs):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def _others(runs: Runs) -> Runs:
    """The ranges of all other characters."""
    ends = [0, *(border for run in runs for border in run), _LAST]
    return tuple(
        (start, end) for start, end in zip(ends[::2], ends[1::2], strict=True) if start < end
    )


@lru_cache(maxsize=1024)
def _matched(op: Any, arg: Any, flags: int) -> Runs:
    """The ranges of a set, as Python's matcher finds them: some 20 ms for each."""
    matcher = _matcher(op, list(arg) if isinstance(arg, tuple) else arg, flags)
    return tuple(match.span() for match in matcher.finditer(_every_character()))


def _matcher(op: Any, arg: Any, flags: int) -> re.Pattern[str]:
    """Returns Python's own pattern for one or more characters of a set."""
    state = _parser.State()
    state.flags = flags if flags & re.ASCII else flags | re.UNICODE
    state.str = ""
    one = _parser.SubPattern(state, [(op, arg)])
    many = _parser.SubPattern(state, [(sre.MAX_REPEAT, (1, sre.MAXREPEAT, one))])
    compiled: re.Pattern[str] = _compiler.compile(many, state.flags)
    return compiled


@lru_cache(maxsize=1)
def _every_character() -> str:
    return "".join(_plane(number) for number in range(_LAST >> 16))


def _plane(number: int) -> str:
    """The characters of a plane of Unicode, from their four bytes: `map(chr, …)` takes 0.1 s."""
    units = bytearray(4 * 0x10000)
    units[0::4] = bytes(range(256)) * 256
    units[1::4] = b"".join(bytes([high]) * 256 for high in range(256))
    units[2::4] = bytes([number]) * 0x10000
    return units.decode("utf-32-le", "surrogatepass")


class _Classes:
    """Classes of characters that belong to the same sets, one byte each."""

    def __init__(self, survey: _Survey) -> None:
        sets = dict(survey.sets)
        word = ("word", -1)
        if survey.word_flags is not None:
            category = ((sre.CATEGORY, sre.CATEGORY_WORD),)
            sets[word] = _runs(sre.IN, category, survey.word_flags)
        if survey.has_newlines:
            sets["newline", -1] = ((0x0A, 0x0B),)
        starts, signatures = _cut(sets)
        self._free_words = list(_WORD)
        self._free_others = [b for b in range(255, 0, -1) if b not in _WORD and not 10 <= b <= 11]
        is_word = survey.word_flags is not None
        self._bytes: dict[frozenset[Any], int] = {}
        for start, signature in zip(starts, signatures, strict=True):
            if signature in self._bytes:
                continue
            if survey.has_newlines and start == 0x0A:
                self._bytes[signature] = _INNER_NEWLINE if survey.has_end else NEWLINE
            else:
                self._bytes[signature] = self._take(word in signature if is_word else None)
        self.bytes_of = _BytesOf(starts, [self._bytes[each] for each in signatures])

    def _take(self, is_word: bool | None) -> int:
        """Returns a free byte. is_word: whether RE2 must count it as a word character, if known."""
        first, second = self._free_words, self._free_others
        if is_word is not None:
            first = second = first if is_word else second
        free = first or second
        if not free:
            raise _refuse("too many different characters")
        return free.pop()

    def take_mark(self) -> int:
        """A byte that stands for no characters."""
        return self._take(None)

    def members(self, key: tuple[str, int]) -> bytes:
        """The bytes of a set, as RE2 writes a class of them."""
        found = [byte for signature, byte in self._bytes.items() if key in signature]
        if _INNER_NEWLINE in found:
            found.append(NEWLINE)
        if not found:
            return rb"[^\x00-\xff]"
        return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(found)) + b"]"


def _cut(
    sets: dict[tuple[str, int], Runs],
) -> tuple[list[int], list[frozenset[Any]]]:
    """Splits all characters at the borders of sets: the start of each range, and its sets."""
    changes: dict[int, list[tuple[str, int]]] = {0: []}
    for key, runs in sets.items():
        for border in {border for border, n in _counts(runs).items() if n % 2}:
            changes.setdefault(border, []).append(key)
    starts, signatures = [], []
    inside: frozenset[Any] = frozenset()
    for start in sorted(changes):
        if start < _LAST:
            inside = inside ^ frozenset(changes[start])
            starts.append(start)
            signatures.append(inside)
    assert all(a < b for a, b in pairwise(starts))
    return starts, signatures


def _counts(runs: Runs) -> dict[int, int]:
    """Counts the ranges that start or end at a position; if two do, it is no border of the set."""
    counts: dict[int, int] = {}
    for run in runs:
        for border in run:
            counts[border] = counts.get(border, 0) + 1
    return counts


class _Writer:
    """Writes a pattern for RE2 over the bytes of its classes."""

    def __init__(self, classes: _Classes, survey: _Survey) -> None:
        self._classes = classes
        self.marks: Marks | None = None
        self._tests: dict[tuple[str, int], bytes] = {}
        if survey.is_marked:
            tests = [
                test_of(*node, key[1], classes.take_mark()) for key, node in survey.tests.items()
            ]
            self.marks = Marks(tests, survey.n_tests)
            written = [b"%s?\\x%02x" % (self.marks.any, test.mark) for test in tests]
            self._tests = dict(zip(survey.tests, written, strict=True))

    def sequence(self, tree: Iterable[Node], flags: int) -> bytes:
        return b"".join(self._item(op, arg, flags) for op, arg in tree)

    def _item(self, op: Any, arg: Any, flags: int) -> bytes:
        inner = [self.sequence(each, at & _KEPT_FLAGS) for each, at in bodies(op, arg, flags)]
        if op is sre.BRANCH:
            return b"(?:" + b"|".join(inner) + b")"
        if op in REPEATS:
            low, high, _ = arg
            lazy = b"?" if op is sre.MIN_REPEAT else b""
            most = b"" if high is sre.MAXREPEAT else b"%d" % high
            return b"(?:%s){%d,%s}%s" % (inner[0], low, most, lazy)
        if op is sre.SUBPATTERN:
            return (b"(?:%s)" if arg[0] is None else b"(%s)") % inner[0]
        if self.marks is not None and (op is sre.AT or op in ASSERTIONS):
            return self._tests[_test_key(op, arg, flags)]
        if op is sre.AT:
            return _PLACES[arg] if not flags & re.MULTILINE else _LINE_PLACES.get(arg, _PLACES[arg])
        before = b"" if self.marks is None else self.marks.any
        return before + self._classes.members(_key(op, arg, flags))


_PLACES = {
    sre.AT_BEGINNING: rb"\A",
    sre.AT_BEGINNING_STRING: rb"\A",
    sre.AT_END: rb"(?m:$)",
    sre.AT_END_STRING: rb"\z",
    sre.AT_BOUNDARY: rb"\b",
}
_LINE_PLACES = {sre.AT_BEGINNING: rb"(?m:^)", sre.AT_END: rb"(?m:$)"}
