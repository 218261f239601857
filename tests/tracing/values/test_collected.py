"""Dicts and sets that are made of lists known only at run time, also by comprehensions that ask."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from control_flow import agree, traced
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace

REPLIES = ("a", "b", "a,b", "b,a,c", "", "yes")


@sgc.function
def ask(s, x: str):
    s += x + sgc.gen("y", max_tokens=4)
    return s["y"]


@sgc.function
def dict_of_pairs(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    d = dict((x, ask(x).ret_value) for x in s["a"].split(","))  # noqa: C402
    for k, v in d.items():
        s += f"{k}={v};"
    s += d.get("a", "none") + str(len(d))
    return d


@sgc.function
def dict_comprehension(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    d = {x: ask(x).ret_value for x in s["a"].split(",") if x != "c"}
    s += ", ".join(f"{k}: {v}" for k, v in d.items() if v)
    d["z"] = "1"
    best = max(d, key=d.get)
    s += best
    return d, d[best]


@sgc.function
def numbers_by_text(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    d = {x: len(ask(x).ret_value) for x in s["a"].split(",") if x}
    for k, n in sorted(d.items(), key=lambda kv: -kv[1]):
        s += f"{k} {n + 1}"
    return sum(d.values()), {n for n in d.values()}  # noqa: C416


@sgc.function
def set_comprehension(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    d = {ask(x).ret_value for x in s["a"].split(",")}
    s += str(sorted(d)) + str("a" in d)
    return len(d)


@sgc.function
def set_of_a_list(s, q: str):
    replies = []
    for _ in sgc.turns(5):
        s += q + sgc.gen("a", max_tokens=9)
        replies.append(s["a"])
        if len(set(replies)) < len(replies):
            break
    return sorted(frozenset(replies))


@sgc.function
def of_a_list_of_known_length(s, q: str):
    replies = [ask(x).ret_value for x in "abc"]
    d = dict(zip(replies, "xyz", strict=True))
    s += str(len(set(replies))) + str(d)
    return {*replies} if d.get("yes") == "x" else d


@sgc.function
def names_of_its_own(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    dict = {len(x): x for x in s["a"].split(",")}
    set = {ask(x).ret_value for x in dict.values()}
    if set - {"a"}:
        s += "more"
    return len(dict), set


PROGRAMS = [
    dict_of_pairs, dict_comprehension, numbers_by_text, set_comprehension, set_of_a_list,
    of_a_list_of_known_length, names_of_its_own,
]  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_they_are_the_same_compiled(program: Any) -> None:
    agree(program, REPLIES, n=10, q="x")


@pytest.mark.slow
@pytest.mark.full_check
def test_its_lists_are_shared_as_in_python():
    """A run refuses the change, so the check refuses to compile it."""

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        rows = [[x] for x in s["a"].split(",")]
        d = dict((row[0], row) for row in rows)  # noqa: C402
        rows[0].append("z")
        return d, rows

    with pytest.raises(TraceError, match="that another value holds too"):
        program.compile()


def test_keys_that_are_not_hashable_are_refused_too():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        return {(ask(x).ret_value, (1, [])) for x in (s["a"], q)}

    with pytest.raises(TraceError, match="a set with keys whose type is known only at run time"):
        trace(program, is_full=True)


@sgc.function
def by_keys_of_any_type(s, q: str, data: list):
    try:
        return {x: ask(q).ret_value for x in data}
    except TypeError as error:
        return str(error)


@sgc.function
def of_any_type(s, q: str, data: list):
    return len({x for x in data if len(ask(q).ret_value) > 1})


@pytest.mark.parametrize("data", one_in(3, [[1, "a", None, 1.0], ["a", [1], "b"], ["a", {}, "b"]]))
def test_keys_that_may_not_be_hashable_end_it_where_python_ends(data):
    for program in (by_keys_of_any_type, of_any_type):
        graph = traced(program)
        agree(program, REPLIES, n=4, graph=graph, q="x", data=data)


@sgc.function
def votes(s, q: str):
    forks = s.fork(3)
    for f in forks:
        f += q + sgc.select("vote", choices=["a", "b"])
    counts = Counter(f["vote"] for f in forks)
    names = [name for f, name in zip(forks, "xyz", strict=False) if f["vote"] != "a"]
    if counts["a"] * 2 > len(forks):
        s += "mostly a"
    return counts.most_common(1)[0], counts["c"], names


def test_votes_of_streams_are_counted_by_code():
    graph = agree(votes, REPLIES, q="x")
    assert len(graph.blocks) < 40


@sgc.function
def stripped(s, q: str, data: list):
    s += q + sgc.gen("a", max_tokens=4)
    found = []
    for each in data:
        clean = {"strip": str.strip, "upper": str.upper}["strip"]
        try:
            found.append(clean(each) + s["a"])
        except TypeError as error:
            found.append(str(error))
    return found, [*map(str.upper, data[:1])]


def test_methods_of_texts_take_texts_out_of_json():
    agree(stripped, REPLIES, n=4, q="x", data=[" a ", 1, None, ["x"], "b"])
