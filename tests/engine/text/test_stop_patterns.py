"""Stop patterns end a text where `re`, asked about every part of it, says; and soon enough."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from property_tests import examples
from waiting import cpu_below

from sgc.runtime.engine.guides import stop_patterns as module
from sgc.runtime.engine.guides.stop_patterns import (
    HoldBack,
    PatternError,
    StopPatterns,
    stop_patterns,
)

Span = tuple[int, int]
ATOMS = ["a", "b", "é", r"\n", "[ab]", "[^a]", ".", r"\d", r"\w", r"\s", "🙂", r"[^\W\d]"]
ATOMS += ["(?i:A)", "(?s:.)", "(?a:[é\\w])", "(?s-i:a.)", r"[\d\-a]"]


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeats = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?"])
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("({}){}".format, inner, repeats),
    )


patterns_ = st.recursive(st.sampled_from(ATOMS), _composed, max_leaves=5)
lists = st.lists(patterns_.filter(lambda p: not re.fullmatch(p, "")), min_size=1, max_size=3)
texts = st.text("aab1 \né🙂A", max_size=14)


def first_match(patterns: Sequence[str], text: str, n_ignored: int = 0) -> Span | None:
    """The first end beyond the ignored characters, and the leftmost start with it."""
    compiled = [re.compile(pattern) for pattern in patterns]
    for end in range(n_ignored + 1, len(text) + 1):
        for start in range(end):
            if any(pattern.fullmatch(text, start, end) for pattern in compiled):
                return start, end
    return None


def end_in_bytes(patterns: StopPatterns, data: bytes, step: int, n_ignored: int = 0) -> int | None:
    checker = patterns.checker()
    for i in range(0, len(data), step):
        found = checker.feed(data[i : i + step], i >= n_ignored)
        if found is not None:
            return i + found
    return None


@examples(150)
@given(lists, texts, st.integers(1, 5))
@example(["a+b", "b"], "aab", 1)
@example(["ab", "xab|b"], "xab", 2)
@example(["(?:a|aa)+b"], "aaaaab", 3)
def test_the_end_and_the_cut_are_what_re_says(patterns: list[str], text: str, step: int) -> None:
    compiled = StopPatterns(patterns)
    found = end_in_bytes(compiled, text.encode(), step)
    expected = first_match(patterns, text)
    if expected is None:
        assert found is None
        return
    start, end = expected
    assert found == len(text[:end].encode())
    assert compiled.locate(text, end) == start
    assert compiled.locate(text, end, start) == start


@examples(60)
@given(lists, texts, st.integers(1, 3))
def test_matches_that_do_not_count_are_passed(patterns: list[str], text: str, n: int) -> None:
    """But what was read before the first that counts may be a part of it."""
    text = "".join(filter(str.isascii, text))
    found = end_in_bytes(StopPatterns(patterns), text.encode(), 1, n_ignored=n)
    expected = first_match(patterns, text, n_ignored=n)
    assert found == (expected and expected[1])


def test_min_tokens() -> None:
    checker = stop_patterns((r"x\d+\.",)).checker()
    assert checker.feed(b"x1. x2", counts=False) is None
    assert checker.feed(b"3. and", counts=True) == 2
    assert checker.end == 8


@examples(100)
@given(
    st.lists(st.sampled_from([b"a", "é".encode(), "🙂".encode(), b"\xf0\x9f", b"\xff", b"\xe4"])),
    st.sampled_from([["\ufffd"], ["é\ufffd"], [r"\ufffd{2}"], ["🙂a", "é"], ["(?:.a){2}"]]),
    st.integers(1, 5),
)
def test_bytes_that_are_no_text_are_replaced(
    parts: list[bytes], patterns: list[str], step: int
) -> None:
    data = b"".join(parts)
    found = end_in_bytes(StopPatterns(patterns), data + b".", step)
    expected = first_match(patterns, (data + b".").decode("utf-8", "replace"))
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        shown = (data + b".")[:found].decode("utf-8", "replace")
        # A call gives no position before its own bytes, so a broken character may seem longer.
        assert expected[1] <= len(shown) <= expected[1] + (step == 1)


def test_a_character_cut_in_the_middle() -> None:
    data = "né🙂x".encode()
    checker = stop_patterns(("🙂",)).checker()
    assert [checker.feed(data[i : i + 2]) for i in (0, 2, 4)] == [None, None, None]
    assert (checker.feed(data[6:]), checker.end) == (1, 3)


def test_a_broken_character_is_known_by_the_next_bytes() -> None:
    checker = stop_patterns(("a\ufffd",)).checker()
    assert checker.feed(b"a\xf0\x9f") is None
    assert (checker.feed(b"bc"), checker.end) == (0, 2)


def _shown(patterns: StopPatterns, text: str, step: int) -> list[str]:
    hold, shown = HoldBack(patterns), []
    for i in range(step, len(text) + step, step):
        n_held = hold.feed(text[i - step : i])
        shown.append(text[: min(i, len(text)) - n_held])
    assert not hold.has_given_up
    return shown


@examples(150)
@given(lists, texts, st.integers(1, 4))
@example([r"\n\n", r"\nab"], "a\nab", 1)
def test_what_is_shown_stays(patterns: list[str], text: str, step: int) -> None:
    compiled = StopPatterns(patterns)
    cut, end = first_match(patterns, text) or (len(text), len(text) + 1)
    shown = _shown(compiled, text[: end - 1], step)
    for earlier, later in zip(shown, [*shown[1:], text[:cut]], strict=False):
        assert later.startswith(earlier)


@examples(80)
@given(lists, texts, texts)
def test_what_is_held_could_be_a_stop(patterns: list[str], text: str, more: str) -> None:
    """Held: not more than from the first place where a match starts in some continuation."""
    compiled = StopPatterns(patterns)
    hold = HoldBack(compiled)
    n_shown = len(text) - hold.feed(text)
    whole = text + more
    for end in range(len(text) + 1, len(whole) + 1):
        if any(re.compile(p).fullmatch(whole, s, end) for p in patterns for s in range(n_shown)):
            raise AssertionError(f"{whole[:end]!r}: shown up to {n_shown}")


@pytest.mark.parametrize(
    ("pattern", "text", "n_held"),
    [
        (r"\n\n", "one\ntwo", [0, 0, 0, 1, 0, 0, 0]),
        (r"\d+\.", "a12, 3", [0, 1, 2, 0, 0, 1]),
        (r"Observation \d+:", "An Observation 1,", [0] * 3 + [*range(1, 14), 0]),
        ("<t>.*</t>", "a<b<t>xy", [0, 1, 0, 1, 2, 3, 4, 5]),
        ("é🙂", "aé é🙂", [0, 1, 0, 1, 2]),
    ],
)
def test_nothing_is_held_longer_than_needed(pattern: str, text: str, n_held: list[int]) -> None:
    hold = HoldBack(stop_patterns((pattern,)))
    assert [hold.feed(char) for char in text] == n_held


# -- what is refused --


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("^a", "has an anchor"),
        ("a$", "has an anchor"),
        (r"\bword", "has a word boundary"),
        ("a(?=b)", "looks ahead or behind"),
        ("(?<!a)b", "looks ahead or behind"),
        ("(?!)", "looks ahead or behind|can never match"),
        ("^", "has an anchor"),
        (r"(a)\1", "refers back to a group"),
        ("(a)?(?(1)b|c)", "refers back to a group"),
        ("(?>a+)b", "has an atomic group"),
        ("a++b", "has a possessive repeat"),
        ("(a", "is invalid: missing"),
        ("a{1000}{1000}", "is invalid: multiple repeat"),
        ("a*", "matches the empty text"),
        ("(?:|a)b?", "matches the empty text"),
        ("\ud800", "half a surrogate pair"),
        ("a{10001}", "repeats over 10000 times"),
        ("(?:" * 7 + "a" + "b)+" * 7, "repeats in repeats over 6 deep"),
        ("a?" * 501 + "b", "over 500 repeats"),
        (r"\w" * 2001, "over 200 classes"),
        (r"(?i)" + r"[\w!]" * 20, "over 200 classes"),
        ("x" * 16385, "makes 16389 bytes"),
        ("(" * 5000 + "a" + ")" * 5000, "nested too deeply"),
        ("(" * 260 + "a" + ")b" * 260, "nested"),
    ],
)
def test_refused(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason) as caught:
        StopPatterns(["fine", pattern])
    assert isinstance(caught.value, ValueError)
    shown = pattern if len(pattern) <= 60 else pattern[:57] + "..."
    assert repr(shown) in caught.value.message
    assert caught.value.hint


def test_what_never_matches_is_refused() -> None:
    with pytest.raises(PatternError, match="can never match"):
        StopPatterns([r"[^\s\S]a"])


def test_how_many() -> None:
    StopPatterns(["a"] * 16)
    for n in (0, 17):
        with pytest.raises(PatternError, match=f"expected 1 to 16 stop patterns, found {n}"):
            StopPatterns(["a"] * n)


def test_locate_where_nothing_ends() -> None:
    with pytest.raises(ValueError, match="no match of a stop pattern ends at character 2"):
        stop_patterns(("ab",)).locate("xab", 2)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "pattern", [r"\d", r"\s", r"\w", r"\S", r"(?a)\W", r"(?a)(?u:\w)", "(?i)k", "(?i)[^à-ý]"]
)
def test_classes_are_those_of_re(pattern: str) -> None:
    compiled, ours, theirs = StopPatterns([pattern]), [], []
    for char in map(chr, range(0x3100)):
        if char in "İıſ" or not (char.isprintable() or char.isspace()):
            continue
        ours.append(char if compiled.checker().feed(char.encode()) else "")
        theirs.append(char if re.fullmatch(pattern, char) else "")
    assert ours == theirs


# -- limits --

HOSTILE = {
    "counts": ["(?:a{1000}){1000}"],
    "counts in counts": ["(?:" * 6 + "a" + "){1,10000}" * 6 + "b"],
    "exponential": ["(a|aa)+b", "(?:a|b)*a(?:a|b){2000}c"],
    "gaps": ["(?:.{0,1000}a){50}b"],
    "long gap": [".{9000}a"],
    "optional": ["a?" * 490 + "a" * 490],
    "stars": ["(a*)*" * 250 + "b"],
    "alternatives": ["|".join(f"a{i}" for i in range(2500))],
    "literal": ["aab" * 5461],
    "any case": ["(?i)" + "aab" * 5400],
    "words": [r"\w\s" * 1000],
    "classes": ["[" + "".join(chr(0x4E00 + 2 * i) for i in range(5400)) + "]+x"],
    "many": ["a?" * 30 + "a" * 900 + "b"] * 16,
    "deep": ["(" * 120 + "a" + ")b" * 120],
}


@pytest.mark.sweep
@pytest.mark.parametrize("patterns", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_patterns_are_bounded_in_time(patterns: list[str]) -> None:
    rng = random.Random(0)
    with cpu_below(1):
        try:
            compiled = StopPatterns(patterns)
        except PatternError:
            compiled = None
    if compiled is None:
        return
    for text in ("a" * 3000, "".join(rng.choices("aab c", k=3000))):
        with cpu_below(2):
            with contextlib.suppress(PatternError):
                end_in_bytes(compiled, text.encode(), 4)
            hold = HoldBack(compiled)
            for i in range(0, len(text), 4):
                hold.feed(text[i : i + 4])


def test_at_the_limit_the_request_fails_and_the_next_one_does_not() -> None:
    compiled = StopPatterns([".{9000}a", "bc"])
    with pytest.raises(PatternError, match=r"'\.\{9000\}a', 'bc' need too large"):
        end_in_bytes(compiled, b"xy" * 5000, 100)
    assert compiled.checker().feed(b"abcd") == 3


def test_what_others_read_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share an automaton, here a small one; who finds it full goes on with another."""
    text = "".join(random.Random(1).choices("abcde ", k=1500)) + "<a>"
    pattern = "[a-c].{0,60}[<>]"
    roomy = HoldBack(StopPatterns([pattern]))
    monkeypatch.setattr(module, "SHARED_FUEL", 1500)
    compiled = StopPatterns([pattern])
    checkers = [compiled.checker() for _ in range(3)]
    hold = HoldBack(compiled)
    for i in range(0, len(text), 4):
        part = text[i : i + 4]
        expected = 1 if i == 1500 else None
        assert [checker.feed(part.encode()) for checker in checkers] == [expected] * 3
        assert hold.feed(part) == roomy.feed(part)
    assert all(checker._is_alone for checker in checkers)
    assert hold._automaton is not compiled.matches
    assert compiled.locate(text, 1501) == min(i for i in range(1439, 1500) if text[i] in "abc")


def test_holding_back_gives_up_by_holding_all() -> None:
    hold = HoldBack(stop_patterns(("a{0,1000}b",)))
    assert hold.feed("xy") == 0
    n = next(n for n in range(1, 3000) if hold.feed("a") and hold.has_given_up)
    assert n > 1000
    n_held = hold.feed("b")
    assert hold.feed("xyz") == n_held + 3


def test_patterns_are_compiled_once() -> None:
    assert stop_patterns((r"\d\.",)) is stop_patterns((r"\d\.",))
