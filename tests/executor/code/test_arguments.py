"""A run shares nothing with its caller; the tables of names agree."""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict, defaultdict, deque
from random import Random
from typing import Any

import pytest

from sgc.ir.code import CodeError, parse_code
from sgc.ir.code_names import BUILTINS, LIBRARY
from sgc.runtime.executor.code.fuel import NotAllowed
from sgc.runtime.executor.code.library import TABLES
from sgc.runtime.executor.code.methods.builtin_functions import BUILTIN_VALUES
from sgc.runtime.executor.code.run import run_code
from sgc.runtime.executor.interface.value_limits import LimitExceeded

CHANGES = """
x[0] = 9
x.append(1)
x[1].append(2)
x[1][0] = 3
x[2]["k"] = 1
x[2].update(a=1)
x[2]["d"].add(5)
x += [1]
x *= 2
del x[0]
del x[2]["d"]
x.sort(key=str)
x[3].popleft()
x[4]["new"]
x[4]["new"].append(1)
x[5].update("abc")
x[6].move_to_end("a")
x[7].random()
x[1:2] = []
[x[0] for x[0] in [5]]
for x[0] in [7]: pass
y = x; y.append(1)
(lambda v: v.append(1))(x)
list(map(x.append, [1]))
add = x.append; add(4)
list.append(x, 4)
g = list.append; g(x, 5)
heapq.heappush(x[1], 0)
push(x[1], 0)
bisect.insort(x[1], 0)
random.Random(1).shuffle(x)
x[2] |= {"z": 1}
x[2].setdefault("q", []).append(1)
x, x[0] = x, 5
x[2].pop("d")
x[1].clear()
x[1].reverse()
""".strip().splitlines()


def _argument() -> list[Any]:
    return [1, [3, 2], {"d": {1}}, deque([1, 2]), defaultdict(list, a=[1]), Counter("aab"),
            OrderedDict([("a", 1), ("b", 2)]), Random(3)]  # fmt: skip


def _state(value: list[Any]) -> str:
    return repr([*value[:-1], value[-1].getstate()])


@pytest.mark.parametrize("change", CHANGES)
def test_arguments_stay_as_they_are(change: str) -> None:
    given = _argument()
    imports = "import bisect, heapq, random\nfrom heapq import heappush as push\n"
    run_code(f"{imports}def f(x):\n    {change}\n    return 1\n", [given])
    assert _state(given) == _state(_argument())


def test_a_result_is_no_argument_where_code_changes_values() -> None:
    given: list[Any] = [[1]]
    result = run_code("def f(x):\n    x[0].append(2)\n    return x\n", [given])
    assert result == [[1, 2]]
    assert given == [[1]]


def test_a_run_begins_with_new_constants() -> None:
    source = "SEEN = []\ndef f(x):\n    SEEN.append(x)\n    return len(SEEN)\n"
    assert [run_code(source, [n]) for n in range(3)] == [1, 1, 1]


def test_shared_parts_of_an_argument_stay_shared() -> None:
    inner: list[Any] = []
    source = "def f(x):\n    x[0].append(1)\n    return x[1], x[0] is x[1]\n"
    assert run_code(source, [[inner, inner]]) == ([1], True)
    assert copy.copy(inner) == []


def test_a_factory_of_a_constant_gives_copies() -> None:
    head = "from collections import defaultdict\n"
    made = run_code(head + "def f():\n    return defaultdict(always([0]), {'b': 1})\n", [])
    made["x"].append(1)
    assert (made, made["y"]) == ({"b": 1, "x": [0, 1], "y": [0]}, [0])
    again = run_code("def f(d):\n    d['z'].append(2)\n    return d\n", [made])
    assert (again["z"], "z" in made) == ([0, 2], False)
    for value in ("[0] * 999", "(x for x in [])", "len"):
        with pytest.raises((NotAllowed, LimitExceeded)):
            run_code(f"{head}def f():\n    return defaultdict(always({value}))\n", [])
    with pytest.raises(NotAllowed):
        run_code(head + "def f():\n    return str(defaultdict(always(0)))\n", [])


def test_tables_of_names_agree() -> None:
    of_runs = {"always", "cached", "refused", "unchanged"}  # `run.py` has these
    assert {*BUILTIN_VALUES, *of_runs} == set(BUILTINS)
    assert set(TABLES) == set(LIBRARY)
    for module, names in LIBRARY.items():
        assert set(TABLES[module]) == set(names), module


MALFORMED = [
    "",
    "x = 1",
    "def f(",
    "def f(): pass\nf()",
    "def f(*a): pass",
    "def f(a=1): pass",
    "def f(*, a): pass",
    "def f(**k): pass",
    "def f(): return " + "(" * 5000 + ")" * 5000,
    "def f(): return " + "-" * 15000 + "1",
    "def f(): return " + "1+" * 9000 + "1",
    "def f(): return " + "a." * 9000 + "b",
    "def f(): return " + "[" * 70 + "]" * 70,
    "def f():\n" + "".join(" " * n + "if 1:\n" for n in range(1, 90)) + " " * 95 + "pass",
    "def f(x):\n if x: pass\n" + " elif x: pass\n" * 1400,
    "def f(): return 1" + " " * 20000,
    "def f(): return '\0'",
    "def f(): return " + "9" * 5000,
    "def f(): break",
    "def f():\n    for i in x: pass\n    else: continue\n",
    "def f(a, a): return 1",
    "def f():\n    nonlocal x\n    return 1\n",
    "def f(): return \ud800",
]


@pytest.mark.parametrize("source", MALFORMED, ids=lambda source: ascii(source[:30]))
def test_what_is_no_code_is_refused(source: str) -> None:
    with pytest.raises(CodeError):
        run_code(source, [])


def test_code_holds_its_parts() -> None:
    code = parse_code("import re\nfrom math import pi as p\nK = 1\ndef g(): pass\ndef f(a): pass\n")
    assert set(code.imports) == {"re", "p"}
    assert [each.name for each in code.functions] == ["g", "f"]
    assert code.entry.name == "f"
    assert len(code.constants) == 1


def test_what_is_no_data_says_what_to_give_instead() -> None:
    hints = {"lambda x: x": "call the function", "iter([1])": "give list", "int": "its name"}
    for value, hint in hints.items():
        with pytest.raises(NotAllowed) as refused:
            run_code(f"def f():\n    return {value}\n", [])
        assert hint in (refused.value.hint or "")
