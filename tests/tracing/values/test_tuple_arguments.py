"""Arguments that are lists or dicts of tuples: examples, pairs, intervals."""

from __future__ import annotations

import json

import pytest
from control_flow import agree, replying, traced

import sgc
from sgc.core.shapes import of_annotation
from sgc.errors import ArgumentError
from sgc.programs.program import Program
from sgc.runtime.executor.interface.argument_shapes import misfit, shown, with_tuples

POOL = ("a", "b", "7")


@sgc.function
def shots(s, shots: list[tuple[str, int]], q: str):
    for n, (text, label) in enumerate(shots):
        s += f"{n}. {text}: {label + 1}\n"
    others = shots[1:]
    pairs = [pair for pair in others if pair[1] > 2]
    s += f"{shots} {len(others)} {pairs}" + q + sgc.gen("a", max_tokens=3)
    last = shots[-1] if shots else ("none", 0)
    best = max(shots, key=lambda pair: pair[1], default=None)
    known = dict(shots)
    s += f"{last[0]} {best} {known.get(s['a'], '?')} {sorted(shots)} {json.dumps(others)}"
    s += sgc.gen("b", max_tokens=3)
    return last, pairs, (s["a"], 1) in shots, isinstance(last, tuple), list(map(str, shots))


@sgc.function
def intervals(s, busy: dict[str, list[tuple[int, float]]], q: str):
    total = 0.0
    for name, each in busy.items():
        for start, end in each:
            total += end - start
            s += f"{name} {start}-{end}\n"
    chosen = busy if q == "x" else {"y": [(1, 2.0)]}
    s += sgc.gen("a", max_tokens=3) + q
    first = next(iter(chosen.values()), [])
    for start, end in first:
        s += f"{start} {end} {chosen}"
    return total, first, sorted(busy), busy.get("z")


SHOTS = ([("a", 1), ("b", 7), ("7", 3)], [("b", 2)], [])
BUSY = ({"x": [(1, 2.5), (3, 4)], "y": []}, {"z": [(0, 1.0)]}, {})


def test_lists_of_tuples():
    graph = traced(shots)
    for given in SHOTS:
        agree(shots, POOL, n=6, graph=graph, shots=given, q="x")


@pytest.mark.slow
def test_dicts_of_lists_of_tuples():
    graph = traced(intervals)
    for given in BUSY:
        for q in "xy":
            agree(intervals, POOL, n=4, graph=graph, busy=given, q=q)


REFUSED = {
    "a list": ([["a", 1]], r"shots\[0\] must be tuple\[str, int\], found list"),
    "too long": ([("a", 1, 2)], r"must be tuple\[str, int\]"),
    "of other types": ([("a", 1), ("b", "1")], r"shots\[1\]\[1\] must be int"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("case", REFUSED)
def test_other_arguments_are_refused(case):
    given, message = REFUSED[case]
    with pytest.raises(ArgumentError, match=message):
        Program(traced(shots)).run(shots=given, q="x", backend=replying(0, POOL))


def test_lists_from_a_file_are_taken_as_they_are():
    rows = [{"shots": [["a", 1]], "q": "x"}]
    assert shots.signature.names_to_bind(rows, {}) == ["shots"]
    rows = [{"shots": [("a", 1)], "q": "x"}]
    assert shots.signature.names_to_bind(rows, {}) == []


def test_a_compiled_program_takes_lists_out_of_json_as_the_tuples_that_they_stand_for():
    graph = traced(intervals)
    given = with_tuples(graph, {"busy": {"x": [[1, 2.5]], "y": []}, "q": "x"})
    assert given == {"busy": {"x": [(1, 2.5)], "y": []}, "q": "x"}
    wrong = {"busy": {"x": [[1, 2, 3], "no"], "y": 3}}
    assert with_tuples(graph, wrong) == wrong


def test_annotations_of_tuples():
    pairs = {"type": "tuple", "prefixItems": [{"type": "string"}, {"type": "integer"}]}
    assert of_annotation(list[tuple[str, int]]) == {"type": "array", "items": pairs}
    assert shown(pairs) == "tuple[str, int]"
    assert misfit(("a", True), pairs) is not None
    for other in (
        tuple[str, int], list[tuple[str, ...]], list[tuple[str, dict]], list[tuple],
        list[tuple[str, int] | None], dict[str, tuple[str, list[int]]],
    ):  # fmt: skip
        assert of_annotation(other) is None
