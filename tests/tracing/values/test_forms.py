"""Forms of code in which Python's own C code meets values known only at run time.

Compiled, each gives what it gives interpreted, or says that it cannot: never another thing.
"""

from __future__ import annotations

import linecache
import textwrap
from functools import partial
from typing import Any

import pytest
from control_flow import outcome, replying

import sgc
from sgc.errors import TraceError
from sgc.runtime.executor.run.options import RunOptions

POOL = ("a", "b", "3", "yes", "no", "a,b,c", "12x", "", "é", "1 2 2 3", "2024-02-29")
HEAD = """
import bisect, functools, heapq, itertools, operator, statistics
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

def program(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    s += "|" + sgc.gen("b", max_tokens=9)
    a, b = s["a"], s["b"]
"""

_KEYS = ("str", "repr", "'{}'.format", "'!{0[0]}'.format", "functools.partial(format)")
_ROWS = "[(a, 1), (b, 2), ('b', 3)]"
_TEXTS = (
    "map(str, [[a], [b], ['no']])", "map('{}'.format, [(a,), (b,)])", "(str([c]) for c in (a, b))",
    "itertools.starmap('{}{}'.format, [(a, '!'), (b, '!')])", "[*map(repr, [(a,), (b,)])]",
    "itertools.chain(map(str, [[a]]), map(str, [[b]]))", "filter(None, map(str, [[a], [b]]))",
    "itertools.accumulate([a, b, ''], '{}{}'.format)",
)  # fmt: skip
# What compares or hashes the results of a function, or the items of an iterator.
COMPARED = [
    *(f"{name}({_ROWS}, key={key})" for name in ("max", "min", "sorted") for key in _KEYS),
    *(f"max(iter({_ROWS}), default=None, key={key})" for key in _KEYS),
    *(f"heapq.{name}(1, {_ROWS}, key=str)" for name in ("nlargest", "nsmallest")),
    f"heapq.nsmallest(1, {_ROWS}, str)",
    "[*heapq.merge([(a, 1)], [(b, 2)], key=str)]",
    "bisect.bisect([(a, 1)], str((b, 1)), key=str)",
    f"[(k, len([*g])) for k, g in itertools.groupby({_ROWS}, str)]",
    "max([[str([a])], [str([b])]])",
    *(f"{name}({texts})" for texts in _TEXTS for name in ("max", "min", "sorted")),
    *(f"dict(Counter({texts}))" for texts in _TEXTS),
    *(f"len(set({texts}))" for texts in _TEXTS),
    *(f"len(dict.fromkeys({texts}))" for texts in _TEXTS),
    *(f"len(list(itertools.groupby({texts})))" for texts in _TEXTS),
    *(f"len(frozenset({texts}))" for texts in _TEXTS),
    *(f"{{k: 1 for k in {texts}}}" for texts in _TEXTS),
    *(f"dict(zip({texts}, [1, 2]))" for texts in _TEXTS),
    *(f"heapq.nlargest(1, {texts})" for texts in _TEXTS),
    *(f"[*{texts}].count({one})" for texts in _TEXTS for one in ("str([a])", "'[]'")),
    *(f"\"['a']\" in {texts}" for texts in _TEXTS),
    *(f"statistics.{name}({texts})" for texts in _TEXTS for name in ("mode", "multimode")),
]  # fmt: skip


def _program(body: str) -> Any:
    """A program with these lines, or one that returns an expression."""
    lines = body if "\n" in body else f"return {body}"
    source = HEAD + textwrap.indent(lines, "    ") + "\n"
    file = f"form_{abs(hash(body))}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"sgc": sgc, "__name__": "forms"}
    exec(compile(source, file, "exec"), names)
    return sgc.function(names["program"])


@pytest.mark.parametrize("body", COMPARED)
def test_a_form_gives_what_it_gives_interpreted_or_is_refused(body: str) -> None:
    program = _program(body)
    try:
        compiled = program.compile(check=False)
    except TraceError:
        return
    for seed in range(8):
        runs = [
            outcome(partial(each.run_once, {"q": "x"}, RunOptions(seed=seed), replying(seed, POOL)))
            for each in (program, compiled)
        ]
        if runs[1] not in ("ProgramError", "DeoptReached"):
            assert (runs[0], repr(runs[0])) == (runs[1], repr(runs[1])), seed
