"""What Python itself calls of the user's code: special methods, properties, keys, callbacks.

Each expression gives compiled what it gives interpreted, or does not compile; as in
`test_cut_texts`, nothing here relies on the trace check.
"""

from __future__ import annotations

import gc
import sys
import threading
from functools import partial
from types import FunctionType
from typing import Any

import pytest
from tests_support import results

import sgc
from sgc.errors import SgcError, TraceError
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.convert import in_place

CLASSES = """
import dataclasses, enum, functools

class Held:
    def __init__(self, t):
        self.t = f"<{t}>"
        self.is_abc = f"{self.t}" == "<abc>"

    @property
    def short(self): return f"{self.t}"[:3]
    @functools.cached_property
    def same(self): return f"{self.t}." == "<abc>."
    def __str__(self): return f"{self.t}|"[:4]
    def __repr__(self): return f"Held({self.t!r})"[:8]
    def __format__(self, spec): return f"{self.t:{spec or '>9'}}"[:7]
    def __eq__(self, other): return f"{self.t}" == f"{other.t}"
    def __hash__(self): return 1
    def __lt__(self, other): return f"{self.t}" < f"{other.t}"
    def __bool__(self): return self.t == "<abc>"
    def __contains__(self, part): return f"<{part}" in self.t
    def __getitem__(self, key): return f"{self.t}{key}"[:5]
    def __getattr__(self, name): return f"{name}{self.__dict__['t']}"[:6]
    def __call__(self, t): return f"{self.t}{t}"[:6]
    def __add__(self, other): return f"{self.t}+{other.t}"[:6]
    def __iter__(self): yield f"{self.t}"[:2]; yield "b" if "b" in f"{self.t}" else "z"
    def __enter__(self): return f"{self.t}"[:3]
    def __exit__(self, kind, error, trace): return error is not None and f"{error}" == "abc!"

class Sized:
    def __init__(self, t): self.t = t
    def __len__(self): return len(self.t)
    def __int__(self): return int(self.t)

@dataclasses.dataclass(order=True)
class Point:
    a: str
    b: str = "b"
    is_abc: bool = dataclasses.field(init=False)
    def __post_init__(self): self.is_abc = "ca" in f"{self.a}{self.b}"

class Parent:
    def __init_subclass__(cls): cls.tag = f"{cls.__name__}"[:2]
    @property
    def number(self):
        try:
            return str(sum(map(int, [self.t, "3"])) + int(self.t))
        except ValueError:
            return "none"
    @property
    def kind(self): return f"{type(self.t) is str}{isinstance(self.t, str)}{max(self.t, 'b')}"
class Child(Parent):
    def __init__(self, t): self.t = t

class Bad(Exception):
    def __init__(self, t): super().__init__(f"bad {t}"[:6])
    def __str__(self): return "known" if f"{self.args[0]}" == "bad ab" else "other"

class Tone(str, enum.Enum):
    ABC = "abc"
    def shown(self): return f"{self.value}!"

@functools.singledispatch
def shown(value): return f"any {value}"[:6]
@shown.register
def _(value: str): return f"text {value}"[:7]

def key(t): return f"{t}." in ("abc.", "m.")
def fails(t):
    if "b" in f"<{t}>": raise Bad(t)
    return "fine"
"""

PROGRAM = """
import operator
from in_place_classes import *

def program(s, x, y, n: int):
    s += "q" + sgc.gen("g")
    try:
        with Held(x) as entered:
            v = {}
    except Exception as error:
        v = f"{{type(error).__name__}}: {{error}}"
    s += f"{{v}}"
    return str(v)
"""

EXPRESSIONS = (
    "Held(x).t[:3]", "Held(x).is_abc", "Held(x).short", "Held(x).same", "str(Held(x))",
    "repr(Held(x))", "f'{Held(x)}'", "f'{Held(x):>12}|{Held(y)!s}'", "'%s %r' % (Held(x), Held(y))",
    "Held(x) == Held(y)", "Held(x) != Held(y)", "Held(x) in [Held(y)]", "len({Held(x), Held(y)})",
    "sorted([Held(x), Held(y)])[0].short", "min(Held(x), Held(y)).t", "not Held(x)",
    "'t' if Held(x) else 'f'", "any([Held(x), Held(y)])", "'a' in Held(x)", "Held(x)[y]",
    "Held(x).missing", "Held(x)(y)", "Held(x) + Held(y)", "''.join(Held(x))", "entered",
    "1 / 0 if x == y else entered", "len(Sized(x))", "int(Sized(x))", "bool(Sized(x))",
    "Point(x).is_abc", "Point(x, y).is_abc", "Point(x) < Point(y)", "repr(Point(x))[:15]",
    "Child(x).number", "Child(x).kind", "Child(x).tag", "fails(x)", "Bad(x).args", "shown(x)",
    "shown([x])", "sorted([x, 'abc'], key=key)", "max([f'{x}.', 'm'], key=lambda t: key(t))",
    "[*filter(key, [x, y, 'm'])]", "[*map(str.upper, [x, y])]", "sorted([x, 'B'], key=str.lower)",
    "[*map(Tone.shown, [Tone.ABC])]", "x == Tone.ABC", "Tone.ABC == x", "Tone.ABC != f'{x}'",
    "x in Tone.ABC", "Tone.ABC < x", "f'{x}.' > Tone.ABC", "Tone.ABC + x", "Tone.ABC.join([x, y])",
    "Tone.ABC.replace('b', x)", "'a' in x == y", "x in 'abcd' in f'{y}d abcd'",
    "'b' in f'{x}.' not in 'abc.'", "'a' <= x <= y != 'b'", "x is x == y",
    "operator.attrgetter('short')(Held(x))", "sorted([Held(x), Held(y)], key=Held.__str__)[0].t",
    "x in [Tone.ABC, y]", "Tone.ABC in (x, y)", "operator.eq(Tone.ABC, x)", "operator.lt('b', x)",
    "operator.contains('abcd', x)", "operator.mod('%.2s|%s', (x, y))", "'abc'.__eq__(x)",
    "str.__lt__('abc', x)", "'abcd'.__contains__(x)", "x.__add__('!')", "0 < n <= 5",
    "x in ('abc', 'b') in [(x, y), ('abc', 'b')]",
)  # fmt: skip
VALUES = (("abc", "abc"), ("", ""), ("a", "b"), ("12", "abc"), ("yes", "no"), ("x" * 5000, "m"))


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes the program of an expression, and gives the module of the classes with it."""
    (tmp_path / "in_place_classes.py").write_text(CLASSES)
    (tmp_path / "in_place_programs.py").write_text(
        "import sgc\n"
        + "".join(
            PROGRAM.format(each).replace("def program", f"def program{number}")
            for number, each in enumerate(EXPRESSIONS)
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda n: sgc.function(getattr(__import__("in_place_programs"), f"program{n}"))
    for name in ("in_place_classes", "in_place_programs"):
        sys.modules.pop(name, None)


def outcome(run: Any) -> str:
    try:
        return repr(results(run()))
    except SgcError as error:
        return f"fails: {error.message}"


@pytest.mark.parametrize("step", [16, pytest.param(1, marks=pytest.mark.slow)])
def test_what_python_calls_is_the_same_compiled(made, scripted, step):
    refused = []
    for number, expression in [*enumerate(EXPRESSIONS)][::step]:
        program = made(number)
        try:
            compiled = program.compile(check=False)
        except TraceError:
            refused.append(expression)
            continue
        for x, y in VALUES:
            runs = [
                partial(each.run_once, {"x": x, "y": y, "n": len(x)}, RunOptions(seed=3))
                for each in (compiled, program)
            ]
            ours, theirs = (outcome(partial(run, scripted())) for run in runs)
            assert ours == theirs, (expression, x, y)
    assert len(refused) <= 5, refused  # no number of a text can be what `len` gives Python


def test_functions_have_their_own_code_again(made):
    program, seen = made(2), []
    classes = __import__("in_place_classes")
    own = classes.Held.short.fget.__code__
    before = vars(classes).keys() - {"__builtins__"}
    holding = in_place.InPlace.convert

    def convert(self, names):
        holding(self, names)
        seen.append(classes.Held.short.fget.__code__ is own)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_place.InPlace, "convert", convert)
        program.compile(check=False)
    assert False in seen
    assert classes.Held.short.fget.__code__ is own
    assert vars(classes).keys() - {"__builtins__"} == before
    assert not in_place._held


def test_traces_side_by_side_hold_what_both_need(made):
    made(0)
    classes = __import__("in_place_classes")
    function: FunctionType = classes.Held.short.fget
    own, first, second = function.__code__, in_place.InPlace(), in_place.InPlace()
    with first:
        first.convert(vars(classes))
        with second:
            second.convert(vars(classes))
        assert function.__code__ is not own
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(classes.Held("abc").short))
        thread.start()
        thread.join()
        assert found == ["<ab"]  # another thread runs what is converted, and sees no difference
    assert function.__code__ is own


def test_where_nothing_is_to_be_converted_nothing_is(monkeypatch):
    monkeypatch.setattr(gc, "get_referrers", lambda names: pytest.fail("looked for functions"))

    def program(s, x):
        s += "".join(sorted([f"{x}.", "m"], key=lambda t: f"{t}!"))

    sgc.function(program).compile()


def test_an_object_of_the_users_class_answers_comparisons(scripted):
    class Anything:
        def __eq__(self, other: object) -> bool:
            return True

        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = None  # type: ignore[assignment]

    def program(s, x):
        return x == Anything(), Anything() == x, x != Anything(), [x] == [Anything()], x == None  # noqa: E711

    compiled = sgc.function(program).compile()
    found = compiled.run(x="a", backend=scripted()).ret_value
    assert list(found) == [True, True, False, True, False]


class Hiding:
    """Its objects hold what nobody finds who looks from a module's names."""

    def __init__(self, what: type) -> None:
        self.what = what


HIDDEN = """
from test_in_place import Hiding

class Plain:
    def __init__(self, t): self.t = t
    def __lt__(self, other): return f"{self.t}" < f"{other.t}"

def hide():
    class Hidden:
        def __init__(self, t): self.t = t
        def __lt__(self, other): return f"{self.t}" > f"{other.t}"
    return Hiding(Hidden)

hiding = hide()
"""


def hidden(tmp_path, monkeypatch) -> Any:
    (tmp_path / "in_place_hidden.py").write_text(HIDDEN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "test_in_place", sys.modules[__name__])
    monkeypatch.delitem(sys.modules, "in_place_hidden", raising=False)
    return __import__("in_place_hidden")


def test_what_is_frozen_is_converted_too(tmp_path, monkeypatch):
    module = hidden(tmp_path, monkeypatch)
    gc.freeze()  # for good: what tests have imported is frozen in any case
    with in_place.InPlace() as held:
        held.convert(vars(module))
        assert id(module.Plain.__lt__) in in_place._held
        assert id(module.hiding.what.__lt__) not in in_place._held
        held.convert(vars(module))
        assert id(module.hiding.what.__lt__) in in_place._held
        assert gc.get_freeze_count() > 0


@pytest.mark.parametrize("looks", [0, 1])
def test_a_function_is_looked_for_everywhere_only_where_it_is_hidden(
    tmp_path, monkeypatch, scripted, looks
):
    """For that takes as long as the process has objects."""
    module, looked = hidden(tmp_path, monkeypatch), []
    look = gc.get_referrers
    monkeypatch.setattr(gc, "get_referrers", lambda names: looked.append(names) or look(names))

    def program(s, x):
        least = min([module.Plain(f"{x}."), module.Plain("m")])
        s += "first" if f"{least.t}" == "m" else "second"
        if looks:
            most = min([module.hiding.what(f"{x}."), module.hiding.what("m")])
            s += "second" if f"{most.t}" == "m" else "first"

    function = sgc.function(program)
    compiled = function.compile(check=False)
    assert looked == [vars(module)] * looks
    for x in ("a", "b", "z"):
        ours, theirs = (each.run(x=x, backend=scripted()) for each in (compiled, function))
        assert ours.text() == theirs.text()


def test_a_class_whose_file_was_changed_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "in_place_changed.py"
    file.write_text("class Held:\n    @property\n    def t(self): return f'<{self.x}>'\n")
    monkeypatch.syspath_prepend(tmp_path)
    import in_place_changed

    def program(s, x):
        held = in_place_changed.Held()
        held.x = x
        s += "a" if held.t == "<a>" else "b"

    file.write_text("# another line\n" + file.read_text())
    with pytest.raises(TraceError, match="t cannot be traced: its file was changed"):
        sgc.function(program).compile(check=False)
