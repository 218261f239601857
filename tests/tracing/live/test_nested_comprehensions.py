"""Comprehensions that ask a model inside of other comprehensions."""

from __future__ import annotations

import pytest
from control_flow import agree, equal_or_refused

import sgc

REPLIES = ["a,bb,c", "7", "x,7", "2", "no,yes,maybe", "", "a"]
KINDS = {"short": 2, "long": 5}


@sgc.function
def judged(s, text: str, n: int = 0):
    s += f"Rate {text} {n}" + sgc.gen("n")
    return len(s["n"])


@sgc.function
def parted(s, text: str):
    s += "Parts of " + text + sgc.gen("xs", max_tokens=9)
    return [x for x in s["xs"].split(",") if x]


def parts_of(s, q):
    s += q + sgc.gen("xs")
    return s["xs"].split(",")


@sgc.function
def dict_of_lists(s, q: str):
    xs = parts_of(s, q)
    marks = {k: [judged(x, n).ret_value for x in xs] for k, n in KINDS.items()}
    s += str(marks) + sgc.gen("y")
    return marks


@sgc.function
def dict_of_dicts(s, q: str):
    xs = parts_of(s, q)
    votes = {i: {k: judged(x, n).ret_value for k, n in KINDS.items()} for i, x in enumerate(xs)}
    s += str(votes)


@sgc.function
def list_in_an_iterable(s, q: str):
    xs = parts_of(s, q)
    s += str([judged(y).ret_value for x in xs for y in [x + str(judged(x).ret_value), x]])
    s += str([n + 1 for n in [judged(x).ret_value for x in xs] if n])


@sgc.function
def three_deep(s, q: str):
    xs = parts_of(s, q)
    s += str([[[judged(x + y, n).ret_value for n in range(2)] for y in xs if y != x] for x in xs])


@sgc.function
def sets_and_keys(s, q: str):
    xs = parts_of(s, q)
    s += str(sorted(len({judged(x + y).ret_value for y in xs}) for x in xs))
    s += str({tuple([judged(x, n).ret_value for n in (1, 2)]): x for x in xs})


@sgc.function
def used_up_inside(s, q: str):
    xs = parts_of(s, q)
    s += str([(x, sum(judged(x, n).ret_value for n in KINDS.values())) for x in xs])
    s += ";".join("+".join(str(judged(y).ret_value) for y in x) for x in xs)


@sgc.function
def ends_early(s, q: str):
    xs = parts_of(s, q)
    s += str([x for x in xs if any(judged(x + y).ret_value > 1 for y in xs)])
    s += str(all(any(judged(x, n).ret_value == n for n in range(3)) for x in xs))
    s += str([next((y for y in xs if judged(x + y).ret_value > 1), "none") for x in xs])


@sgc.function
def any_of_what_is_known(s, q: str):
    xs = parts_of(s, q)
    s += str(any(all(judged(x, n).ret_value < n for x in xs) for n in KINDS.values()))
    s += str(next((k for k, n in KINDS.items() if any(judged(x, n).ret_value < 2 for x in xs)), q))


@sgc.function
def in_a_conditional_part(s, q: str):
    xs = parts_of(s, q)
    s += str([[judged(y).ret_value for y in xs] if len(x) > 1 else [] for x in xs])
    s += str([(x and [judged(x + y).ret_value for y in xs]) or q for x in xs])


@sgc.function
def same_names(s, q: str):
    x = "outer"
    xs = parts_of(s, q)
    s += str([(x, [judged(x).ret_value for x in x], x) for x in xs]) + x
    s += str([[-x for x in [judged(x).ret_value for x in xs]] for xs in [xs, xs[1:]]]) + x


@sgc.function
def items_of_items(s, q: str):
    s += str([[judged(y).ret_value for y in parted(x).ret_value] for x in parts_of(s, q)])


@sgc.function
def sets_a_name(s, q: str):
    last = ""
    xs = parts_of(s, q)
    s += str([[judged(last := last + y).ret_value for y in xs] + [last] for x in xs if (z := x)])
    s += last + (z if xs[-1] else "")


@sgc.function
def in_order(s, q: str):
    noted = []

    def note(what, n):
        noted.append((what, n))
        return n

    xs = parts_of(s, q)
    made = {
        note("key", x): note(
            "value", [note("a", judged(x).ret_value) + note("b", n) for n in (1, 2)]
        )
        for x in xs
        if note("if", [note("c", len(y)) for y in xs])
    }
    s += str(made) + str(noted)


@sgc.function
def prints(s, q: str):
    xs = parts_of(s, q)
    made = [[print(x, y, judged(y).ret_value) for y in xs] for x in xs]
    s += str(made)


@sgc.function
def fails_in_the_middle(s, q: str):
    seen = []
    xs = parts_of(s, q)
    try:
        s += str(
            [[(seen.append(y), 6 // (judged(x + y).ret_value - 1))[1] for y in xs] for x in xs]
        )
    except ZeroDivisionError as error:
        s += f"{error} {seen}"
    try:
        s += str({q: (len(seen), [int(y) + judged(y).ret_value for y in xs]) for q in xs})
    except ValueError as error:
        s += str(error)


@sgc.function
def keys_that_are_lists(s, q: str):
    seen = []
    xs = parts_of(s, q)
    try:
        made = {x: {[judged(x).ret_value]: seen.append(y) for y in xs} for x in xs if x}
        s += str(made)
    except TypeError as error:
        s += f"{error} {seen}"


@sgc.function
def makes_objects_apart(s, q: str):
    rows = [[[judged(x).ret_value] for x in parts_of(s, q)] for _ in range(2)]
    rows[0].append([0])
    for row in rows:
        row[0].append(9)
    s += str(rows)


@sgc.function
def streams_in_it(s, q: str):
    calls = [[judged(x, n) for n in range(2)] for x in parts_of(s, q)]
    s += str([[c.ret_value for c in row] for row in calls]) + calls[0][1]["n"]


@sgc.function
def after_others(s, q: str):
    xs = parts_of(s, q)
    s += str(judged(q).ret_value) + str([[judged(x, n).ret_value for n in (1, 2)] for x in xs]) + q
    s += str((xs.pop(), [[judged(x).ret_value for x in xs] for _ in "ab"], xs.append(q), xs))


PROGRAMS = [
    dict_of_lists, dict_of_dicts, list_in_an_iterable, three_deep, sets_and_keys, used_up_inside,
    ends_early, any_of_what_is_known, in_a_conditional_part, same_names, items_of_items,
    sets_a_name, in_order, prints, fails_in_the_middle, keys_that_are_lists, makes_objects_apart,
    streams_in_it, after_others,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_runs_are_as_interpreted(program):
    graph = agree(program, REPLIES, q="a")
    assert not [node for node in graph.nodes() if node.op == "deopt"]


def eaten(items):
    """Takes some of what it is given."""
    return [x for x, _ in zip(items, "ab", strict=False)]


@sgc.function
def goes_on_elsewhere(s, q: str):
    xs = parts_of(s, q)
    s += str([eaten(judged(x + y).ret_value for y in xs) for x in xs])


@sgc.function
def is_put_in_order(s, q: str):
    xs = parts_of(s, q)
    s += str([sorted(xs, key=lambda y: judged(x + y).ret_value) for x in xs])


@pytest.mark.parametrize(
    "program", [goes_on_elsewhere, is_put_in_order], ids=lambda each: each.name
)
def test_what_is_not_used_up_at_once_is_equal_or_refused(program):
    equal_or_refused(program, REPLIES)
