"""Tests of what is before or behind a place in the text: lookaround and `\\B`, which RE2 has not.

Python's own matcher finds the places where each test of a pattern holds. Each character is preceded
by marks of the tests that hold there, as separate bytes: a test matches its mark, and a character
also matches the marks before it. At one place a pattern makes each test at most once, because a
repeated part is never empty; so one mark for each test suffices.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from re import _compiler, _parser  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any

from sgc.ir.regex_tree import REPEATS, bodies

Node = tuple[Any, Any]
ASSERTIONS = (sre.ASSERT, sre.ASSERT_NOT)
MAX_TESTS = 6
MAX_WIDTH = 20  # characters that a lookaround reads, so that each place takes bounded time


def is_short(op: Any, arg: Any) -> bool:
    """Whether a lookaround reads at most a few characters, and sets no group."""
    _, body = arg
    return body.getwidth()[1] <= MAX_WIDTH and all(map(_is_plain, _parts(body)))


def _parts(tree: Iterable[Node]) -> Iterable[Node]:
    for op, arg in tree:
        yield op, arg
        for body, _ in bodies(op, arg):
            yield from _parts(body)


def _is_plain(node: Node) -> bool:
    op, arg = node
    if op is sre.SUBPATTERN:
        return arg[0] is None and not (arg[1] | arg[2])
    if op in REPEATS:  # none that could be matched in several ways
        return op is not sre.POSSESSIVE_REPEAT and bool(arg[0] == arg[1])
    return op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN, sre.AT, sre.BRANCH)


@dataclass(frozen=True, slots=True)
class Test:
    """A test of a place. mark: its byte; places: finds where it holds."""

    mark: int
    places: re.Pattern[str]


def test_of(op: Any, arg: Any, flags: int, mark: int) -> Test:
    state = _parser.State()
    state.flags = flags if flags & re.ASCII else flags | re.UNICODE
    state.str = ""
    tree = _parser.SubPattern(state, [(op, arg)])
    return Test(mark, _compiler.compile(tree, state.flags))


@dataclass(frozen=True, slots=True)
class Marks:
    """The tests of a pattern. n_tests: how often it makes any."""

    tests: Sequence[Test]
    n_tests: int

    @property
    def any(self) -> bytes:
        """RE2's pattern for the marks before a character."""
        return b"[" + b"".join(b"\\x%02x" % test.mark for test in self.tests) + b"]*"

    def added_to(self, text: str, encoded: bytes) -> Marked:
        """The bytes of a text with its marks."""
        found: dict[int, bytes] = {}
        for test in self.tests:
            for match in test.places.finditer(text):
                at = match.start()
                found[at] = found.get(at, b"") + bytes([test.mark])
        made, places, starts, ends = bytearray(), sorted(found), [], []
        before = 0
        for place in places:
            made += encoded[before:place]
            starts.append(len(made))
            made += found[place] * self.n_tests
            ends.append(len(made))
            before = place
        return Marked(bytes(made + encoded[before:]), places, starts, ends)


@dataclass(frozen=True, slots=True)
class Marked:
    """A text with marks. places: where marks are in the text; starts, ends: the offsets of their
    bytes.
    """

    encoded: bytes
    places: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]

    def place(self, offset: int) -> int:
        """The place in the text of a byte; for a mark, the place of its character."""
        n = bisect_right(self.starts, offset) - 1
        return offset if n < 0 else self.places[n] + max(0, offset - self.ends[n])

    def offset(self, place: int) -> int:
        """The offset of the first mark at a place, or of its character."""
        n = bisect_left(self.places, place) - 1
        return place if n < 0 else self.ends[n] + place - self.places[n]
