"""What a program's Python reads is guarded, wherever it lies: a change of it is seen."""

from __future__ import annotations

import builtins
import decimal
import importlib
import itertools
import math
import string
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sgc

NUMBERS = itertools.count()
HEAD = """
import enum, functools, json, math, re, textwrap
from dataclasses import dataclass, field
from typing import NamedTuple
import sgc
import {package}.styles
from {package} import styles

"""
PROGRAM = """

@sgc.function
def program(s, q: str):
    s += q + {read} + sgc.gen("g", max_tokens=3)
"""


@dataclass(frozen=True)
class Case:
    """definitions: of the module; read: a text that the program reads; change: run in the module
    between two calls."""

    name: str
    definitions: str
    read: str
    change: str

    def __str__(self) -> str:
        return self.name


CASES = [
    Case("one of equal values", "A = True\nB = False\nC = True", "str(C)", "C = False"),
    Case("one of equal texts", "A = 'x'\nB = 'x'\nC = 'y'", "A + B + C", "B = 'y'"),
    Case("one of two names of a function", "def f(): return 'f'\ndef g(): return 'g'\nh = f",
         "f() + h()", "h = g"),
    Case("a module in a package", "", "{package}.styles.STYLE", "styles.STYLE = 'new'"),
    Case("a module by its name", "", "styles.STYLE", "styles.STYLE = 'new'"),
    Case("an import in a helper", "def f():\n    from {package}.styles import STYLE\n"
         "    return STYLE", "f()", "styles.STYLE = 'new'"),
    Case("a relative import", "def f():\n    from .styles import STYLE\n    return STYLE", "f()",
         "styles.STYLE = 'new'"),
    Case("getattr of a text", "", "getattr(styles, 'STYLE')", "styles.STYLE = 'new'"),
    Case("getattr of a name made when it runs", "NAME = 'STY'", "getattr(styles, NAME + 'LE')",
         "styles.STYLE = 'new'"),
    Case("a module given to a helper", "def f(m): return m.STYLE", "f(styles)",
         "styles.STYLE = 'new'"),
    Case("a base class", "class A:\n    tag = 'a'\n    def f(self): return self.tag\n"
         "class B(A): pass", "B().f()", "A.tag = 'b'"),
    Case("a method of a base class", "class A:\n    def f(self): return 'a'\nclass B(A): pass",
         "B().f()", "A.f = lambda self: 'b'"),
    Case("a hidden attribute", "class A:\n    _tag = 'a'", "A._tag", "A._tag = 'b'"),
    Case("a pattern of a class", "class A:\n    p = re.compile('a')", "A.p.pattern",
         "A.p = re.compile('b')"),
    Case("an inner class", "class A:\n    class B:\n        tag = 'a'", "A.B.tag",
         "A.B.tag = 'b'"),
    Case("what a property reads", "G = 'g'\nclass A:\n    @property\n    def p(self): return G",
         "A().p", "G = 'h'"),
    Case("what a static method reads",
         "G = 'g'\nclass A:\n    @staticmethod\n    def f(): return G", "A.f()", "G = 'h'"),
    Case("a cached property", "G = 'g'\nclass A:\n    @functools.cached_property\n"
         "    def p(self): return G", "A().p", "G = 'h'"),
    Case("another member of an enum", "class E(enum.Enum):\n    A = 'a'\n    B = 'b'\nD = E.A",
         "D.value", "D = E.B"),
    Case("a method of an enum", "class E(enum.Enum):\n    A = 'a'\n    def f(self): return 'f'\n"
         "D = E.A", "D.f()", "E.f = lambda self: 'g'"),
    Case("what an enum's method reads", "G = 'g'\nclass E(enum.Enum):\n    A = 'a'\n"
         "    def f(self): return G", "E.A.f()", "G = 'h'"),
    Case("a function of a library", "", "textwrap.fill(q, 3)", "textwrap.fill = lambda *a: 'new'"),
    Case("a value of a library", "", "str(math.tau)", "math.tau = 6"),
    Case("the order of parameters", "def f(a, b): return '<' + a + b", "f(a=q, b='k')",
         "def f(b, a): return '<' + b + a"),
    Case("a table of functions", "def f(): return 'f'\ndef g(): return 'g'\nT = dict(a=f)",
         "T['a']()", "T['a'] = g"),
    Case("a list of classes", "class A: tag = 'a'\nclass B: tag = 'b'\nT = [A]", "T[0].tag",
         "T[0] = B"),
    Case("an object's attribute", "class A: pass\nD = A()\nD.tag = 'a'", "D.tag", "D.tag = 'b'"),
    Case("an object in an object", "@dataclass\nclass A:\n    tag: str = 'a'\n"
         "@dataclass\nclass B:\n    inner: A = field(default_factory=A)\nD = B()", "D.inner.tag",
         "D.inner.tag = 'b'"),
    Case("a slot", "class A:\n    __slots__ = ('tag',)\nD = A()\nD.tag = 'a'", "D.tag",
         "D.tag = 'b'"),
    Case("a bound method", "class A:\n    tag = 'a'\n    def f(self): return self.tag\nf = A().f",
         "f()", "f.__self__.tag = 'b'"),
    Case("a partial", "def f(a, b): return a + b\nP = functools.partial(f, 'a')", "P('c')",
         "P = functools.partial(f, 'b')"),
    Case("a named tuple's default", "class P(NamedTuple):\n    x: str\n    y: str = 'y'",
         "P('x').y", "P.__new__.__defaults__ = ('z',)"),
    Case("a class made anew", "class A: tag = 'a'", "A.tag", "class A: tag = 'b'"),
    Case("the order of a set", "S = set([0, 8])", "str(list(S))", "S = set([8, 0])"),
    Case("a setting of a program", "@sgc.function(max_turns=4)\ndef p(s, n: int):\n"
         "    for i in range(3):\n        if i == n: break\n    s += str(i)", "p(3).text()",
         "@sgc.function(max_turns=4)\ndef p(s, n: int):\n    s += 'new'"),
    Case("which of two objects", "class A:\n    def __init__(self, t): self.t = t\n"
         "ONE, TWO = A('1'), A('2')\nWHICH = ONE", "ONE.t + TWO.t + WHICH.t", "WHICH = TWO"),
    Case("which of two functions of a kind",
         "def of(t): return lambda: t\nF, G = of('f'), of('g')\nWHICH = F", "F() + G() + WHICH()",
         "WHICH = G"),
    Case("a long pattern", f"P = re.compile('{'a' * 300}b')", "P.pattern[-3:]",
         f"P = re.compile('{'a' * 300}c')"),
    Case("a module by a text", "import importlib\nM = importlib.import_module",
         "importlib.import_module('{package}.styles').STYLE", "styles.STYLE = 'new'"),
    Case("an attribute in a template", "class A: tag = 'a'", "'{a.tag}'.format(a=A)",
         "A.tag = 'b'"),
    Case("what a decorated function reads", "G = 'g'\n@functools.wraps(json.dumps)\n"
         "def f(): return G", "f()", "G = 'h'"),
    Case("a function for another type", "@functools.singledispatch\ndef f(x): return 'any'",
         "f('x')", "f.register(str, lambda x: 'str')"),
    Case("a registered class", "import abc\nclass A(abc.ABC): pass\nclass B: pass",
         "str(isinstance(B(), A))", "A.register(B)"),
    Case("a name added to Python's own", "import builtins\nbuiltins.SGC_ADDED = 'a'", "SGC_ADDED",
         "builtins.SGC_ADDED = 'b'"),
    Case("a module's own look-up", "def change():\n    styles.__getattr__ = lambda name: 'new'\n"
         "styles.__getattr__ = lambda name: 'made'", "styles.MADE", "change()"),
    Case("the precision of decimals", "import decimal\nfrom decimal import Decimal",
         "str(Decimal(1) / 3)", "decimal.getcontext().prec = 4"),
    Case("a method put into a library's class", "import string",
         "string.Template('$a').substitute(a='x')",
         "string.Template.substitute = lambda self, **given: 'new'"),
    Case("a docstring", "def f():\n    'old'", "f.__doc__", "f.__doc__ = 'new'"),
]  # fmt: skip


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The module of a case, in a package with a module of styles."""

    def make(case: Case) -> Any:
        package = f"package_of_reads_{next(NUMBERS)}"
        folder = tmp_path / package
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "styles.py").write_text("STYLE = 'old'\n")
        text = HEAD + case.definitions + PROGRAM.replace("{read}", case.read)
        (folder / "module.py").write_text(text.replace("{package}", package))
        monkeypatch.syspath_prepend(str(tmp_path))
        return importlib.import_module(f"{package}.module")

    return make


def changed(module: Any, change: str) -> None:
    """Runs it in the module, from a file, so that its functions have a source."""
    file = Path(module.__file__).with_name("change.py")
    file.write_text(change)
    exec(compile(change, str(file), "exec"), vars(module))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_change_is_seen(case, made, scripted, monkeypatch):
    decimal.setcontext(decimal.Context())
    monkeypatch.setattr(builtins, "SGC_ADDED", "", raising=False)
    module = made(case)
    for library, name in ((textwrap, "fill"), (math, "tau"), (string.Template, "substitute")):
        monkeypatch.setattr(library, name, getattr(library, name))  # put back afterwards
    texts = []
    for _ in range(2):
        state = module.program("qq", backend=scripted())
        assert state.text() == module.program.run("qq", backend=scripted()).text()
        assert state.how == "compiled" or "library" in case.name
        texts.append(state.text())
        changed(module, case.change)
    assert texts[0] != texts[1]


def test_a_mock_in_place_of_a_helper_is_not_compiled_in(made, scripted):
    from unittest import mock

    module = made(Case("", "def f(): return 'f'", "f()", ""))
    assert module.program("q", backend=scripted()).how == "compiled"
    with mock.patch.object(module, "f", return_value="mocked"):
        state = module.program("q", backend=scripted())
        assert state.text().startswith("qmocked")
    assert module.program("q", backend=scripted()).text().startswith("qf")


def test_much_data_is_not_compared_at_each_call(made, scripted):
    for size, how in (
        (2_000, "compiled"),
        (30_000, "interpreted: it reads 'KNOWN', too much data"),
    ):
        module = made(Case("", f"KNOWN = {{n: [n] for n in range({size})}}", "str(KNOWN[7])", ""))
        assert module.program("q", backend=scripted()).how.startswith(how)
    module = made(Case("", "LONG = 'ab' * 100_000", "LONG[:3]", "LONG = 'ba' * 100_000"))
    assert module.program("q", backend=scripted()).text().startswith("qaba")
    changed(module, "LONG = 'ba' * 100_000")
    assert module.program("q", backend=scripted()).text().startswith("qbab")


def test_what_changes_at_each_call_is_not_traced_for_ever(made, scripted):
    module = made(Case("", "N = 0", "str(N)", ""))
    hows = []
    for number in range(12):
        module.N = number
        state = module.program("q", backend=scripted())
        assert state.text().startswith(f"q{number}")
        hows.append(state.how)
    assert hows[:9] == ["compiled"] * 9
    assert set(hows[9:]) == {"interpreted: what it reads has changed from call to call"}


@sgc.function
def deep(s, rows: list[dict[str, str]], more: list[dict[str, str]]):
    import copy

    rows = copy.deepcopy(rows)
    rows[0]["a"] = "new"
    s += rows[1]["a"] + str(rows is more) + sgc.gen("g", max_tokens=3)


def test_an_object_in_two_places_of_the_arguments(scripted):
    one = {"a": "old"}
    hows = []
    for rows, more in (
        ([dict(one), dict(one)], []),
        ([one, one], []),
        ([one, dict(one)], [one]),
        ([dict(one), dict(one)], []),
    ):
        state = deep(rows, more, backend=scripted())
        assert state.text() == deep.run(rows, more, backend=scripted()).text()
        hows.append(state.how)
    assert hows[0] == hows[3] == "compiled"
    assert hows[1] == "interpreted: argument 'rows' has a dict that is in two places"
    assert hows[2] == "interpreted: argument 'more' has a dict that is in two places"


def test_an_object_of_a_class_made_anew(made, scripted):
    text = "@dataclass\nclass A:\n    x: str\n    def f(self): return '{}' + self.x\n"
    program = "@sgc.function\ndef takes(s, a: A):\n    s += a.f() + str(type(a) is A)\n"
    module = made(Case("", text.replace("{}", "old") + program, "'x'", ""))
    old = module.A
    assert module.takes(module.A("1"), backend=scripted()).how == "compiled"
    changed(module, text.replace("{}", "new"))
    for kind, expected in ((old, "old1False"), (module.A, "new1True")):
        assert module.takes(kind("1"), backend=scripted()).text() == expected
