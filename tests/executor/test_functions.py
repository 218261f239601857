"""Each function of the table against Python itself, and what happens where one fails."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples

from sgc.errors import ProgramError, UsageError
from sgc.ir.functions import FUNCTION_TABLE, FUNCTIONS
from sgc.runtime.executor.interface.value_limits import MAX_DIGITS, MAX_TEXT, LimitExceeded
from sgc.runtime.executor.ops.functions import EVALUATORS, EXCEPTIONS, evaluate, failure
from sgc.runtime.executor.patterns.linear_regex import linear_pattern, shape_of
from sgc.runtime.executor.patterns.regex_classes import UnsupportedPattern

CHARACTERS = "aAbBcß İıſKé\u0301\u212a1٣²½\n\t\r\x0b\x1c\u2028,.-_'\"\\{}😀\ud800日"
texts = st.text(st.sampled_from(CHARACTERS), max_size=12)
ints = st.one_of(st.integers(-20, 20), st.integers())
floats = st.floats()
numbers = st.one_of(ints, floats, st.booleans())
spans = st.one_of(st.none(), st.integers(-8, 8))
data = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), floats, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
lists = st.lists(texts, max_size=4)

METHODS = ("capitalize", "casefold", "lower", "swapcase", "title", "upper")
TESTS = tuple(name for name in dir(str) if name.startswith("is"))
FINDS = ("count", "find", "index", "rfind", "rindex")

# What each function is in Python, and what it is tried with.
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    **{name: (getattr(str, name), (texts,)) for name in (*METHODS, *TESTS)},
    **{name: (getattr(str, name), (texts, texts)) for name in ("strip", "lstrip", "rstrip")},
    **{name: (getattr(str, name), (texts, texts, spans, spans)) for name in FINDS},
    **{
        name: (getattr(str, name), (texts, texts, spans, spans))
        for name in ("startswith", "endswith")
    },
    **{
        name: (getattr(str, name), (texts, st.one_of(st.none(), texts), st.integers(-2, 3)))
        for name in ("split", "rsplit")
    },
    **{name: (getattr(str, name), (texts, texts)) for name in ("removeprefix", "removesuffix")},
    **{
        name: (getattr(str, name), (texts, st.integers(-2, 30), st.sampled_from("x ß😀")))
        for name in ("center", "ljust", "rjust")
    },
    "zfill": (str.zfill, (texts, st.integers(-2, 30))),
    "expandtabs": (str.expandtabs, (texts, st.integers(-2, 9))),
    "splitlines": (str.splitlines, (texts, st.booleans())),
    "replace": (str.replace, (texts, texts, texts, st.integers(-2, 4))),
    "partition": (lambda a, b, i: a.partition(b)[i], (texts, texts, st.integers(0, 2))),
    "rpartition": (lambda a, b, i: a.rpartition(b)[i], (texts, texts, st.integers(0, 2))),
    "in": (lambda a, b: a in b, (texts, texts)),
    "join": (str.join, (texts, lists)),
    "repeat": (lambda a, n: a * n, (texts, st.integers(-2, 5))),
    "ord": (ord, (texts,)),
    "chr": (chr, (st.integers(-5, 0x110005),)),
    "str": (str, (data,)),
    "repr": (repr, (data,)),
    "format": (format, (numbers, st.sampled_from(["", "d", ".2f", ">8", "x", "s", "e", ",",
    "08"]))),
    "lt": (lambda a, b: a < b, (numbers, numbers)),
    "le": (lambda a, b: a <= b, (texts, texts)),
    "gt": (lambda a, b: a > b, (numbers, numbers)),
    "ge": (lambda a, b: a >= b, (texts, texts)),
    "add": (lambda a, b: a + b, (numbers, numbers)),
    "sub": (lambda a, b: a - b, (numbers, numbers)),
    "mul": (lambda a, b: a * b, (numbers, numbers)),
    "truediv": (lambda a, b: a / b, (numbers, numbers)),
    "floordiv": (lambda a, b: a // b, (numbers, numbers)),
    "mod": (lambda a, b: a % b, (numbers, numbers)),
    "divmod": (lambda a, b, i: divmod(a, b)[i], (numbers, numbers, st.integers(0, 1))),
    "pow": (lambda a, b: a**b, (st.one_of(st.integers(-9, 9), floats), st.integers(-20, 20))),
    "bit_and": (lambda a, b: a & b, (ints, ints)),
    "bit_or": (lambda a, b: a | b, (ints, ints)),
    "bit_xor": (lambda a, b: a ^ b, (ints, ints)),
    "lshift": (lambda a, b: a << b, (ints, st.integers(-3, 90))),
    "rshift": (lambda a, b: a >> b, (ints, st.integers(-3, 90))),
    "invert": (lambda a: ~a, (ints,)),
    "neg": (lambda a: -a, (numbers,)),
    "pos": (lambda a: +a, (numbers,)),
    "abs": (abs, (numbers,)),
    "round": (round, (numbers, st.integers(-3, 3))),
    "floor": (math.floor, (numbers,)),
    "ceil": (math.ceil, (numbers,)),
    "min": (min, (numbers, numbers, numbers)),
    "max": (max, (texts, texts)),
    "int": (int, (st.one_of(st.from_regex(r"\s*[-+]?[0-9_٣]*\s*\Z"), texts, floats, data),)),
    "float": (float, (st.one_of(st.from_regex(r"\s*[-+]?[0-9]*\.?[0-9]*e?[0-9]?\s*\Z"), data),)),
    "eq": (lambda a, b: a == b, (data, data)),
    "ne": (lambda a, b: a != b, (data, data)),
    "not": (lambda a: not a, (st.booleans(),)),
    "truth": (bool, (data,)),
    "len": (len, (data,)),
    "item": (lambda a, b: a[b], (data, st.one_of(st.integers(-4, 4), texts))),
    "slice": (lambda a, b, c, d: a[b:c:d], (st.one_of(texts, data), spans, spans, spans)),
    "has": (lambda a, b: b in a, (data, texts)),
    "get": (lambda a, b, c: a.get(b, c), (data, texts, texts)),
    "keys": (lambda a: list(a.keys()), (data,)),
    "values": (lambda a: list(a.values()), (data,)),
    "is_a": (
        lambda a, b: isinstance(a, {"dict": dict, "int": int, "str": str, "bool": bool}[b]),
        (data, st.sampled_from(["dict", "int", "str", "bool"])),
    ),
    "concat": (lambda a, b: a + b, (texts, st.one_of(texts, data))),
    "json_loads": (json.loads, (st.one_of(texts, data.map(json.dumps), st.just("1" * 5000)),)),
    "json_dumps": (
        lambda a, b, c, d, e, f: json.dumps(
            a, indent=b, ensure_ascii=c, sort_keys=d, separators=(e, f)
        ),
        (
            data, st.sampled_from([None, 0, 2, "\t"]), st.booleans(), st.booleans(),
            st.sampled_from([",", ", "]), st.sampled_from([":", ": "]),
        ),
    ),
    "re_escape": (re.escape, (texts,)),
}  # fmt: skip


def _after(method: str) -> Any:
    """What a list is after a method of it."""

    def changed(items: list[Any], *args: Any) -> list[Any]:
        made = [*items]
        getattr(made, method)(*args)
        return made

    return changed


places = st.integers(-5, 5)
names = st.sampled_from(["a", "a1", ""])
some = st.lists(data, max_size=4)
CASES |= {
    "plus": (lambda a, b: a + b, (some, some)),
    "times": (lambda a, b: a * b, (some, st.integers(-1, 3))),
    "push": (_after("append"), (some, data)),
    "insert": (_after("insert"), (some, places, data)),
    "put": (_after("__setitem__"), (some, places, data)),
    "without": (_after("pop"), (some, places)),
    "named": (lambda pairs, name: dict(pairs)[name], (st.lists(st.tuples(names, data)), names)),
    "removed": (_after("remove"), (some, data)),
    "sorted": (lambda a, b: sorted(a, reverse=b), (some, st.booleans())),
    "n_of": (list.count, (some, data)),
    "where": (list.index, (some, data)),
    "sum": (sum, (st.lists(st.one_of(numbers, texts), max_size=4), numbers)),
    "smallest": (min, (some,)),
    "largest": (max, (some,)),
    "any": (any, (some,)),
    "all": (all, (some,)),
}

# Tested below by themselves.
OTHERS = {
    "as", "raises", "re_end", "re_findall", "re_fullmatch", "re_group", "re_match", "re_search",
    "re_split", "re_start", "re_sub", "re_took_part", "unpack",
}  # fmt: skip


def test_every_function_is_here_and_is_evaluated():
    assert set(CASES) | OTHERS == set(FUNCTIONS) == set(EVALUATORS)
    assert {name for row in FUNCTION_TABLE for name in row.errors} <= set(EXCEPTIONS)
    assert len({row.name for row in FUNCTION_TABLE}) == len(FUNCTION_TABLE)


def _same(ours: Any, theirs: Any) -> bool:
    """Equal and of one type, nan and -0.0 as they are printed."""
    return type(ours) is type(theirs) and repr(ours) == repr(theirs)


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_functions_are_pythons(name):
    python, strategies = CASES[name]

    @settings(max_examples=60, deadline=None, derandomize=True)  # fewer miss signs and widths
    @given(st.tuples(*strategies))
    def check(args):
        try:
            expected: Any = python(*args)
        except Exception as error:
            expected = error
        if isinstance(expected, Exception) and type(expected).__name__ in FUNCTIONS[name].errors:
            found = failure(name, *args)
            assert type(found) is type(expected)
            assert str(found) == str(expected)
            assert evaluate("raises", type(expected).__name__, name, *args) is True
        elif isinstance(expected, (OverflowError, RecursionError)):
            with pytest.raises(LimitExceeded):
                evaluate(name, *args)
        elif isinstance(expected, Exception):
            with pytest.raises(type(expected)):
                evaluate(name, *args)
        elif not isinstance(expected, complex):
            assert _same(evaluate(name, *args), expected)

    check()


def test_what_would_be_too_large_is_an_error_and_is_never_made():
    big = 10 ** (MAX_DIGITS - 1)
    for name, args in {
        "repeat": ("ab", MAX_TEXT), "ljust": ("", MAX_TEXT + 1), "zfill": ("", 10**15),
        "replace": ("a" * 10_000, "", "b" * 10_000), "expandtabs": ("\t" * 100, 10**9),
        "pow": (10, 10**12), "lshift": (1, 10**12), "mul": (big, big), "round": (5, -(10**9)),
        "format": (1, "99999999999d"), "add": (big, 1.0), "truediv": (big, 3),
    }.items():  # fmt: skip
        with pytest.raises(LimitExceeded):
            evaluate(name, *args)
    with pytest.raises(LimitExceeded, match="complex"):
        evaluate("pow", -8, 0.5)
    with pytest.raises(LimitExceeded, match="nested"):
        evaluate("json_loads", "[" * 600 + "]" * 600)
    assert len(evaluate("str", big)) == MAX_DIGITS
    assert math.isinf(evaluate("float", "1e999"))


def test_as_and_unpack():
    assert evaluate("as", "x", "str", "strip") == "x"
    error = failure("as", 5, "str", "strip")
    assert isinstance(error, AttributeError)
    assert str(error) == "'int' object has no attribute 'strip'"
    for n, message in ((1, "too many values to unpack (expected 1)"), (3, "not enough values")):
        assert str(failure("unpack", ["a", "b"], n)).startswith(message)
    assert evaluate("unpack", ["a", "b"], 2) == ["a", "b"]
    with pytest.raises(ProgramError, match="no function"):
        evaluate("raises", "ValueError", "nothing")


# -- patterns ----------------------------------------------------------------------------------

PATTERNS = (
    r"a", r"[ab]+", r"(a)|(b)", r"(a)?b", r"\w+", r"\W", r"\d+", r"\s", r".", r"^a", r"a$", r"$",
    r"\bab\b", r"\Aa", r"a\Z", r"(?i)k", r"(?i)ß", r"(?i)[a-k]+", r"(?i)ſ", r"(?m)^.$", r"(?s)a.b",
    r"(?:a|ab)(?:c|bcd)?", r"(a+?)(b*)", r"(?P<x>a)(?P<y>,?)", r"a{2,3}?", r"[^\W\d]+", r"[\s,]+",
    r"(?a)\w+", r"(?a)\d", r"(?i:A)b", r"(?:(a)|b)+", r"é|日|😀", r"", r"a|", r"(?x) a # all",
    r"(?<=[,.])\s+", r"(?<!\w)(a+)(?!b)", r"a\B", r"(?:(?<=a)b|(?=b).)+", r"(?m)(?<=^a)[^\n](?=$)",
    r"(?=a|b{2})\b\w+", r"(?i)(?<!ß)k(?=\s|,)",
    r"a*", r"[a-b]*", r"(a*)(b?)", r"\b", r"(?:,|b*)", r"(?:b*|,)", r"a?", r"(?=a)", r"a*?",
    r"(a|b)*", r"(?m)^", r"\s*$", r"(?:a*|)", r"(?:a+)?b*", r"(?<=a)b*", r"a*\b", r"(?:|a)",
    r"(?:(?:ab)*a?)",
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_as_pythons_do(pattern):
    compiled = re.compile(pattern)
    linear = linear_pattern(pattern, compiled.flags)
    shape = shape_of(pattern, compiled.flags)

    @examples(150)
    @given(texts)
    def check(text):
        for way in ("search", "match", "fullmatch"):
            theirs = getattr(compiled, way)(text)
            spans = [] if theirs is None else [theirs.span(i) for i in range(compiled.groups + 1)]
            expected = [None if span == (-1, -1) else span for span in spans]
            assert (getattr(linear, way)(text) or []) == expected
            assert theirs is None or all(expected[group] for group in shape.sure)
        args = (pattern, compiled.flags, text)
        if shape.skips_none:
            if compiled.groups < 2:
                assert evaluate("re_findall", *args) == compiled.findall(text)
            if not compiled.groups:
                assert evaluate("re_split", *args, 2) == compiled.split(text, 2)
            template = r"<\g<0>\\\n>"
            assert evaluate("re_sub", *args, template, 0) == compiled.sub(template, text)

    check()


def test_parts_of_a_match():
    spans = evaluate("re_search", "(b)|(c)", 0, "abc")
    assert spans == [[1, 2], [1, 2], None]
    assert [evaluate("re_took_part", spans, n) for n in (0, 1, 2)] == [True, True, False]
    assert evaluate("re_group", spans, 1, "abc") == "b"
    assert (evaluate("re_start", spans, 0), evaluate("re_end", spans, 0)) == (1, 2)
    assert evaluate("re_fullmatch", "a", 0, "ab") == []


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(a)\1", "reference"), (r"a(?=b+)", "look"), (r"(?!(a))b", "look"),
        (r"(?>a+)b", "atomic"),
        (r"a++b", "possessive"), (r"(a*)*", "may be empty"), (r"(a|)+", "may be empty"),
        (r"(?=a)(?=b)" * 4, "more than 6"), (r"a{2000}", "more than 1000"),
        (r"(a)?(?(1)b|c)", "condition"),
        (r"(?m:^a)", "MULTILINE"), (r"(?a:\w)", "ASCII"),
    ],
)  # fmt: skip
def test_patterns_that_are_refused(pattern, words):
    with pytest.raises(UnsupportedPattern, match=words) as caught:
        shape_of(pattern)
    assert caught.value.hint
    assert isinstance(caught.value, UsageError)


@pytest.mark.slow
def test_a_pattern_that_would_take_exponential_time_takes_none():
    assert linear_pattern(r"(?:a|a)+b").search("a" * 100_000) is None
    assert linear_pattern(r"(?:a|a)+(?<=b)").search("a" * 100_000) is None
    with pytest.raises(LimitExceeded):
        evaluate("re_findall", "a(?:.*b)?", 0, "a" * 200_000)


def test_templates():
    for template in (r"\g<name>", r"\2", r"\x", r"\012", "\\"):
        with pytest.raises(UnsupportedPattern):
            evaluate("re_sub", "(a)", 0, "a", template, 0)
    assert evaluate("re_sub", "(?P<n>a)|(b)", 0, "ab", r"[\g<n>\2]", 0) == "[a][b]"
