"""Programs in which something else sees, or would see, what a piece of code changes.

Compiled, each does what it does interpreted, or says that it cannot: never another thing.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import pytest
from control_flow import outcome, replying
from tracing.pieces import shared_bodies

import sgc
from sgc.errors import TraceError
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.pieces.effects.holds import stored_names

POOL = ("a", "b", "3", "yes", "no", "a,b,c", "x: 1", "12x", "", "é")
LISTED = ["g"]
PATTERN = re.compile("[a-b]")
RATE = 2


def put(d, k):
    d[k] = d.get(k, 0) + 1


def same(xs, w):
    t = {w: 1}
    return xs if t else None


def charged(w, rate=RATE):
    return {w: rate}


RATE = 3


def a_helper_changes_it(s, a):
    found = {"k": 1}
    put(found, a)
    put(found, "k")
    return found


def an_error_comes_in_the_middle(s, a):
    found = {}
    try:
        for i, c in enumerate(a.casefold()):
            found[c] = i
            int(c)
    except ValueError:
        pass
    return found


def an_update_ends_in_the_middle(s, a):
    found = {}
    try:  # noqa: SIM105
        found.update((c, int(c)) for c in a)
    except ValueError:
        pass
    return found


def an_update_beside_a_stream_ends(s, a):
    found = {}
    try:
        s += "."
        found.update((c, int(c)) for c in a)
    except ValueError:
        s += "no"
    return found


def a_dict_holds_the_list(s, a):
    ys = sorted(set(a))
    found = {"k": ys}
    found.get(a, found["k"]).append("X")
    return found, ys


def the_list_was_put_somewhere(s, a):
    ys = a.split("a")
    found = {}
    found[a] = ys
    ys.append("new")
    return ys, found


def a_helper_gives_it_back(s, a):
    ys = [1, 2]
    zs = same(ys, a)
    zs.append("new")
    return ys, zs


def two_names_are_one(s, a):
    one = other = list(dict.fromkeys(a))
    one.append("z")
    return one, other


def a_method_is_passed(s, a):
    stack = [3, 2, 1]
    found = {a: list(map(stack.pop, [0, 0]))}
    return found, stack


def reading_adds_a_key(s, a):
    groups = defaultdict(list)
    groups["k"] = ["x"]
    n = len(groups[a])
    return n, a in groups, len(groups)


def a_box_holds_it(s, a):
    found = {}
    for c in a.casefold():
        box = {}
        box["d"] = found
        box["d"][c] = 1
    return found


def a_list_of_outside_is_changed(s, a):
    LISTED.append("new")
    found = {a: list(LISTED)}
    LISTED.pop()
    return found


def an_operator_changes_it(s, a):
    found = {a: 1}
    other = found
    found |= {"q": 1}
    found.update(z=2)
    return found, other


def a_default_is_kept(s, a):
    def noted(w, *, seen=Counter()):  # noqa: B006
        seen[w] += 1
        return dict(seen)

    return noted(a), noted("k")


def a_default_is_of_then(s, a):
    return charged(a)


def a_name_is_a_pattern_too(s, a):
    def found(PATTERN):
        return {PATTERN: 1}

    return {c: found(c) for c in PATTERN.findall(a)}


def two_objects_are_asked_for(s, a):
    ys = [1, 2]
    zs = same(ys, a)
    return zs is ys, zs == ys


def what_is_put_logs(s, a):
    log = []

    def put_in(n):
        log.append(n)
        return a + str(n)

    found = {}
    found.update(
        a=put_in(0), b=put_in(1), c=put_in(2), d=put_in(3), e=put_in(4), f=put_in(5),
        g=put_in(6), h=put_in(7), i=put_in(8), j=put_in(9), k=put_in(10), l=put_in(11),
    )  # fmt: skip
    return found, log


def names_meet(s, a):
    s__a_, value_000_ = "mine", "too"
    return {a: 1, s__a_: 2}, {a: value_000_}


def a_row_is_a_variables_too(s, a):
    row = a.split("a")
    rows = [row, a.split("b")]
    rows.sort(key=lambda each: sorted(set(each)))
    row.append("new")
    return row, rows


def a_row_was_taken_before(s, a):
    rows = [a.split("a"), a.split("b")]
    first = rows[0]
    rows.sort(key=lambda each: sorted(set(each)))
    first.append("new")
    rows[0].append("x")
    return first, rows


def a_row_is_a_dicts_too(s, a):
    found = {"k": a.split("a")}
    rows = [found["k"], ["b"]]
    rows.sort(key=lambda each: sorted(set(each)))
    rows[0].append("x")
    return found, rows


BODIES = [
    a_helper_changes_it, an_error_comes_in_the_middle, an_update_ends_in_the_middle,
    an_update_beside_a_stream_ends, a_dict_holds_the_list,
    the_list_was_put_somewhere, a_helper_gives_it_back, two_names_are_one, a_method_is_passed,
    reading_adds_a_key, a_box_holds_it, a_list_of_outside_is_changed, an_operator_changes_it,
    a_default_is_kept, a_default_is_of_then, a_name_is_a_pattern_too, two_objects_are_asked_for,
    what_is_put_logs, names_meet, a_row_is_a_variables_too, a_row_was_taken_before,
    a_row_is_a_dicts_too,
]  # fmt: skip
# Of which a run always says that it cannot go on.
SAID = [two_names_are_one, a_dict_holds_the_list, *shared_bodies.SAID]


@pytest.mark.sweep
@pytest.mark.parametrize("body", [*BODIES, *shared_bodies.BODIES], ids=lambda body: body.__name__)
def test_it_is_what_it_is_interpreted_or_said(body: Any) -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        return body(s, s["a"])  # no piece as a whole, for it is given a stream

    try:
        compiled = program.compile(check=False)
    except TraceError:
        return
    n_equal = 0
    for seed in range(8):
        runs = [
            outcome(partial(each.run_once, {"q": "x"}, RunOptions(seed=seed), replying(seed, POOL)))
            for each in (program, compiled)
        ]
        if runs[1] == "ProgramError":  # something else holds what is changed
            continue
        assert runs[0] == runs[1], seed
        n_equal += 1
    assert LISTED == ["g"]
    assert n_equal or body in SAID


@sgc.function
def sorts_slices(s, xs: list[str]):
    rows = []
    for x in xs:
        s += x + sgc.gen("a", max_tokens=9)
        words = sorted(s["a"].split(","), key=len)
        rows.append(words[:2])
    rows.sort(key=lambda row: row[-1])
    s += str(rows) + sgc.gen("z", max_tokens=2)
    return rows


def test_a_list_made_for_one_use_is_held_once_in_each_turn():
    from control_flow import agree

    agree(sorts_slices, POOL, xs=["x", "y", "z"])


@sgc.function
def sorts_rows(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    rows = [s["a"].split(","), q.split(",")]
    rows.sort(key=lambda row: sorted(set(row)))
    rows[0].append("x")
    s += str(rows) + sgc.gen("z", max_tokens=2)
    return rows


def test_a_list_of_lists_known_only_at_run_time_is_changed_if_nothing_else_has_these():
    from control_flow import agree

    agree(sorts_rows, POOL, q="b,a")


def test_what_is_formatted_into_a_text_is_in_no_other_value():
    statement = ast.parse('d[f"{row[0].lower()}:{n}"] = (f"{a.b}", kept, f"{made(given)}")')
    assert stored_names(statement) == {"kept", "given", "made"} | {"d"}
