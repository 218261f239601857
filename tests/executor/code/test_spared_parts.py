"""Code that mutates lists and dicts whose parts others hold, and none of these parts."""

from __future__ import annotations

import copy
import random
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.runtime.executor.code.along import mutable_along
from sgc.runtime.executor.code.mutation import mutated, spares_parts
from sgc.runtime.executor.code.run import run_code
from sgc.tracing.paths.exploration import Budget

SPARED = (
    "xs.sort(key=lambda r: r['a'])", "xs[0] = y", "xs += y", "del xs[0]", "xs.update(y)",
    "xs.append(y[0])",
)  # fmt: skip
CHANGED = (
    "xs[0]['a'] = y", "xs[0] += y", "z = xs[0]; z.append(1)", "xs = xs[0]; xs.append(1)",
    "xs.setdefault('a', []).append(1)", "z = [*xs]; z.append(1)", "del xs[0]['a']",
    "[xs.append(1) for xs in y]", "xs.sort(key=lambda xs: xs.append(1))",
)  # fmt: skip


@pytest.mark.parametrize("statement", [*SPARED, *CHANGED])
def test_what_spares_the_parts_of_arguments(statement):
    code = f"def piece(xs, y):\n    {statement}\n    return xs"
    assert spares_parts(code) == (statement in SPARED)


def test_each_argument_has_its_own_ways():
    code = "def piece(a, /, b, c):\n    b.append(a)\n    c[0] += 1\n    return b"
    assert mutated(code) == (frozenset(), frozenset({()}), frozenset({(), (None,)}))


def test_no_helper_may_mutate_them():
    code = "def f(a):\n    a.append(1)\ndef piece(xs):\n    f(xs[0])\n    return xs"
    assert not spares_parts(code)


@sgc.function
def sorts_what_another_list_holds(s, q: str):
    s += q + sgc.gen("a", max_tokens=8)
    rows = [{"word": w, "n": len(w)} for w in s["a"].split()]
    long = [r for r in rows if r["n"] > 1]
    if not long:
        return "none"
    long.sort(key=lambda r: r["n"], reverse=True)
    s += ", ".join(r["word"] for r in rows) + long[0]["word"]
    return [r["n"] for r in long], len(rows)


def test_a_list_may_be_sorted_whose_items_another_holds():
    replies = ("a bb ccc", "ccc bb a", "", "dd", "x")
    agree(sorts_what_another_list_holds, replies, n=6, budget=Budget(), q="a")


# Statements that mutate `x`, or parts of it, by certain ways.
STATEMENTS = (
    "x.append(y)", "x['a'].append(y)", "x['a'] = y", "x[0] = y", "x[0].append(y)", "x.clear()",
    "x['a'][0] = y", "x[0]['a'] = y", "x.setdefault('c', []).append(y)", "x['a'] += [y]",
    "del x['a']", "x['a']['a'].append(y)", "x.update(a=y)", "x['a'].add(y)", "x[0][0].append(y)",
    "x.sort(key=str)", "x['b'].pop()", "x['a'].popleft()",
)  # fmt: skip


def _value(rng: random.Random, made: list[Any], depth: int = 0) -> Any:
    """Data in which objects may stand in several places."""
    if made and rng.random() < 0.25:
        return rng.choice(made)
    if depth == 4 or rng.random() < 0.2:
        return rng.choice(["t", 1, 2.5, None, (1, "u"), {"s"}, Counter("aab")])
    parts = [_value(rng, made, depth + 1) for _ in range(rng.randint(0, 3))]
    of = rng.choice([list, dict, dict, deque, OrderedDict, tuple, defaultdict])
    if of in (list, tuple, deque):
        found = of(parts)
    else:
        found = of() if of is not defaultdict else defaultdict(list)
        found.update(zip(["a", "b", 0], parts, strict=False))
    made.append(found)
    return found


def _shape(value: Any, seen: dict[int, int] | None = None) -> Any:
    """A value and which of its objects are the same."""
    seen = {} if seen is None else seen
    if isinstance(value, (str, int, float, type(None), set)):
        return (type(value), value)
    if id(value) in seen:
        return seen[id(value)]
    if type(value) is not tuple:
        seen[id(value)] = len(seen)
    items = list(value.items()) if isinstance(value, dict) else list(value)
    return (type(value), [_shape(item, seen) for item in items])


def _happens(do: Any) -> Any:
    try:
        return _shape(do())
    except Exception as error:
        return type(error)


def _in_python(statement: str, x: Any) -> Any:
    names = {"x": x, "y": "new"}
    exec(statement, names)
    return names["x"]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_not_copied_is_as_if_it_were(seed):
    rng, n_spared = random.Random(seed), 0
    for _ in range(60):
        statement, given = rng.choice(STATEMENTS), _value(rng, [])
        code = f"def piece(x, y):\n    {statement}\n    return x"
        along = mutable_along(given, mutated(code)[0])
        n_spared += along is not None
        before, theirs = _shape(given), copy.deepcopy(given)
        ours = _happens(
            lambda code=code, given=given, along=along: run_code(
                code, (given, "new"), (1,), {}, {} if along is None else {0: along}
            )
        )
        expected = _happens(lambda statement=statement, x=theirs: _in_python(statement, x))
        assert ours == expected, statement
        assert _shape(given) == before, statement
    assert n_spared > 20


def test_parts_beside_are_the_callers_own():
    held, other = ["held"], ["other"]
    given = {"a": held, "b": other}
    code = "def piece(x, y):\n    x['b'].append(y)\n    return x"
    assert [*mutable_along(given, mutated(code)[0]).objects.values()] == [given, held, other]
    code = "def piece(x, y):\n    x['k'] = y\n    return x"
    along = mutable_along(given, mutated(code)[0])
    found = run_code(code, (given, "new"), (1,), {}, {0: along})
    assert found["a"] is held
    assert "k" not in given


def test_what_is_held_on_the_way_and_beside_it_is_copied_whole():
    twice = ["twice"]
    code = "def piece(x):\n    x[0].append(1)\n    return x"
    assert mutable_along([twice, [twice]], mutated(code)[0]) is None
    assert mutable_along([[1], [twice]], mutated(code)[0]) is not None
