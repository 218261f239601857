"""Functions of the program that are called in the midst of an expression: ways merge inside them,
and what the expression has evaluated before stays as it was.
"""

from __future__ import annotations

import linecache
import textwrap
from collections import Counter
from typing import Any

import pytest
from control_flow import agree_or_refuse
from tracing.control_flow import replacing

import sgc
from sgc.errors import TraceError
from sgc.programs.program import Program
from sgc.tracing.tracer import trace

POOL = ("yes", "no", "a b c", "")
HEAD = """
import sgc

class Box:
    def __init__(self, v): self.v = v
    def both(self, x): return f"{self.v}+{x}"
    def with_v(self, x): return (lambda y: f"{x}{y}")(self.v)

def decide(s, x):
    found = "long"
    if x == "yes":
        found = "short"
    elif x == "no":
        found = "none"
    return found

def loop(s, text):
    n = 0
    for w in text.split():
        if w == "b":
            n += 2
        n += 1
    return str(n)

def grow(xs, x):
    if x == "yes":
        xs.append("y")
    xs.append(x)
    return len(xs)

def put(box, x):
    if x == "yes":
        box.v = "set"
    box.both = lambda y: "other" + y if x == "no" else y
    return x

def set_by_name(box, x):
    setattr(box, "with_v", lambda y: "other" + y if x == "no" else y)
    return x

def pair(a, b, c=""): return f"{a}/{b}/{c}"

@sgc.function
def program(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    x, y, xs, box, n = s["a"], "first", ["0"], Box(q), 1
    def rebind(v):
        nonlocal y
        if v == "yes":
            y = "second"
        return v
    for turn in range(3):
        s += sgc.gen("a", max_tokens=3)
        x = s["a"]
        {line}
    return x, y, xs, box.v, n
"""
LINES = (
    "s += pair(x, decide(s, x))",
    "s += pair(decide(s, x), decide(s, s['a']), c=loop(s, x))",
    "s += f'{x} {loop(s, x)} {decide(s, x)}'",
    "s += pair(y, rebind(x), y)",
    "s += pair(y, rebind(x)) + y",
    "s += pair(n, (n := n + int(decide(s, x) == 'short')), n)",
    "s += pair(xs, grow(xs, x))",
    "s += pair(len(xs), grow(xs, x), len(xs))",
    "xs.append(decide(s, x))",
    "xs.append(pair(xs[-1], grow(xs, x)))",
    "s += pair(box.v, put(box, x), box.v)",
    "s += box.both(put(box, x))",
    "s += Box.both(box, put(box, x))",
    "s += box.with_v(set_by_name(box, x))",
    "s += pair(*[y, rebind(x)], **{'c': decide(s, x)})",
    "xs = [*xs, decide(s, x)]",
    "s += sgc.user(decide(s, x))",
    "n = max(n, len(decide(s, x)))",
    "s += {'short': 's'}.get(decide(s, x), y)",
    "s += y.join([x, rebind(x), y])",
    "s += (y if decide(s, x) == 'short' else x) + loop(s, x)",
    "s += pair(x, pair(y, decide(s, rebind(x))), y)",
    "s += (y if decide(s, x) == 'short' else x) + decide(s, x)",
    "n = 1 if x == 'yes' else 2\ns += '.'\ns += pair(n, (n := 0), decide(s, x))",
    "y = pair(y[:3], decide(s, x))",
    "xs[0], y = y, rebind(x)",
    "xs[grow(xs, x) - 1] = y",
    "n += len(loop(s, x)) * n",
    "box.v = pair(box.v[:4], decide(s, x))",
    "box.v += rebind(x)[:1]",
)  # fmt: skip


def _program(line: str) -> Any:
    source = HEAD.replace("{line}", textwrap.indent(line, " " * 8).strip())
    file = f"expression_{LINES.index(line)}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "expressions"}
    exec(compile(source, file, "exec"), names)
    return names["program"]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=pytest.mark.slow)
        if "loop(s, x)" in line and "+=" in line
        else line
        for line in LINES
    ],
)
def test_it_is_what_it_is_interpreted(line: str) -> None:
    program = _program(line)
    try:
        compiled = program.compile(check=False)
    except TraceError:
        return
    agree_or_refuse(program, compiled, POOL, 10)


@sgc.function
def of_an_object(s, q: str):
    box = replacing.Open(q)
    s += q + sgc.gen("a", max_tokens=9)
    x = s["a"]
    s += box.both(replacing.replaces(box, x))


@sgc.function
def of_a_slot(s, q: str):
    box = replacing.Slotted(q)
    s += q + sgc.gen("a", max_tokens=9)
    x = s["a"]
    s += box.both(replacing.replaces_by_name(box, x))


@pytest.mark.parametrize("program", [of_an_object, of_a_slot], ids=lambda each: each.name)
def test_a_method_is_looked_up_before_an_argument_replaces_it(program: Any) -> None:
    try:
        compiled = Program(trace(program))
    except TraceError:
        return
    agree_or_refuse(program, compiled, POOL, 10)


def _decided(text: Any) -> str:
    found = "long"
    if text == "yes":
        found = "short"
    return found


def _both(one: str, other: str) -> str:
    return f"{one}/{other}"


@sgc.function
def many(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    for _ in range(12):
        s += _both(q, _decided(s["a"])) + sgc.gen("a", max_tokens=3)


def _asking(s: Any) -> str:
    for name in ("b", "c", "d", "e", "f", "g"):
        s += sgc.gen(name, max_tokens=3)
        if s[name] == "yes":
            s += "!"
    return "asked"


@sgc.function
def within(s, q: str):
    s += _both(q, asked := _asking(s)) + asked


@pytest.mark.parametrize(("program", "n"), [(many, 12), (within, 6)])
def test_ways_merge_inside_it(program: Any, n: int) -> None:
    counts = Counter(node.op for node in trace(program).nodes())
    assert counts["branch"] <= n
    assert counts["gen"] <= n + 1
