"""Code that mutates lists and dicts whose parts others hold, and none of these parts."""

from __future__ import annotations

import pytest
from control_flow import agree

import sgc
from sgc.runtime.executor.code.mutation import spares_parts
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
