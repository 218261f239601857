"""Loops over the matches of a pattern, and `re.sub` with functions of the program's."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from control_flow import agree_saved, equal_or_refused

import sgc

WORDS = re.compile(r"(?P<word>[a-z]+)(\d+)?")
LETTERS = re.compile(r"[a-z]+")
POOL = ("ab 12 cd ab", "", "12", "x", "a1b2c3", "ab ab ab", "é1 É2 c", "a\nb 7z", "de ez bc")


def asks_for_each(s, text):
    found = []
    for m in WORDS.finditer(text):
        s += m.group("word") + sgc.gen("z", max_tokens=2)
        found.append((m.start(), m[2]))
    return found


def counts(s, text):
    n = 0
    for m in re.finditer(r"\d", text):
        if m.group() == "1":
            n += 1
    return n


def keeps_the_last(s, text):
    m = None
    for m in re.finditer(r"[a-z]", text):
        s += "."
        if m.group() == "c":
            break
    return m.group() if m else "no"


def in_comprehensions(s, text):
    ends = {m[0]: m.end() for m in WORDS.finditer(text)}
    return [m.group(1) for m in WORDS.finditer(text)], ends


def numbered(s, text):
    for n, m in enumerate(re.finditer(r"\w+", text, re.ASCII), 1):
        s += f"{n}:{m[0]}" + sgc.gen("z", max_tokens=2)


TOKENS = re.compile(r"(?P<word>[a-c]+)|(\d)|(?:(?P<d>d)|(?P<e>e\s*(?P<f>z?)))+")


def tells_kinds(s, text):
    found = []
    for m in TOKENS.finditer(text):
        found.append((m.lastindex, m.lastgroup))
    return found


def tells_the_last(s, text):
    m, both = re.search(r"(?:a|(b))(c)?", text), re.match(r"((\w)\w)\W*(?:\w)?", text)
    return m and m.lastindex, both and (both.lastindex, both.lastgroup)


def changes_the_text(s, text):
    for m in re.finditer(r"[a-c]", text):
        text = text.replace(m[0], "ab")
        s += text
    return text


def listed(s, text):
    found = list(re.finditer(r"[a-c]", text))
    s += f"{len(found)}"
    return [m[0] for m in found]


def in_a_loop(s, text):
    out = []
    for line in text.split("\n"):
        for m in LETTERS.finditer(line):
            s += m[0]
            out.append(line[m.end() :])
    return out


def by_a_lambda(s, text):
    return LETTERS.sub(lambda m: m.group().upper(), text)


def helper(m):
    return "<" + m[0] + ">"


def by_a_helper(s, text):
    return re.sub(r"\w+", helper, text)


def by_a_closure(s, text):
    names = {}

    def put(m):
        word = m.group(0)
        if word not in names:
            names[word] = f"N{len(names)}"
        return names[word]

    out = LETTERS.sub(put, text)
    return out, names


class Masker:
    def __init__(self):
        self.table = {}

    def place(self, word):
        if word not in self.table:
            self.table[word] = f"<{len(self.table)}>"
        return self.table[word]

    def of_match(self, m):
        return self.place(m["word"])

    def masked(self, text):
        for kind, pattern in (("A", LETTERS), ("B", re.compile(r"\d+"))):
            text = pattern.sub(lambda m, kind=kind: self.place(kind + m.group()), text)
        return text


def by_a_method(s, text):
    masker = Masker()
    first = masker.masked(text)
    s += "x" + first
    again = WORDS.sub(masker.of_match, text)
    return first, masker.masked(text + "b"), again, masker.table


def with_a_count(s, text):
    n = 0

    def up(m):
        nonlocal n
        n += 1
        return m.group().upper()

    text = LETTERS.sub(up, text, count=2)
    text = re.sub("[a-z]", up, text, count=1)
    return n, text, LETTERS.sub("-", text)


def that_asks(s, text):
    def asked(m):
        nonlocal s
        s += m[0] + sgc.gen("z", max_tokens=3)
        return s["z"]

    return LETTERS.sub(asked, text)


def that_gives_no_text(s, text):
    seen = {}

    def number(m):
        word = m[0]
        seen[word] = len(seen)
        return None if word == "ab" else seen[word]

    return LETTERS.sub(number, text), seen


def by_a_text_or_a_function(s, text):
    names = {}

    def put(m):
        word = m[0]
        names[word] = 1
        return "!"

    by = "-"
    text = re.sub(r"[a-z]", by, text, count=1)
    by = put
    text = re.sub(r"[a-z]", by, text, flags=re.ASCII, count=1)
    return text, names


class Other:
    def sub(self, function, text):
        return function(text)


def of_another_class(s, text):
    n = 0

    def more(given):
        nonlocal n
        n += 1
        return given + "!"

    return Other().sub(more, text), Other().sub(lambda given: given * 2, text), n


def of_a_known_text(s, text):
    names = {}

    def put(m):
        names[m[0]] = text
        return m[0] + "."

    return re.sub("[a-z]", put, "abc"), sorted(names)


def program(body: Callable[..., Any]) -> Any:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        found = body(s, s["a"])
        s += f"{found}" + sgc.gen("b", max_tokens=3)
        return found

    return shown


def in_code(s, text):
    m = re.search(r"(?P<n>[0-9]+)([a-z])?", text)
    if m is None:
        return "none"
    half, last = str(Decimal(m["n"]) / 4), str(Fraction(m.group(1)) / 3)
    s += half + str(date.fromordinal(int(m[1]) + 1)) + sgc.gen("z", max_tokens=2)
    shown = [str(Decimal(m["n"])) for m in [{"n": "5"}, {"n": text}] if len(m["n"]) == 1]
    letter = str(Decimal(7)) if m[2] is None else str(Decimal(len(m[2] + text)))
    return half, last, shown, letter


EQUAL = (
    in_code,
    asks_for_each, counts, keeps_the_last, in_comprehensions, numbered, changes_the_text, listed,
    tells_kinds, tells_the_last,
    in_a_loop, by_a_lambda, by_a_helper, by_a_closure, by_a_method, with_a_count, that_asks,
    that_gives_no_text, by_a_text_or_a_function, of_another_class, of_a_known_text,
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_matches_are_pythons(body: Callable[..., Any]) -> None:
    agree_saved(program(body), POOL, n=12, q="x")


def of_the_empty_text(s, text):
    n = 0
    for m in re.finditer("a*", text):
        s += "." + m[0]
        n += 1
    return n


def after_a_call(s, text):
    names = {}

    def put(m):
        names[m[0]] = 1
        return "!"

    return len(names), names.copy(), LETTERS.sub(put, text)


def when_asked(s, text):
    names = {}

    def put(m):
        names[m[0]] = 1
        return "!"

    return text if "x" in text else LETTERS.sub(put, text)


@pytest.mark.parametrize("body", [of_the_empty_text, after_a_call, when_asked])
def test_what_is_no_loop_is_equal_or_refused(body: Callable[..., Any]) -> None:
    equal_or_refused(program(body), POOL)
