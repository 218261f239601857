"""Loops over iterators of Python's own that look at items: as many turns are not the same place."""

from __future__ import annotations

import itertools
from itertools import compress, dropwhile, filterfalse, groupby

import pytest

import sgc
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend

WORDS = ("", "no", "yes", "x")


@sgc.function
def grouped(s, q: str):
    xs = [q, s_of(s, "a"), s_of(s, "b")]
    for size, words in groupby(xs, len):
        s += f"{size}:" + "-".join(words)
    s += "." + sgc.gen("last")


@sgc.function
def grouped_in_turn(s, q: str):
    xs = [q, s_of(s, "a"), s_of(s, "b")]
    for n, (word, words) in enumerate(groupby(xs)):
        s += f"{n}{word}"
        for each in words:
            s += "," + each
    s += "." + sgc.gen("last")


@sgc.function
def kept(s, q: str):
    for word in filter(None, [q, s_of(s, "a"), s_of(s, "b")]):
        s += "," + word
    s += "." + sgc.gen("last")


@sgc.function
def left_out(s, q: str):
    for word in filterfalse(None, [q, s_of(s, "a"), s_of(s, "b")]):
        s += ",e" + word
    s += "." + sgc.gen("last")


@sgc.function
def dropped(s, q: str):
    for n, word in enumerate(dropwhile(bool, [q, s_of(s, "a"), s_of(s, "b"), "z"])):
        s += f",{n}" + word
    s += "." + sgc.gen("last")


@sgc.function
def chosen(s, q: str):
    for word, n in zip(compress("abc", [q, s_of(s, "a"), s_of(s, "b")]), itertools.count()):
        s += f",{n}" + word
    s += "." + sgc.gen("last")


def s_of(s, name):
    s += "?" + sgc.gen(name)
    return s[name]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "function", [grouped, grouped_in_turn, kept, left_out, dropped, chosen],
    ids=lambda function: function.name,
)  # fmt: skip
def test_compiled_is_as_interpreted(function) -> None:
    graph = function.compile(check=False)
    for q, a, b in itertools.product(WORDS, repeat=3):
        texts = []
        for run in (function.run, graph.run):
            replies = iter([a, b, "end"])
            backend = ScriptedBackend(lambda prompt, sampling, replies=replies: next(replies))
            texts.append(run(q, backend=Endpoint(backend)).text())
        assert texts[0] == texts[1], (q, a, b)
