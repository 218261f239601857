"""Rows known only at run time that are put into lists of a dict, which others go on to have too.
Nothing here relies on the trace check."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest
from control_flow import agree, agree_or_refuse

import sgc
from sgc.errors import TraceError
from sgc.programs.program import Program
from sgc.runtime.executor.code.mutation import mutated
from sgc.tracing.tracer import trace

REPLIES = (
    "[]", '[{"n": "a", "k": 3}, {"n": "b", "k": 1}, {"n": "a", "k": 0}]', '[{"n": "a", "k": 3}]',
    '[{"k": 7}]', "b",
)  # fmt: skip


@sgc.function
def label(s, text: str):
    s += text + sgc.gen("t", max_tokens=4)
    return {"topic": s["t"].strip() or "other", "text": text}


def _rows(s: Any) -> Any:
    s += sgc.gen("a", max_tokens=50)
    return json.loads(s["a"])


def in_a_defaultdict(s: Any, xs: list[str]) -> Any:
    rows, groups = _rows(s), defaultdict(list)
    for row in rows:
        groups[row["n"]].append(row)
    return {k: len(v) for k, v in groups.items()}, dict(groups), rows


def by_setdefault(s: Any, xs: list[str]) -> Any:
    groups: dict[str, Any] = {}
    for row in _rows(s):
        groups.setdefault(row["n"], []).append(row)
    return groups


def of_a_map(s: Any, xs: list[str]) -> Any:
    groups: dict[str, Any] = {}
    for row in sgc.map(label, xs).returns:
        groups.setdefault(row["topic"], []).append(row)
    order = sorted(groups, key=lambda topic: (-len(groups[topic]), topic))
    return [(topic, [row["text"] for row in groups[topic]]) for topic in order]


def of_calls(s: Any, xs: list[str]) -> Any:
    groups = defaultdict(list)
    for row in [label(x).ret_value for x in xs]:
        groups[row["topic"]].append(row)
    return dict(groups)


@pytest.mark.parametrize("of", [in_a_defaultdict, by_setdefault, of_a_map, of_calls])
def test_rows_are_grouped_as_in_python(of: Any) -> None:
    program = sgc.function(of)
    graph = trace(program, is_full=True)
    for xs in (["a", "bb", "c"], ["bb"]):
        agree(program, (*REPLIES, "x", "y"), n=16, graph=graph, xs=xs)


def a_row_is_changed(s: Any, xs: list[str]) -> Any:
    rows, groups = _rows(s), defaultdict(list)
    for row in rows:
        groups[row["n"]].append(row)
    for row in groups["a"]:
        row["k"] += 1
    return dict(groups), rows


def a_row_is_changed_elsewhere(s: Any, xs: list[str]) -> Any:
    rows, groups = _rows(s), defaultdict(list)
    for row in rows:
        groups[row["n"]].append(row)
    rows[0]["k"] = "new"
    return dict(groups), rows


def a_group_has_two_names(s: Any, xs: list[str]) -> Any:
    groups: dict[str, Any] = {}
    first: list[Any] = []
    for row in _rows(s):
        groups.setdefault(row["n"], first).append(row)
    return groups, first


def a_group_is_kept(s: Any, xs: list[str]) -> Any:
    groups: dict[str, Any] = {}
    kept = []
    for row in _rows(s):
        groups.setdefault(row["n"], []).append(row)
        kept.append(groups[row["n"]])
    return groups, kept


def a_group_is_held_while_another_is_added(s: Any, xs: list[str]) -> Any:
    s += sgc.gen("a", max_tokens=50)
    groups: dict[str, Any] = {}
    for word in s["a"].split():
        groups.setdefault(word[:1], []).append(word)
    first = groups.get("b", ["none"])
    groups["new"] = ["1"]
    for key in sorted(groups):
        groups[key].append("last")
    s += f"{first}"
    return groups, first


OTHERS = [
    a_row_is_changed, a_row_is_changed_elsewhere, a_group_has_two_names, a_group_is_kept,
    a_group_is_held_while_another_is_added,
]  # fmt: skip


@pytest.mark.parametrize("of", OTHERS)
def test_what_others_have_too_changes_as_in_python(of: Any) -> None:
    program = sgc.function(of)
    try:
        compiled = Program(trace(program, is_full=True))
    except TraceError:
        return
    agree_or_refuse(program, compiled, REPLIES, 12, xs=[])


@sgc.function
def labelled_by_a_variable(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=50)
    rows = [{"w": word} for word in s["a"].split()]
    for row in rows:
        s += row["w"] + sgc.gen("label", max_tokens=4)
        row["label"] = s["label"]
    return rows


@sgc.function
def labelled_by_number(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=50)
    rows = [{"w": word} for word in s["a"].split()]
    for i in range(len(rows)):
        s += rows[i]["w"] + sgc.gen("label", max_tokens=4)
        rows[i]["label"] = s["label"]
    return rows


def test_rows_are_changed_by_their_list() -> None:
    with pytest.raises(TraceError, match="value out of JSON, is changed") as caught:
        trace(labelled_by_a_variable, is_full=True)
    assert 'for i in range(len(xs)): xs[i]["k"] = v' in caught.value.hint
    agree(labelled_by_number, ("a b", "", "c", "b"), n=8, q="x")


# The ways to what code mutates of `xs`; None: it may be anything.
WAYS = {
    "xs.append(y)": [()], "xs[y].append(y)": [(None,)], "xs[y][0] = y": [(None,)],
    "xs.setdefault(y, []).append(y)": [(), (None,)], "xs.setdefault(y, y).append(y)": None,
    "xs.setdefault(y, [])": [()], "xs[y] += y": [(), (None,)], "del xs[y][0]": [(None,)],
    "xs[y][0].append(y)": [(None, None)], "xs.get(y).append(y)": None, "xs[1:][0].clear()": None,
    "z = xs[y]; z.append(y)": None, "xs[y].z.append(y)": [(None, "z")], "xs.z[y] = y": [("z",)],
    "xs.z += y": [(), ("z",)], "setattr(xs, 'z', y)": None, "xs[0][0][0][0][0] = y": None,
    "y.append(xs)": [],
}  # fmt: skip


@pytest.mark.parametrize("statement", WAYS)
def test_the_ways_to_what_code_mutates(statement: str) -> None:
    code = f"def piece(xs, y):\n    {statement}\n    return xs"
    ways = WAYS[statement]
    assert mutated(code)[0] == (None if ways is None else frozenset(ways))
    of_class = "class A:\n    def __getitem__(self, k):\n        return self.a[k][0]\n" + code
    is_outer = ways is not None and not any(ways)
    assert mutated(of_class)[0] == (frozenset(ways or ()) if is_outer else None)
