"""A program sees the items of a set in the order that they have in Python, or is refused."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from control_flow import agree, equal_or_refused

import sgc
from sgc.runtime.executor.code.run import run_code
from sgc.runtime.executor.code.set_order import copied_set, merged
from sgc.tracing.kinds.sets import order_seen
from sgc.tracing.pieces.text.constants import literal

REPLIES = ("1 65", "33", "", "65 33 1", "alpha k", "7 8 beta")

SHOWN = {65, 33, 1}
ADDED: set[int] = set()
for _n in (97, 64, 33, 1, 32, 7, 8, 40):
    ADDED.add(_n)
CHANGED = {8 * n + 1 for n in range(20)}  # no display or list gives the order that it has
for _n in [*CHANGED][:15]:
    CHANGED.discard(_n)
CHANGED |= {64, 0, 32, 1024, 33}
FROZEN = frozenset([65, 33, 1, 97, 2])
TEXTS = {"alpha", "beta", "gamma", "delta", "k"}
PAIRS = {(1, 65), (2, 33), (1, 33)}
HELD = {"n": {65, 33, 1}, "t": TEXTS}
HELD_CHANGED = {"n": CHANGED}


@dataclass
class Words:
    # Not a display: Python's own order of one depends on whether a `.pyc` was read.
    known: set[str] = field(default_factory=lambda: set(("alpha", "beta", "k")))  # noqa: C405

    def first(self, text: str) -> str:
        for word in self.known:
            if word not in re.findall(r"\w+", text):
                return word
        return ""

    def has(self, text: str) -> bool:
        return any(word in self.known for word in re.findall(r"\w+", text))


def found(xs: Any, text: str) -> Any:
    return [x for x in xs if str(x) in re.findall(r"\w+", text)]


def counted(body: Any, text: str) -> Any:
    """What makes the whole of it code."""
    return sorted(Counter(text.split()), key=len), body(text)


def numbers(text: str) -> Any:
    return found(SHOWN, text)


def numbers_added(text: str) -> Any:
    words = re.findall(r"\d+", text)
    return [n for n in ADDED if n > 32 and str(n) not in words]


def numbers_changed(text: str) -> Any:
    return [n for n in CHANGED if str(n) not in re.findall(r"\d+", text)]


def numbers_changed_by_a_loop(text: str) -> Any:
    for n in CHANGED:
        if str(n) not in text:
            return n
    return None


def numbers_changed_held(text: str) -> Any:
    return [n for n in HELD_CHANGED["n"] if str(n) not in re.findall(r"\d+", text)]


def numbers_frozen(text: str) -> Any:
    return [n for n in FROZEN if str(n) not in re.findall(r"\d+", text)]


def pairs(text: str) -> Any:
    return [n for n, m in PAIRS if str(m) not in re.findall(r"\d+", text)]


def held(text: str) -> Any:
    return [n for n in HELD["n"] if str(n) not in re.findall(r"\d+", text)]


def its_text(text: str) -> Any:
    return str(SHOWN) + str(ADDED) + text.upper()


def texts(text: str) -> Any:
    return [w for w in TEXTS if w not in re.findall(r"\w+", text)]


def texts_joined(text: str) -> Any:
    return "-".join(TEXTS - set(re.findall(r"\w+", text)))


def its_members(text: str) -> Any:
    words = re.findall(r"\w+", text)
    n = [int(w) in CHANGED for w in words if w.isdigit()]
    return [w for w in words if w in TEXTS], n, len(CHANGED), [w in HELD["t"] for w in words]


def sorted_items(text: str) -> Any:
    words = set(re.findall(r"\w+", text))
    return sorted(words & TEXTS), sorted(TEXTS - words), max(CHANGED), len(words | TEXTS)


def any_of_them(text: str) -> Any:
    words = re.findall(r"\w+", text)
    return any(w in words for w in TEXTS), all(str(n) in words for n in CHANGED)


def of_its_own(text: str) -> Any:
    own = set([97, 64, 33, 1, 32])  # noqa: C405
    own.discard(33)
    own.add(2)
    return [n for n in own if str(n) not in re.findall(r"\d+", text)]


def of_a_display(text: str) -> Any:
    words = re.findall(r"\d+", text)
    own = {97, 64, 33, 1, 32}
    return [n for n in {97, 64, 33, 1, 32} if str(n) not in words], [n for n in own if n], words


def that_grows(text: str) -> Any:
    seen = {97, 64, 33, 1, 32}
    for word in re.findall(r"\d+", text):
        seen.add(8 * int(word))
    return [*seen]


def of_an_object(text: str) -> Any:
    return Words().has(text)


def of_an_object_in_order(text: str) -> Any:
    return Words().first(text)


def taken_away(text: str) -> Any:
    words = re.findall(r"\w+", text * 3 + " m n o p q r s")
    own = set(words)
    left = own - TEXTS
    return list(left), [*own.difference(TEXTS)], [*own.difference(TEXTS, own)]


def only_tested(text: str) -> Any:
    words = set(re.findall(r"\w+", text))
    if words & TEXTS:
        return "some"
    if not words.intersection(TEXTS) and (words | TEXTS and "k" not in text):
        return "none"
    return "other" if TEXTS & words else "no"


EQUAL = (
    numbers, numbers_added, numbers_frozen, held, its_text, its_members, sorted_items, any_of_them,
    of_its_own, taken_away, only_tested,
)  # fmt: skip
LOST = (numbers_changed_by_a_loop, numbers_changed, numbers_changed_held)
OF_TEXTS = (
    of_a_display,
    that_grows,
    pairs,
    texts,
    texts_joined,
    of_an_object,
    of_an_object_in_order,
)


def program(body: Callable[[str], Any], is_in_code: bool) -> Any:
    """A program that returns what `body` makes of a reply: as code, or line by line."""

    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("x", max_tokens=4)
        text = s["x"]
        return counted(body, text) if is_in_code else body(text)

    return shown


@pytest.mark.sweep
@pytest.mark.parametrize("is_in_code", [True, False])
@pytest.mark.parametrize("body", EQUAL)
def test_the_order_is_that_of_the_interpreter(body: Callable[[str], Any], is_in_code: bool) -> None:
    assert equal_or_refused(program(body, is_in_code), REPLIES) == "equal"


@pytest.mark.sweep
@pytest.mark.parametrize("is_in_code", [True, False])
@pytest.mark.parametrize("body", LOST)
def test_an_order_that_no_copy_has_is_its_own_or_refused(
    body: Callable[[str], Any], is_in_code: bool
) -> None:
    equal_or_refused(program(body, is_in_code), REPLIES)


def through(sorted: Any, max: Any) -> Any:
    """Names of Python's that are a helper's own."""
    return sorted(CHANGED), max(CHANGED), [len + 0 for len in sorted(CHANGED)]


def passed(xs: Any) -> Any:
    return [*xs]


class Listed:
    def __init__(self) -> None:
        self.xs: list[int] = []

    def update(self, xs: Any) -> None:
        self.xs.extend(xs)


@sgc.function
def seen_by_names(s, q: str, given=CHANGED):
    s += q + sgc.gen("x", max_tokens=4)
    listed = Listed()
    listed.update(CHANGED)
    any((first := n) for n in CHANGED if n)
    return through(passed, passed), listed.xs, first, [*given]


def test_the_order_is_seen_by_whatever_reads_the_set() -> None:
    agree(seen_by_names, REPLIES, n=3, q="x")


@pytest.mark.sweep
@pytest.mark.parametrize("is_in_code", [True, False])
@pytest.mark.parametrize("body", OF_TEXTS)
def test_the_order_of_texts_is_no_other(body: Callable[[str], Any], is_in_code: bool) -> None:
    equal_or_refused(program(body, is_in_code), REPLIES)


@pytest.mark.parametrize(
    "made",
    [SHOWN, ADDED, set(FROZEN), merged([97, 64, 33, 1, 32, 7]), {1}, TEXTS],
    ids=lambda made: str(len(made)),
)
def test_copies_and_literals_have_the_order(made: set[Any]) -> None:
    copied, is_same = copied_set(made)
    assert is_same
    assert [*copied] == [*made]
    text, writer = literal(made)
    if not writer.lost:
        assert run_code(f"def piece():\n    return list({text})", []) == [*made]


def test_what_no_text_makes_is_told() -> None:
    assert copied_set(CHANGED)[1]
    assert literal(CHANGED)[1].has_lost_numbers
    assert literal(TEXTS)[1].lost == {""}


@pytest.mark.parametrize(
    ("code", "is_seen"),
    [
        ("x in A", False),
        ("x in A[k]", False),
        ("len(A), sorted(A), any(a in t for a in A)", False),
        ("any((b := a) in t for a in A)", True),
        ("any(f(a) for a in A)", True),
        ("len([f(a) for a in A])", True),
        ("max(A, b)", True),
        ("max(A & b), isinstance(A, set), frozenset(A) == b", False),
        ("counter.update(A)", True),
        ("b.difference_update(A), A.update(b), len(b.union(A))", False),
        ("def union(self, xs): pass\nlen(b.union(A)), A.union(b)", True),
        ("def update(self, xs): pass\nA.update(b)", True),
        ("sorted(A, key=f)", True),
        ("[a for a in A]", True),
        ("list(A)", True),
        ("sorted(A & b), len(b | A), not (A - b), A.issubset(b)", False),
        ("A & b", True),
        ("list(b - A), list(b.difference(A))", False),
        ("list(A - b), list(A.difference(b))", True),
        ("A.pop()", True),
        ("f(A)", True),
        ("B = A", False),
        ("B = A\nlist(B)", True),
        ("B = A & b\nC = B | b\nsorted(C), len(B)", False),
        ("B = A & b\nC = B | b\nlist(C)", True),
        ("def f():\n    B = A - b\n    return B", True),
        ("if B := A & b: sorted(B)", False),
        ("if B := A & b: list(B)", True),
        ("print(B := A)", True),
        ("self.B = A", True),
        ("B, C = A, b", True),
        ("', '.join(A)", True),
        ("f'{A}'", True),
        ("for a in A: pass", True),
        ("sorted(set(A)), max(A), A.add(1)", False),
        ("list(set(A))", True),
        ("self.A", True),
        ("x in self.A", False),
        ("A[0].union(b)", True),
        ("next(iter(A))", True),
        ("x, y = A", True),
        ("[*A]", True),
        ("A if x else b", True),
        ("b if A else c", False),
        ("x or A", True),
    ],
)
def test_where_the_order_is_seen(code: str, is_seen: bool) -> None:
    assert (order_seen([ast.parse(code)], frozenset({"A"})) is not None) is is_seen
