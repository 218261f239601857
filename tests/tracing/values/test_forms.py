"""Forms of code in which Python's own C code meets values known only at run time.

Compiled, each gives what it gives interpreted, or says that it cannot: never another thing.
"""

from __future__ import annotations

import linecache
import textwrap
from typing import Any

import pytest
from control_flow import agree_or_refuse

import sgc
from sgc.errors import TraceError

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

# What Python refuses, or C code that knows none of the trace's values.
_FAILING = [
    "a < 1", "a + 1", "1 + a", "a + len(b)", "len(a) + b", "a.foo", "len(a).foo", "a.split().foo",
    "-a", "~a", "+a", "a - b", "a / 2", "a ** 2", "a @ b", "a & b", "[1] + a", "a + [1]", "[a] + b",
    "sum([a])", "sum([len(a), b])", "sum([], a)", "list(len(a))", "tuple(len(a))", "set(len(a))",
    "dict(len(a))", "dict(a)", "[*len(a)]", "{**a}", "max(*len(a))", "sorted(len(a))", "1 in a",
    "1 in len(a)", "','.join([a, 1])", "','.join([a, len(b)])", "','.join(len(a))",
    "sorted([a, 1])", "sorted([len(a), b])", "max(len(a), b)", "min([a, 1])", "int([a])", "a()",
    "len(a)()", "a.upper()()", "len(len(a))", "len(a)[0]", "a['x']", "[1, 2][a]", "{}[a]", "abs(a)",
    "round(a)", "divmod(a, 2)", "a * b", "a * 1.5", "[1] * a", "range(a)", "reversed(len(a))",
    "next(a)", "next(len(a))", "iter(len(a))", "zip(len(a))", "isinstance(a, len(b))",
    "timedelta(days=len(a))", "timedelta(a)", "Decimal(len(a))", "Fraction(len(a), 3)",
    "Decimal(a.split())", "chr(a)", "ord(len(a))", "a.upper(1)", "a.split(1)", "a.split().append()",
    "a.split() + a", "a.split() & {'a'}", "a.split() | {'a'}", "a.split() - [a]", "a.split() < 3",
    "Counter(a).keys() & {'a', 'b'}", "Counter(a).items() | {1}", "{'a'} & set(a)", "{a} & {b}",
    "hasattr(set(a), 'values')", "hasattr(a, 'foo')", "hasattr(a, 'upper')", "getattr(a, 'x', 7)",
    "hasattr(len(a), 'symbol')", "hasattr(a.split(), 'pop')", "getattr(len(a), 'real', 0)",
    "setattr(a, 'x', 1)", "len(a).x", "a.__class__", "a.__class__.__name__", "len(a).__class__",
    "a.split().__class__.__name__", "type(a) is a.__class__", "callable(a)", "callable(set(a))",
    "operator.add(a, 1)", "operator.neg(a)", "operator.itemgetter('x')(a)", "statistics.mean([a])",
    "statistics.mean([len(a), len(b)])", "functools.reduce(operator.add, [a, 1])",
    "heapq.heappop(a)",
    "itertools.accumulate([a, 1])", "list(itertools.accumulate([len(a), b]))", "a.split()[b]",
    "a.split()['x']", "a.find(1)", "len(a) < b", "len(a) > None", "a >= None", "(a, 1) < (a, b)",
    "[a] < [1]", "len(a) % b", "a % 2", "f'{len(a):s}'", "f'{a:d}'", "format(a, 'd')", "a[b]",
    "hash(a.split())", "{a.split(): 1}", "{a.split()}", "bytes(a)", "complex(a.split())",
]  # fmt: skip
_STATEMENTS = [
    "x, y = len(a)", "x, *y = len(a)", "(x, y), z = a.split(), b", "for x in len(a):\n    pass",
    "with a:\n    pass", "a[0] = 'x'", "del a[0]", "a.x = 1", "len(a).x = 1", "a += 1", "a -= 1",
    "n = len(a)\nn += b", "n = [1]\nn += len(a)", "raise a", "x: int = a @ b",
    "d = {'x': set(a)}\nfor k, v in d.items():\n    v.add(k)\nx = sorted(d['x'])",
    "d = {'x': set(a)}\nfor k, v in d.items():\n    v.foo(k)",
    "for v in [set(a), set(b)]:\n    v.append(1)",
]  # fmt: skip


def _handled(lines: str, classes: str) -> str:
    handler = f"except ({classes}) as error:\n    s += type(error).__name__ + str(error)"
    return f"try:\n{textwrap.indent(lines, '    ')}\n{handler}"


FAILING = [
    *(_handled(f"x = {each}\nreturn x", "TypeError, ValueError") for each in _FAILING),
    *(_handled(f"return str({each})", "Exception") for each in _FAILING),
    *(_handled(each, "TypeError, AttributeError") for each in _STATEMENTS),
    *(f"{each}\nreturn 1" for each in _STATEMENTS),
]

# Tuples of such values as keys of a dict, set or Counter, and as items.
TUPLES = [
    *(
        f"x = {made}\nkey = ({key})\n{put}\nn = ({key}) in x\nreturn n, len(x), (b, a) in x"
        for made, put in (
            ("{}", "x[key] = 2"), ("set()", "x.add(key)"), ("Counter()", "x[key] += 1"),
            ("defaultdict(int)", "x[key] += 1"), ("set()", "x.update([key, (b, a)])"),
            ("[]", "x.append(key)"), ("deque()", "x.append(key)"), ("{}", "x.setdefault(key, 1)"),
        )
        for key in ("a, b", "a, len(b)", "a, (b, 1)", "'k', a")
    ),
    "x = Counter()\nx[(a, b)] += 1\nreturn x[(a, b)], x.get((a, b)), x.get((b, 'z'), 0)",
    "x = Counter(zip(a, b))\nreturn x[(a, b)], x['a', 'b'], ('a', 'b') in x",
    "x = {(a, 1): 2}\nreturn x[a, 1], x.pop((a, 1)), x",
    "x = {k: v for k, v in zip(a, b)}\nreturn (a, b) in x.items(), x.get((a,), 'no')",
    "x = set(zip(a, b))\nx.discard((a, b))\nreturn sorted(x)",
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


CASES = [*COMPARED, *FAILING, *TUPLES]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(case, marks=[] if n % 12 == 0 else pytest.mark.slow)
        for n, case in enumerate(CASES)
    ],
)
def test_a_form_gives_what_it_gives_interpreted_or_is_refused(body: str) -> None:
    program = _program(body)
    try:
        compiled = program.compile(check=False)
    except TraceError:
        return
    agree_or_refuse(program, compiled, POOL, 8)
