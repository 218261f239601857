"""Code that changes what others see by a way that its syntax does not tell, or fails half way.

Compiled, each does what it does interpreted, or says that it cannot; no reply here is one that the
trace check tries, which is left out.
"""

from __future__ import annotations

import operator
import textwrap
from collections import OrderedDict, defaultdict
from functools import partial
from heapq import heappush
from typing import Any

import pytest
from control_flow import REFUSALS, outcome, replying

import sgc
from sgc.errors import ProgramError, TraceError
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runtime.executor.code.run import run_code
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

POOL = ("a", "b", "3", "no", "a,b,c", "12x", "", "score 7")


def size(text: str) -> int:
    return len(textwrap.fill(text, 4))  # no op: it becomes code


class Bag:
    def __init__(self) -> None:
        self.n, self.xs = 0, []

    def add(self, text):
        self.n += 1
        self.xs.append(size(text))
        return int(text)

    def setdefault(self, key, text):
        self.xs.append(size(key))
        return int(text)

    def remove(self, text):
        self.n += size(text)
        return int(text)

    def __setitem__(self, key, value):
        self.xs.append(size(key))
        self.n += int(key)


class Edges:
    def __init__(self) -> None:
        self.edges = defaultdict(list)

    def of(self, key):
        return len(self.edges[key]) + size(key)


GROUPS = defaultdict(list, a=["x"])


def looked_up(groups, key):
    return len(groups[key]) + size(key)


def grouped(key):
    return len(GROUPS[key]) + size(key)


def same(xs):
    return xs


def grown(xs, text, list):
    ys = list(xs)
    ys.append(size(text))
    return len(ys)


def restored(thing, text):
    return thing.n + size(text)


def own_add(s, a):
    bag = Bag()
    try:
        bag.add(a)
    except ValueError:
        s += "no"
    return bag.n, bag.xs


def own_setdefault(s, a):
    bag, n = Bag(), 0
    try:
        n = bag.setdefault(a, a)
    except ValueError:
        s += "no"
    return bag.n, bag.xs, n


def own_remove(s, a):
    bag = Bag()
    try:
        bag.remove(a)
    except ValueError:
        s += "no"
    return bag.n


def own_setitem(s, a):
    bag = Bag()
    try:
        bag[a] = 1
    except ValueError:
        s += "no"
    return bag.n, bag.xs


def python_heappush(s, a):
    heap = [1]
    try:
        heappush(heap, a)
    except TypeError:
        s += "no"
    return heap


def unpacked_pop(s, a):
    xs = sorted(a.split(","), key=size)
    try:
        _y, _z = xs.pop()
    except ValueError:
        s += "no"
    return xs


def helper_reads(s, a):
    groups = defaultdict(list, a=["x"])
    n = looked_up(groups, a)
    return n, sorted(groups)


def part_is_read(s, a):
    groups = {"k": defaultdict(list)}
    n = len(groups["k"][a]) + size(a)
    return n, sorted(groups["k"])


def method_reads(s, a):
    edges = Edges()
    n = edges.of(a)
    return n, sorted(edges.edges)


def operator_reads(s, a):
    groups = defaultdict(int, a=3)
    n = operator.getitem(groups, a) + size(a)
    return n, dict(groups)


def itemgetter_reads(s, a):
    groups = defaultdict(int, a=3)
    n = operator.itemgetter(a)(groups) + size(a)
    return n, dict(groups)


def format_reads(s, a):
    groups = defaultdict(int, a=3)
    text = "{b}".format_map(groups) + str(size(a))
    return text, dict(groups)


def module_is_read(s, a):
    GROUPS.clear()
    n = grouped(a)
    return n, sorted(GROUPS)


def method_by_its_name(s, a):
    xs = [0]
    getattr(xs, "append")(size(a))  # noqa: B009
    return xs


def method_by_a_variable(s, a):
    xs, name = [0], "append"
    ys = sorted(a, key=lambda c: getattr(xs, name)(size(c)) or 1)
    return xs, ys


def name_of_a_builtin(s, a):
    xs = [1]
    n = grown(xs, a, same)
    return xs, n


def name_of_such_code(s, a):
    return restored(Bag(), a)


def moved_first(s, a):
    keys = OrderedDict.fromkeys(["a", "b", a])
    keys.move_to_end("b", last=False)
    return list(keys)


def tuple(xs):
    return size(xs[0]) and xs


def max(xs):
    return size(xs[0]) and xs


def own_tuple(s, a):
    xs = [a]
    ys = tuple(xs)
    xs.append("k")
    return xs, ys


def own_max(s, a):
    xs = [a]
    ys = max(xs)
    xs.append("k")
    return xs, ys


def pair(text):
    return ["p"], ["q", size(text)]


def item_of_a_tuple(s, a):
    both = (["p"], ["q"])
    try:
        both[size(a) % 2] += "ab"
    except TypeError:
        s += "no"
    return both


def item_repeated(s, a):
    both = {"k": (["p"], ["q"])}
    try:
        both["k"][size(a) % 2] *= 2
    except TypeError:
        s += "no"
    return both


def item_of_a_tuple_of_code(s, a):
    rows = [pair(a)]
    try:
        rows[0][size(a) % 2] += b"ab"
    except TypeError:
        s += "no"
    return rows


BODIES = [
    own_add, own_setdefault, own_remove, own_setitem, python_heappush, unpacked_pop, helper_reads,
    part_is_read, method_reads, operator_reads, itemgetter_reads, format_reads, module_is_read,
    method_by_its_name, method_by_a_variable, name_of_a_builtin, name_of_such_code, moved_first,
    item_of_a_tuple, item_repeated, item_of_a_tuple_of_code,
    own_tuple, own_max,
]  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_it_is_what_it_is_interpreted_or_said(body: Any) -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        found = body(s, s["a"])
        s += "."
        return found

    try:
        graph = trace(program, is_full=True)
    except TraceError:
        return
    for compiled in (Program(optimize(graph, level)) for level in (0, 1)):
        for seed in range(8):
            runs = [
                outcome(
                    partial(each.run_once, {"q": "x"}, RunOptions(seed=seed), replying(seed, POOL))
                )
                for each in (program, compiled)
            ]
            assert runs[1] in REFUSALS or runs[1] == runs[0], seed


CHANGING = """
x.append(1)
x[0] = 2
x[0] = x[1]
getattr(x, "append")(1)
x[2].add(3)
x[1]["k"] = 1
x[1].pop("a")
x[1].update([("a", x[1].pop("a"))])
x[3][1]
x[4].random()
x.append(1); int("q")
""".strip().splitlines()


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("change", CHANGING)
def test_what_is_not_to_change_is_checked_when_the_code_ends(change: str, is_written: bool) -> None:
    import random

    head = "from collections import defaultdict\nfrom random import Random\n"
    text = "[0, {'a': 1, 'b': 2}, {1, 2}, defaultdict(list), Random(1)]"
    body = f"    x = unchanged({text})\n" if is_written else ""
    code = f"{head}def piece({'' if is_written else 'x'}):\n{body}    {change}\n    return 1"
    value = [0, {"a": 1, "b": 2}, {1, 2}, defaultdict(list), random.Random(1)]
    with pytest.raises(ProgramError, match="not its own"):
        run_code(code, () if is_written else (value,), () if is_written else (0,))


def test_what_stays_may_be_read() -> None:
    code = (
        "from collections import defaultdict\n"
        "def piece(y):\n"
        "    x = unchanged([float('nan'), {(1, 2)}, defaultdict(list, {'k': [y]}), y])\n"
        "    z = [*x]\n"
        "    z.append(x[2]['k'])\n"
        "    return len(z)"
    )
    assert run_code(code, (["é"],), (0,)) == 5
