"""Lists whose length is known only at run time: loops over them, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache, partial
from typing import Any

import pytest
from control_flow import agree, outcome, replying

import sgc
from sgc.errors import TraceError
from sgc.ir.graph import Graph
from sgc.runtime.executor.run.options import RunOptions

LISTS = ([], ["a"], ["b", "a", "c"], ["", "x y", "b", "b"])


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes())


@cache
def compiled(function: sgc.Function) -> sgc.Program:
    return function.compile()


def agree_on(function: sgc.Function, pool: list[str], name: str, lists: Any, **rest: Any) -> Graph:
    """The program compiled for any list; each given one is run in both ways."""
    program = compiled(function)
    for number, items in enumerate(lists):
        options, arguments = RunOptions(seed=number), {name: items, **rest}
        wanted, found = (
            outcome(partial(each.run_once, arguments, options, replying(number, pool)))
            for each in (function, program)
        )
        assert found == wanted, items
    return program.graph


@sgc.function
def tells(s, xs: list[str]):
    s += "Begin."
    for x in xs:
        s += f"\n- {x}: " + sgc.gen("about", max_tokens=4)
    s += "\nend " + sgc.gen("e", max_tokens=2)


def test_a_loop_over_a_list_argument_folds():
    graph = agree_on(tells, ["go", "stop"], "xs", LISTS)
    assert ops(graph)["gen"] == 2, "the turn and the end"
    assert ops(graph)["branch"] <= 2


@sgc.function
def decides(s, xs: list[str], q: str):
    s += q
    last = None
    for i, x in enumerate(xs, 1):
        if x == "b":
            continue
        s += f"{i}. {x} of {len(xs)}: " + sgc.gen("x", max_tokens=4)
        if s["x"] == "stop":
            break
        last = i
    else:
        s += "all " + sgc.gen("all", max_tokens=2)
    s += sgc.join("|", xs)
    if q in xs:
        s += " known"
    if xs:
        s += xs[0]
    return last


def test_a_loop_that_decides():
    graph = agree_on(decides, ["go", "stop"], "xs", LISTS, q="a")
    assert ops(graph)["deopt"] == 0
    assert ops(graph)["gen"] <= 4, "the first turn knows that nothing came before"


@sgc.function
def drawn(s, q: str):
    s += q + sgc.gen("x", n=3, max_tokens=4)
    for x in s["x"]:
        s += x + sgc.gen("y")
    for word in q.split(","):
        s += word + sgc.gen("z")


def test_lists_that_are_generated_and_split():
    graph = agree(drawn, ["a", "b", "c"], q="one,two,three")
    assert ops(graph)["gen"] <= 4


@sgc.function
def chosen(s, labels: list[str], q: str):
    s += q + sgc.gen("a")
    s += sgc.select("label", choices=labels)
    s += sgc.select("part", choices=[*s["a"].split(","), "none"])
    s += sgc.gen("word", choices=sorted({s["a"], s["label"]}))
    if s["part"] == "yes":
        s += "!"


def test_a_select_among_a_list():
    lists = [["a", "b"], ["yes"], ["one", "two", "three"], [], ["a", "a"], [""]]
    graph = agree_on(chosen, ["yes", "no", "yes,no"], "labels", lists, q="x")
    assert ops(graph)["select"] == 3


@sgc.function
def nested(s, rows: list[list[str]]):
    for i, row in enumerate(rows):
        s += f"row {i}"
        for x in row:
            s += x + sgc.gen("y")
            if s["y"] == "out":
                break
        s += sgc.gen("z")


def test_lists_of_lists():
    rows = ([], [["a"], [], ["b", "c"]], [["a", "b", "c"]] * 2)
    graph = agree_on(nested, ["in", "out"], "rows", rows)
    assert ops(graph)["gen"] <= 4


@sgc.function
def numbers(s, ns: list[int]):
    total = 0
    for n in ns:
        total = total + n
        s += f"{n} "
    s += f"= {total}" + sgc.gen("x")
    return total


def test_a_sum_goes_round_the_loop():
    agree_on(numbers, ["a"], "ns", ([], [1], [3, -4, 10]))


@sgc.function
def of_json(s, q: str):
    s += q + sgc.gen("x")
    try:
        for item in json.loads(s["x"]):
            s += f"<{item}>" + sgc.gen("y")
    except TypeError:
        s += "no list"
    s += sgc.gen("end")


def test_values_out_of_json():
    agree(of_json, ['["a", 2, null]', "[]", '{"k": 1, "l": 2}', "3", "null", '"ab"', "x"], q="x")


@sgc.function
def static(s, xs: list[str]):
    for x in xs:
        s += x + sgc.gen("y")


def test_a_list_that_is_bound_is_no_loop():
    assert len(static.trace(xs=["a", "b"]).blocks) == 1
    state = static(["a", "b"], backend=replying(0, ["c"]))
    assert "compiled" in static.explain()
    assert state.text() == "acbc"


def refused(body: Any) -> str:
    with pytest.raises(TraceError) as error:
        sgc.function(body).compile()
    assert "test_lists.py" in error.value.where
    return str(error.value)


@sgc.function
def paired(s, xs: list[str], ys: list[str]):
    for x, y in zip(xs, ys, strict=False):
        s += f"{x}={y} " + sgc.gen("a", max_tokens=4)
        if s["a"] == "stop":
            break
    else:
        s += "all"
    for i, (x, y, z) in enumerate(zip(ys, xs, ys, strict=False), 1):
        s += f"{i}{x}{y}{z}"
    for x in reversed(xs):
        s += x + sgc.gen("b", max_tokens=2)
    for i, x in enumerate(reversed(ys)):
        if x == "b":
            continue
        s += f"{i}{x}"


def test_lists_side_by_side_and_backwards_are_loops():
    for ys in LISTS:
        graph = agree_on(paired, ["go", "stop"], "xs", LISTS, ys=ys)
    assert ops(graph)["deopt"] == 0
    assert ops(graph)["gen"] <= 4


@sgc.function
def one_by_one(s, xs: list[str]):
    ahead = reversed(xs)
    for x in zip(xs, xs, strict=False):
        s += x[0] + sgc.gen("a", max_tokens=2)
        s += next(ahead, "none")


def test_loops_that_are_taken_from_by_hand():
    agree_on(one_by_one, ["go", "stop"], "xs", LISTS)


def test_what_needs_the_items_at_once_is_refused_at_its_line():
    def with_iterator(s, xs: list[str]):
        for x, y in zip(xs, iter(["a", "b"]), strict=False):
            s += x + y

    assert "`for x in xs:`, also over enumerate(xs)" in refused(with_iterator)


@sgc.function
def slices(s, q: str, n: int, m: int):
    s += q + sgc.gen("a", max_tokens=3)
    known, rows, text = [q, s["a"], "c"], [(1, s["a"]), (2, "b")], "plain"
    kept = known[:n]
    kept.append("z")
    for x in known[m:]:
        s += x + sgc.gen("b", max_tokens=2)
    s += f"{text[n:]}|{[][:n]}|{''[m:n]}|{known[-n:]}|{len(rows[:n])}"
    return kept, known, known[m:n], rows[n:], [1, 2.5, "x", None][:n], known[::-1][n:]


def test_a_list_of_stops_must_have_a_known_length() -> None:
    @sgc.function
    def of_a_list(s, xs: list[str]):
        s += sgc.gen("a", stop=xs)

    @sgc.function
    def of_items(s, xs: list[str]):
        s += sgc.gen("a", stop=[xs[0], "."])

    with pytest.raises(TraceError, match=r"test_lists.py:\d+: xs is a list known only at run time"):
        of_a_list.compile()
    of_items.compile()


def test_slices_of_known_lists_by_numbers_known_only_at_run_time():
    program = slices.compile()
    for n in (-4, -1, 0, 1, 2, 9):
        for m in (-2, 0, 1):
            given = {"q": "q", "n": n, "m": m}, RunOptions(seed=n)
            wanted, found = (
                outcome(partial(each.run_once, *given, replying(n, ["go", ""])))
                for each in (slices, program)
            )
            assert repr(found) == repr(wanted), (n, m)


@sgc.function
def gathers_objects(s, q: str):
    found = []
    s += q + sgc.gen("all", max_tokens=9)
    for item in json.loads(s["all"]) if s["all"].startswith("[") else s["all"].split():
        s += f"{item}?" + sgc.gen("a", max_tokens=2)
        if s["a"] == "no":
            continue
        found.append((item, s["a"]))
    return found, [a for _, a in found]


def test_a_list_of_tuples_with_values_of_any_type_grows_in_a_loop():
    graph = agree(gathers_objects, ["no", "yes", "[]", '["a", 1]', "a b"], q="x")
    assert ops(graph)["gen"] <= 8


@sgc.function
def strictly(s, xs: list[str], ys: list[str], zs: list[str]):
    try:
        for x, y, z in zip(xs, ys, zs, strict=True):
            s += x + y + z + sgc.gen("a", max_tokens=2)
    except ValueError as error:
        s += str(error)


@pytest.mark.sweep
@pytest.mark.parametrize("lengths", [(2, 2, 2), (1, 2, 2), (2, 1, 2), (2, 2, 1), (1, 1, 2)])
def test_zip_of_unequal_lists_that_must_be_equal(lengths: tuple[int, ...]) -> None:
    agree(
        strictly,
        ("a", "b"),
        n=6,
        **{f"{k}s": ["v"] * n for k, n in zip("xyz", lengths, strict=True)},
    )


@sgc.function
def beside_known(s, xs: list[str]):
    for letter, x in zip("ABC", xs, strict=False):
        s += letter + x
    for i, (x, f) in enumerate(zip(xs, s.fork(2), strict=False)):
        f += f"{i}" + x + sgc.gen("a", max_tokens=2)
        s += f["a"]
    s += ";".join(f"{n}.{x}" for n, x in zip(range(1, 9), xs, strict=False))
    try:
        s += str([x + y for x, y in zip(xs, ["1", "2"], strict=True)])
    except ValueError as error:
        s += str(error)


@pytest.mark.sweep
@pytest.mark.parametrize("n", [1, 2, 3])
def test_zip_with_what_is_known(n: int) -> None:
    agree(beside_known, ("a", "b"), xs=["v", "w", "x"][:n])
