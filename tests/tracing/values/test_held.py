"""Objects that the program changes after a value of the graph was made of them.

Such a value holds a copy. What was computed of it before is right; where it is used afterwards, the
trace stops, whichever path the object was put there on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from control_flow import agree
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace

POOL = ("a", "b", "3", "yes", "no", "a,b,c", "x: 1", "12x", "", "é")


@dataclass
class Box:
    n: int = 0
    words: list = field(default_factory=list)

    def add(self, word):
        self.n += 1
        self.words.append(word)

    def itself(self):
        return self


# -- what stays right --


def an_object_changes_behind_the_last_use(s, a):
    box, made = Box(), a.split(",")
    made.append(box)
    n = len(made)
    box.add(a)
    return n, box.n, box.words


def a_result_may_be_the_object(s, a):
    box, last = Box(), None
    for c in a.split(","):
        s += c + sgc.gen("v", max_tokens=3)
        last = box.itself() if c else Box(7)
        box.add(s["v"])
    return last.n, last.words, box.n


def a_list_of_the_graph_grows_later(s, a):
    words, made = a.split(","), a.split(",")
    made.append(words)
    n = len(made)
    words.append("new")
    return n, words


def a_dict_changes_behind_the_last_use(s, a):
    last = {"w": a}
    found = a.split(",")
    found.append(last)
    keys = str(found)
    last["w"] = "new"
    return keys, last


def code_changes_it(s, a):
    row, made = {"w": 1}, a.split(",")
    made.append(row)
    n = len(made)
    row[a] = row.get(a, 0) + 1
    return n, row


def a_default_is_told(s, a):
    words = ["q"]
    try:
        found = str(json.loads(f'{{"{a}": 1}}').get("a", words))
    except ValueError:
        found = "none"
    words.append("r")
    return found, words


RIGHT = (
    an_object_changes_behind_the_last_use, a_result_may_be_the_object,
    a_list_of_the_graph_grows_later, a_dict_changes_behind_the_last_use, code_changes_it,
    a_default_is_told,
)  # fmt: skip


def program_of(body: Any) -> Any:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        return body(s, s["a"])

    return program


@pytest.mark.sweep
@pytest.mark.parametrize("body", RIGHT, ids=lambda body: body.__name__)
def test_what_was_computed_before_the_change_is_right(body: Any) -> None:
    agree(program_of(body), POOL, q="x")


# -- what is refused --


def the_list_is_read(s, a):
    box, made = Box(), a.split(",")
    made.append(box)
    box.add(a)
    return str(made)


def a_loop_goes_on_over_it(s, a):
    box, made, out = Box(), a.split(","), []
    made.append(box)
    for each in made:
        out.append(str(each))
        box.add("z")
        s += "."
    return out


def a_part_of_it_changes(s, a):
    part = ["p"]
    made = a.split(",")
    made.append([["q"]] if len(a) > 2 else [part])
    s += "."
    part.append("new")
    return str(made)


def it_is_in_one_of_two_lists(s, a):
    box, one, other = Box(), a.split(","), a.split(",")
    (other if len(a) > 2 else one).append(box)
    s += "."
    box.add("z")
    return str(one), len(other)


def names_are_exchanged(s, a):
    one, other, made = Box(1), Box(1), a.split(",")
    made.append(one)
    if len(a) > 2:
        one, other = other, one
    s += "."
    one.add("z")
    return str(made), one.n, other.n


def it_is_put_back_on_one_path(s, a):
    row, made = [a], a.split(",")
    made.append(row)
    if len(a) > 2:
        row[0] = "other"
    s += "."
    row[0] = a
    return str(made)


def it_changes_on_one_path_and_is_gone(s, a):
    row, made = [a], a.split(",")
    made.append(row)
    if len(a) < 3:
        row[0] = "other"
    row = None
    s += "."
    return str(made)


def it_becomes_equal_only(s, a):
    row, made = [1], a.split(",")
    made.append(row)
    row[0] = True
    return str(made)


def a_zero_gets_a_sign(s, a):
    row, made = [0.0], a.split(",")
    made.append(row)
    row[0] = -0.0
    return str(made)


def a_tuple_becomes_a_list(s, a):
    row, made = [(1, 2)], a.split(",")
    made.append(row)
    row[0] = [1, 2]
    return str(made)


def it_is_a_part_of_an_operand(s, a):
    words = ["q"]
    found = json.loads(json.dumps({"a": a})) | {"k": words}
    words.append("r")
    return str(found)


def code_changes_what_is_used(s, a):
    row, made = {"w": 1}, a.split(",")
    made.append(row)
    row[a] = row.get(a, 0) + 1
    return str(made)


def code_changes_what_another_name_has(s, a):
    row, made = {"w": 1}, a.split(",")
    other = row
    made.append(row)
    row[a] = row.get(a, 0) + 1
    return other


def a_copy_of_the_list_is_used(s, a):
    row, made = {"w": a}, a.split(",")
    made.append(row)
    copy = made[:]
    made = None
    row["w"] = "new"
    return str(copy)


REFUSED = (
    the_list_is_read, a_loop_goes_on_over_it, a_part_of_it_changes, it_is_in_one_of_two_lists,
    names_are_exchanged, it_changes_on_one_path_and_is_gone, it_is_put_back_on_one_path,
    it_becomes_equal_only, a_zero_gets_a_sign, a_tuple_becomes_a_list, it_is_a_part_of_an_operand,
    code_changes_what_is_used, code_changes_what_another_name_has, a_copy_of_the_list_is_used,
)  # fmt: skip


@pytest.mark.parametrize("body", one_in(5, REFUSED), ids=lambda body: body.__name__)
def test_a_value_made_of_what_has_changed_is_not_used(body: Any) -> None:
    with pytest.raises(TraceError) as error:
        trace(program_of(body), is_full=True)
    is_plain = body is code_changes_what_another_name_has
    why = "held in several places" if is_plain else "was changed after"
    assert why in str(error.value)


def an_object_is_in_a_list_that_changes(s, a):
    first = {"k": 1, "w": "f"}
    made = [first, *({"k": len(w), "w": w} for w in a.split(","))]
    made.sort(key=lambda row: row["w"])
    made[0]["k"] += 10
    return f"{first} {made}"


def a_part_of_it_is(s, a):
    inner = [1]
    made = [{"k": inner, "w": "f"}, *({"k": [2], "w": w} for w in a.split(","))]
    made.sort(key=lambda row: row["w"])
    made[0]["k"].append(10)
    return f"{inner} {made}"


def it_was_put_there_on_one_path(s, a):
    first, made = {"k": 1, "w": "f"}, [{"k": len(w), "w": w} for w in a.split(",")]
    if "x" in a:
        made.insert(0, first)
    made.sort(key=lambda row: row["w"])
    s += "!"
    made[0]["k"] += 10
    return f"{first} {made}"


@pytest.mark.parametrize(
    "body", [an_object_is_in_a_list_that_changes, a_part_of_it_is, it_was_put_there_on_one_path]
)
def test_code_does_not_change_what_a_variable_has_too(body: Any) -> None:
    with pytest.raises(TraceError):
        trace(program_of(body), is_full=True)


def the_variable_is_read_no_more(s, a):
    first = {"k": 1, "w": "f"}
    made = [first, *({"k": len(w), "w": w} for w in a.split(","))]
    made.sort(key=lambda row: row["w"])
    made[0]["k"] += 10
    if "b" in a:
        s += sgc.gen("z", max_tokens=3)
    return f"{made}"


def test_code_changes_what_no_variable_has() -> None:
    agree(program_of(the_variable_is_read_no_more), POOL, n=12, q="x")
