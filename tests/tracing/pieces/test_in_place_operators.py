"""`xs += ys` of a list extends it wherever it is held; so do the other operators on containers."""

from __future__ import annotations

import functools
import json
import operator
from collections import Counter, UserList, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from control_flow import agree_or_refuse, equal_or_refused

import sgc
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.tracing.tracer import trace

REPLIES = ("a b", "b", "", "[1, 2]", "7 8 9", '{"k": 1}')
Body = Callable[[Any], Any]


class Box:
    def __init__(self) -> None:
        self.items = ["p"]

    def take(self, text: str) -> None:
        self.items += text.split()


class Kept:
    def __init__(self) -> None:
        self._items = ["p"]

    @property
    def items(self) -> list[str]:
        return self._items

    @items.setter
    def items(self, items: list[str]) -> None:
        self.n_set = len(items)


class Words(list[str]):
    pass


def extended(xs: list[str], text: str) -> list[str]:
    xs += text.split()
    return xs


def one_variable(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    xs += text.split()
    xs += text.split()
    return xs


def two_variables(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    ys = xs
    ys += text.split()
    return xs, ys


def in_one_arm(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    ys = xs
    if text:
        ys += text.split()
    return xs, ys


def in_a_loop(s: Any) -> Any:
    text = s["x"]
    xs: list[str] = []
    ys = xs
    for word in ("k", "l"):
        ys += text.split(word)
    return xs, ys


def of_a_new_list(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    ys = xs
    ys = ys + text.split()
    return xs, ys


def of_a_list_of_the_graph(s: Any) -> Any:
    text = s["x"]
    xs = text.split()
    ys = xs
    ys += ["p"]
    ys += text.split()
    return xs, ys


def of_an_argument(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    ys = extended(xs, text)
    return xs, ys


def of_a_default(s: Any, xs: list[str] = ["p"]) -> Any:  # noqa: B006
    text = s["x"]
    ys = xs[:]
    ys += text.split()
    return xs, ys


def of_a_part_of_a_dict(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    parts = {"k": xs}
    parts["k"] += text.split()
    return xs, parts


def of_a_part_alone(s: Any) -> Any:
    text = s["x"]
    parts = {"k": ["p"]}
    parts["k"] += text.split()
    return parts


def of_a_part_of_a_list(s: Any) -> Any:
    text = s["x"]
    rows = [["p"], ["q"]]
    first = rows[0]
    rows[0] += text.split()
    return rows, first


def of_a_part_of_a_tuple(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    pair = (xs,)
    with suppress(TypeError):
        pair[0] += text.split()  # type: ignore[index]
    return xs


def of_a_row_put_before(s: Any) -> Any:
    text = s["x"]
    rows, row = [], ["p"]
    rows.append(row)
    row += text.split()
    return rows


def of_an_attribute(s: Any) -> Any:
    text = s["x"]
    box = Box()
    box.take(text)
    box.take("k")
    return box.items


def of_an_attribute_held(s: Any) -> Any:
    text = s["x"]
    box = Box()
    xs = box.items
    box.items += text.split()
    return xs


def of_a_property(s: Any) -> Any:
    text = s["x"]
    kept = Kept()
    kept.items += text.split()
    return kept.items, kept.n_set


def of_a_cell(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    ys = xs

    def extend() -> None:
        nonlocal xs
        xs += text.split()

    extend()
    return xs, ys


def of_a_defaultdict(s: Any) -> Any:
    text = s["x"]
    parts = defaultdict(list)
    xs = parts["k"]
    parts["k"] += text.split()
    return xs, dict(parts)


def by_json(s: Any) -> Any:
    text = s["x"]
    xs: list[Any] = ["p"]
    ys = xs
    ys += json.loads(text or "[]") if text[:1] in ("[", "{", "") else [text]
    return xs, ys


def by_a_text(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    ys = xs
    ys += text
    return xs, ys


def by_a_function(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    return operator.iadd(xs, text.split()), xs


def by_a_method(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    ys = xs
    ys.__iadd__(text.split())
    return xs, ys


def by_a_function_that_adds_one(s: Any) -> Any:
    text = s["x"]
    xs, ys, zs = ["p"], ["p"], text.split()
    found = operator.iadd(xs, [text]), operator.iconcat(ys, [text]), operator.iconcat(zs, ["k"])
    return found, xs, ys.__iadd__([text]), zs


def by_concatenating(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    return operator.iconcat(xs, text.split()), xs


def by_a_method_of_the_class(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    return list.__iadd__(xs, text.split()), xs


def by_reducing(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    return functools.reduce(operator.iadd, [text.split(), ["k"]], xs), xs


def by_sums(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    each = [xs, text.split(), ["k"]]
    return sum(each, []), functools.reduce(operator.add, each), operator.add(xs, each[1]), xs  # noqa: RUF017


def by_a_generator_that_fails(s: Any) -> Any:
    text = s["x"]
    xs: list[Any] = text.split()
    try:
        xs += (int(word) for word in ["1", text, "2"])
    except ValueError as error:
        return xs, str(error)
    return xs


def by_a_map_that_fails(s: Any) -> Any:
    text = s["x"]
    xs: list[Any] = text.split()
    try:
        xs.extend(map(int, ["1", text]))
    except ValueError as error:
        return xs, str(error)
    return xs


def repeated(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    ys = xs
    ys *= len(text)
    return xs, ys


def repeated_by_json(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    ys = xs
    if text == "[1, 2]":
        ys *= json.loads(text)[1]
    return xs, ys


def of_a_subclass(s: Any) -> Any:
    text = s["x"]
    xs = Words("p")
    ys = xs
    ys += text.split()
    return [*xs], [*ys]


def of_a_class_of_the_library(s: Any) -> Any:
    text = s["x"]
    xs = UserList(["p"])
    ys = xs
    ys += text.split()
    return [*xs], [*ys]


def of_a_deque(s: Any) -> Any:
    text = s["x"]
    xs = deque(["p"])
    ys = xs
    ys += text.split()
    return [*xs], [*ys]


def of_a_set(s: Any) -> Any:
    text = s["x"]
    xs = {"a", "k"}
    ys = xs
    ys |= set(text.split())
    return sorted(xs), sorted(ys)


def of_a_set_less(s: Any) -> Any:
    text = s["x"]
    xs = {"a", "k"}
    ys = xs
    ys -= set(text.split())
    return sorted(xs), sorted(ys)


def of_a_dict(s: Any) -> Any:
    text = s["x"]
    xs = {"k": 1}
    ys = xs
    ys |= dict.fromkeys(text.split(), 2)
    return xs, ys


def of_a_counter(s: Any) -> Any:
    text = s["x"]
    xs = Counter("k")
    ys = xs
    ys += Counter(text.split())
    return dict(xs), dict(ys)


def whose_iterator_is_held(s: Any) -> Any:
    text = s["x"]
    xs = ["p"]
    items = iter(xs)
    xs += text.split()
    return [*items]


def whose_part_changes(s: Any) -> Any:
    text = s["x"]
    part = ["p"]
    xs = [part]
    xs += text.split()
    part.append("q")
    return xs


def whose_part_changes_in_a_dict(s: Any) -> Any:
    part = ["p"]
    parts = dict([(s["x"], part)])  # noqa: C406
    part.append("q")
    return parts


def which_is_a_default(s: Any) -> Any:
    given = ["p"]
    found = json.loads(s["x"]) if s["x"][:1] == "{" else {}
    part = found.get("j", given)
    given.append("q")
    return part


def whose_part_changes_in_a_sum(s: Any) -> Any:
    text = s["x"]
    part = ["p"]
    words = text.split()
    xs, ys = [part] + words, words + [part]  # noqa: RUF005
    part.append("q")
    return xs, ys


EQUAL = (
    one_variable, of_a_new_list, of_a_list_of_the_graph, of_a_default, of_a_part_alone,
    of_an_attribute, by_a_map_that_fails, by_sums, by_a_generator_that_fails,
    by_a_function_that_adds_one, of_an_argument,
)  # fmt: skip
REFUSED = (
    two_variables, in_one_arm, in_a_loop, of_a_part_of_a_dict,
    of_a_part_of_a_list, of_a_part_of_a_tuple, of_a_row_put_before, of_an_attribute_held,
    of_a_property, of_a_cell, of_a_defaultdict, by_json, by_a_text, by_a_function, by_a_method,
    by_concatenating, by_a_method_of_the_class,
    by_reducing, repeated, repeated_by_json, of_a_subclass, of_a_class_of_the_library, of_a_deque,
    of_a_set, of_a_set_less, of_a_dict, of_a_counter, whose_iterator_is_held, whose_part_changes,
    whose_part_changes_in_a_sum, whose_part_changes_in_a_dict, which_is_a_default,
)  # fmt: skip
WANTED = [*((body, "equal") for body in EQUAL), *((body, "refused") for body in REFUSED)]


def program(body: Body) -> Any:
    """A program that returns what `body` makes of a reply."""

    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("x", max_tokens=4)
        return body(s)

    return shown


@sgc.function
def parts_of_two(s, q: str):
    s += q + sgc.gen("x", max_tokens=4)
    rows = [[word] for word in s["x"].split()]
    both = rows + [["k"]]  # noqa: RUF005
    if rows:
        rows[0].append("z")
    return rows, both


def test_a_run_stops_at_a_change_of_what_two_lists_hold() -> None:
    graph = trace(parts_of_two, is_full=True)
    for level in (0, 1):
        agree_or_refuse(parts_of_two, Program(optimize(graph, level)), REPLIES, n=8)


@pytest.mark.sweep
@pytest.mark.parametrize(("body", "wanted"), WANTED)
def test_changes_in_place_are_equal_or_refused(body: Body, wanted: str) -> None:
    assert equal_or_refused(program(body), REPLIES) == wanted
