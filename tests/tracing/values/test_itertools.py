"""Loops over what functions of `itertools` make of lists known only at run time."""

from __future__ import annotations

import itertools
from itertools import chain, combinations, islice, pairwise, permutations, product, zip_longest

import pytest
from control_flow import agree, traced

import sgc

REPLIES = ["a,b,c", "a", "", "x,y", "c,d,e,f"]


@sgc.function
def neighbours(s, xs: list[str], k: int):
    s += "q" + sgc.gen("a", stop="\n")
    items = s["a"].split(",")
    out = []
    for a, b in pairwise(items):
        s += a + b + sgc.gen("p", stop="\n")
        out.append(s["p"])
    for i, (a, b) in enumerate(pairwise(xs)):
        out.append(f"{i}{a}{b}")
    return out, [a + b for a, b in pairwise(items)], list(pairwise(xs))


@sgc.function
def slices(s, xs: list[str], k: int):
    s += "q" + sgc.gen("a", stop="\n")
    items = s["a"].split(",")
    out = []
    for x in islice(items, 2):
        s += x + sgc.gen("i", stop="\n")
    for x in islice(items, 1, None, 2):
        out.append(x)
    try:
        for x in islice(items, k):
            out.append(x + ".")
        for x in islice(xs, k, 3):
            out.append(x + "!")
    except ValueError as e:
        out.append(str(e))
    rest = islice(items, 1, None)
    out.append(next(rest, "none"))
    return out, ", ".join(islice(xs, 3))


@sgc.function
def joined(s, xs: list[str], k: int):
    s += "q" + sgc.gen("a", stop="\n")
    items = s["a"].split(",")
    out = []
    for x in chain(items, xs, ("k",)):
        out.append(x)
    for x in itertools.chain.from_iterable([items, xs]):
        s += x + sgc.gen("p", stop="\n")
    for a, b in zip_longest(items, xs, fillvalue="-"):
        s += a + b + sgc.gen("z", stop="\n")
        out.append(s["z"])
    return out, sorted(chain(items, xs))


@sgc.function
def crossed(s, xs: list[str], k: int):
    s += "q" + sgc.gen("a", stop="\n")
    items = s["a"].split(",")
    out = []
    for a, b in product(items, ["x", "y"]):
        out.append(a + b)
    for a, b in combinations(items, 2):
        s += f"{a} or {b}?" + sgc.gen("c", stop="\n")
    for a, b, c in permutations(xs, 3):
        out.append(a + b + c)
    return out


@sgc.function
def ends_of_known_ones(s, xs: list[str], k: int):
    out, sides = [], ("a", "b", "c")
    try:
        for i, x in enumerate(islice(sides, k + 1)):
            s += f"{i}{x}" + sgc.gen("r", stop="\n")
            out.append(s["r"])
        out += list(islice([*sides, "d"], k, None, k + 1))
        return out, list(islice(sides, 1, k + 2)), ", ".join(islice(sides, k))
    except ValueError as e:
        s += "q" + sgc.gen("r", stop="\n")
        return out, str(e), s["r"]


@pytest.mark.parametrize(
    "function",
    [neighbours, crossed, *(pytest.param(f, marks=pytest.mark.slow) for f in
                            (slices, joined, ends_of_known_ones))],
    ids=lambda f: f.name,
)  # fmt: skip
def test_loops_over_them_are_loops_of_the_graph(function):
    for xs, k in ((["u", "v", "w"], 1), ([], -1), (["u"], 0)):
        agree(function, REPLIES, n=4, graph=traced(function), xs=xs, k=k)
