"""A translated pattern matches the texts that `re.fullmatch` says, and no others."""

from __future__ import annotations

import json
import re
import unicodedata
import warnings
from functools import cache, partial

import pytest
from engine.generation.conftest import ByteMatcher, _byte_tokenizer
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from llguidance import LLMatcher
from property_tests import examples
from waiting import cpu_below

from sgc.runtime.engine.guides import python_regex
from sgc.runtime.engine.guides.python_regex import PatternError, literal, search, translate

pytestmark = pytest.mark.filterwarnings("ignore:Possible (nested )?set:FutureWarning")

PATTERNS = [
    "",
    "abc",
    "a|b|",
    "a|bc|d*",
    "(?:ab|a)(?:c|bcd)d?",
    "a*",
    "a+?b??c*?",
    "a{3}",
    "a{2,}",
    "a{,2}b",
    "a{1,3}?",
    "(?:ab){2,3}",
    "(?:a{2}){1,2}",
    "(?:a?){3}",
    "(?:){5}x",
    "a{}",
    "a{x}",
    "a{1",
    "a{2}{",
    "x{,}",
    ".",
    "(?s).",
    "(?s:.)a.",
    ".*\\n.",
    "[abc]",
    "[^abc]",
    "[^\\n]",
    "[a-c\\-x]",
    "[]a]",
    "[^]a]",
    "[+--]",
    "[a\\]b]",
    "[-a]",
    "[a-]",
    "[\\^a]",
    "[a^]",
    "[.*+?(){}|$]",
    "[[]",
    "[[:alpha:]]",
    "[a&&b]",
    "[a||b]",
    "[a~~b]",
    "[+--b]",
    "[\\x00-\\x1f]",
    "[\\b]",
    "[ -~]",
    r"\d",
    r"\D",
    r"\w",
    r"\W",
    r"\s",
    r"\S",
    r"[\d_]",
    r"[\D]",
    r"[^\D]",
    r"[^\W\d]",
    r"[\s\S]",
    r"[^\s,]",
    r"[^\S\n]",
    r"[\w\-.]",
    r"(?a:\d)\d",
    r"(?a)\w",
    r"(?a)\W",
    r"(?a)\s",
    r"(?a)\S",
    r"(?a:[^\d])",
    r"(?a)(?u:\w)\w",
    "(?i)abc",
    "(?i)k",
    "(?i)[k-m]",
    "(?i)[^k]",
    "(?i)é",
    "(?i)ß",
    "(?i)s",
    "(?i)[^s]x",
    r"(?i)\w",
    "(?i:a)b",
    "(?i)a(?-i:b)",
    "(?i)µ",
    "(?i)[α-ω]",
    "(?i)𐐀",
    "(?x) a b # c",
    "(?x)\n a [ b] \\  # x\n c",
    "a(?x: b c )d",
    "(?s-i:a.)",
    "(?#note)a",
    "(?P<year>\\d{4})-(?P<month>\\d\\d)",
    "(a)(b)?",
    "^abc$",
    "\\Aabc\\Z",
    "^(?:a|b)$",
    "(?:^a|^b)c",
    "a(?:b$|c$)",
    "(^a$)",
    "^^a$$",
    "(?m)^a$",
    "(?m:^a$)",
    "^$",
    "^",
    "é+",
    "[à-ü]",
    "你好?",
    "[一-鿿]{2}",
    "🙂",
    "[🙂-🙃]x",
    "[^🙂]",
    r"\U0001F642|\u00e9|\xe9|\N{SNOWMAN}",
    r"\101\060\0",
    r"\t\n\r\f\v\a",
    r"\\\.\*\+\?\[\]\(\)\{\}\|\^\$\/\-\#\&\~",
    "/\"'`\\/",
    "a/b",
    "\n",
    "\t ",
    "\x00",
    "[\ud7ff-\ue000]",
    "[\\ud700-\\ue100]",
    r"https?://[\w.-]+(?:/[\w/.-]*)?",
    r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?",
    r"(?:[01]?\d|2[0-3]):[0-5]\d",
    '"(?:[^"\\\\]|\\\\.)*"',
]
POOL = "aabbcdkKsSx\u212a\u017f \n\r\t\v\f\x00\x1c\x1f\x85\xa0éÉßẞµμΩωΣς²٣Ⅷⅷ_-]^[&|~+,.:09{}"
POOL += "🙂🙃\u2028𝔸𝟘𐐀𐐨你İ\ud7ff\ue000😀\U0010ffff\ufeff\u200b\u00ad:alph"


drawn = partial(examples, suppress_health_check=list(HealthCheck))


@cache
def matcher(pattern: str) -> ByteMatcher:
    made = ByteMatcher("regex", pattern)
    assert not made.error, made.error
    return made


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern)


def is_known(text: str, pattern: str) -> bool:
    """Characters of both Unicode versions; with (?i), without those that docs tell apart."""
    if "i" in pattern and any(char in "İı" for char in text):
        return False
    return not any(unicodedata.category(char) in ("Cn", "Cs") for char in text)


def assert_alike(pattern: str, text: str) -> None:
    expected = compiled(pattern).fullmatch(text) is not None
    assert matcher(pattern).accepts(text) == expected, (pattern, text)


@st.composite
def near(draw: st.DrawFn, pattern: str) -> str:
    """A text that matches, or nearly does."""
    text = list(draw(st.from_regex(compiled(pattern), fullmatch=True)))[:24]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        how = draw(st.sampled_from(["insert", "drop", "replace", "case", "twice"]))
        other = draw(st.sampled_from(POOL))
        if how == "insert":
            text.insert(at, other)
        elif at < len(text):
            same = text[at]
            new = {"drop": "", "replace": other, "case": same.swapcase(), "twice": same * 2}
            text[at : at + 1] = new[how]
    return "".join(text)


@pytest.mark.sweep
@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_construct_matches_what_re_matches(pattern: str) -> None:
    for char in ["", *dict.fromkeys(POOL)]:
        if is_known(char, pattern):
            assert_alike(pattern, char)

    @drawn(30)
    @given(near(pattern))
    def check(text: str) -> None:
        if is_known(text, pattern):
            assert_alike(pattern, text)

    if pattern not in ("(?m)^a$",):
        check()


ATOMS = [
    *["a", "b", "k", "é", "ß", "🙂", "𐐀", "[ab]", "[^a]", "[^é🙂]", ".", "(?s:.)", r"\n"],
    *[r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"[^\W\d_]", r"[\w-]", r"[^\s]", "[]a]", "[^]]"],
    *["(?i:K)", "(?i:[a-c])", "(?a:\\w)", "(?x: a )", "[+--]", "[a&&b]", "", "(?i:[^é])"],
]


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeats = ["*", "+", "?", "*?", "+?", "??", "{2}", "{,2}", "{1,}", "{0,2}?", "{0}", "{1}"]
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(repeats)),
        st.builds("(?i:{})".format, inner),
        st.builds("(?a:{})".format, inner),
        st.builds("^{}$".format, inner),
        st.builds("({})".format, inner),
        st.builds("(?s-i:{})".format, inner),
    )


patterns_ = st.recursive(st.sampled_from(ATOMS), _composed, max_leaves=6)


def refusal(pattern: str, **options: bool) -> str:
    try:
        translate(pattern, **options)
    except PatternError as error:
        return error.reason
    return ""


@drawn(250)
@given(st.data(), patterns_)
def test_random_patterns_match_what_re_matches(data: st.DataObject, pattern: str) -> None:
    reason = refusal(pattern)
    if reason:
        assert "anchor" in reason or "in ASCII alone" in reason, pattern
        return
    for _ in range(4):
        text = data.draw(near(pattern))
        if is_known(text, pattern):
            assert_alike(pattern, text)
    text = data.draw(st.text(POOL, max_size=5))
    if is_known(text, pattern):
        assert_alike(pattern, text)


def test_every_known_character_is_in_the_same_classes() -> None:
    """Where the two know it: the library's Unicode is newer."""
    every = [chr(i) for i in range(0x11_0000) if not 0xD800 <= i < 0xE000]
    known = "".join(char for char in every if unicodedata.category(char) != "Cn")[::7]
    for pattern in (r"\d*", r"\s*", r"\w*", r"\D*", r"\S*", r"\W*"):
        matching = "".join(compiled(pattern[:2]).findall(known))
        for at in range(0, len(matching), 4000):
            part = matching[at : at + 4000]
            assert matcher(pattern).accepts(part), pattern


REFUSED = [
    ("a(?=b)", "looks ahead or behind"),
    ("(?!a)b", "looks ahead or behind"),
    ("(?<=a)b", "looks ahead or behind"),
    ("(?<!a)b", "looks ahead or behind"),
    (r"(a)\1", "refers back to a group"),
    (r"(?P<x>a)(?P=x)", "refers back to a group"),
    (r"(a)?(?(1)b|c)", "refers back to a group"),
    ("(?>a*)b", "atomic group"),
    ("a++b", "possessive repeat"),
    ("a{1,2}+b", "possessive repeat"),
    (r"a\bb", "word boundary"),
    (r"\Ba", "word boundary"),
    ("a^b", "anchor"),
    ("a$b", "anchor"),
    ("a^|b", "anchor"),
    ("(?:a$)b", "anchor"),
    ("a(?:^b)?", "anchor"),
    ("(?:^a)+", "anchor"),
    ("(?m)a$\nb", "anchor"),
    ("(a", "is invalid: missing"),
    ("[b-a]", "is invalid: bad character range"),
    ("*a", "is invalid: nothing to repeat"),
    (r"\p{L}", "is invalid: bad escape"),
    ("a{3,2}", "is invalid: min repeat greater"),
    ("(?P<1>a)", "is invalid: bad character in group name"),
    (f"a{{{10**30}}}", "is invalid"),
    ("a{0,20000}", "repeats over 10000 times"),
    ("\\ud800", "half a surrogate pair"),
    ("(?:" * 3000 + "a" + ")" * 3000, "nested too deeply"),
    ("(?:" * 7 + "a" + "+)" * 7 + "+", "repeats in repeats over 6 deep"),
    ("a?" * 600, "over 500 repeats"),
    (r"\w" * 2500, "over 200 classes"),
    ("(?i)" + r"[\w.]" * 30, "over 200 classes"),
    ("(?L)a", "is invalid"),
    ("(?ai)k", "folds case in ASCII alone"),
    ("(?i:(?a:[a-z]))", "folds case in ASCII alone"),
]


@pytest.mark.parametrize(("pattern", "reason"), REFUSED)
def test_what_is_refused_is_named(pattern: str, reason: str) -> None:
    with cpu_below(1), pytest.raises(PatternError, match=re.escape(reason)) as caught:
        translate(pattern)
    assert caught.value.hint


@pytest.mark.parametrize("pattern", ["^a", "a$", r"\Aa\Z", "(?:^a|b)", "a(?:b|c$)", "(^)a($)"])
def test_anchors_at_the_ends_say_nothing_of_a_whole_text_alone(pattern: str) -> None:
    assert translate(pattern)
    with pytest.raises(PatternError, match="anchor"):
        translate(pattern, is_whole=False)


@pytest.mark.parametrize(
    ("pattern", "shortest"),
    [("", 0), ("abc", 3), ("a*", 0), ("a{3,}|bb", 2), ("(ab)+c?", 2), (r"\d{4}-\d\d", 7)],
)
def test_the_shortest_match(pattern: str, shortest: int) -> None:
    assert translate(pattern).shortest == shortest


@drawn(60)
@given(st.text(POOL, max_size=8), st.text(POOL, max_size=2))
@example("a/b\n\\", "")
def test_a_literal_matches_itself_alone(text: str, more: str) -> None:
    made = ByteMatcher("regex", "a*", prefix=text) if text else matcher("a*")
    assert made.accepts(text + "aa")
    assert made.accepts(text + more) == (set(more) <= {"a"})
    assert isinstance(literal(text), str)


SEARCHED = ["a", "^a", "a$", "^a$", "a|^b", "^a|b$", "", "^$", r"\d+", "[^a]", "(^a|b)", "^a|^b$"]


@pytest.mark.parametrize("pattern", SEARCHED)
def test_search_matches_texts_in_which_re_finds_something(pattern: str) -> None:
    if pattern in ("(^a|b)", "^a|^b$"):  # `re` reads the latter as ^(?:a|b$)
        with pytest.raises(PatternError, match="anchor"):
            search(pattern)
        return
    written = search(pattern)
    made = ByteMatcher("json_schema", json.dumps({"type": "string", "pattern": pattern}))
    assert written.startswith("^")
    for text in ["", "a", "b", "ab", "ba", "xax", "bxa", "axb", "1", "a1é", "xb", "bb", "🙂"]:
        expected = re.search(pattern, text) is not None
        assert made.accepts(json.dumps(text, ensure_ascii=False)) == expected, text


@drawn(100)
@given(st.data(), patterns_.filter(lambda p: "^" not in p.replace("[^", "") and "$" not in p))
def test_reversed_patterns_match_reversed_texts(data: st.DataObject, pattern: str) -> None:
    if refusal(pattern, is_reversed=True):
        return
    written = translate(pattern, is_reversed=True).translated
    grammar = LLMatcher.grammar_from_regex(written)
    start = LLMatcher(_byte_tokenizer(), grammar, log_level=0)
    text = data.draw(near(pattern))
    if not is_known(text, pattern):
        return
    ids = list(text[::-1].encode())
    is_match = start.validate_tokens(ids) == len(ids)
    is_match = is_match and start.consume_tokens(ids) and start.is_accepting()
    assert bool(is_match) == (compiled(pattern).fullmatch(text) is not None)


def test_the_limits_are_in_time() -> None:
    """The largest patterns that are taken are compiled soon."""
    with cpu_below(5):
        for pattern in ("a?" * 499, r"\w" * 199, "(?:(?:(?:a*b)*c)*d)*", "[^a]{0,9999}"):
            ByteMatcher("regex", pattern)
    assert python_regex.MAX_OPTIONAL == 500
