"""Converted functions do on plain values what they do unconverted: results, errors, lines."""

from __future__ import annotations

import ast
import functools
import linecache
import sys
import textwrap
import traceback
import zipfile
from types import CodeType, FunctionType
from typing import Any

import pytest

import sgc
from sgc.errors import TraceError
from sgc.tracing.code.operator_names import OPERATORS as NAMES
from sgc.tracing.convert import source
from sgc.tracing.convert.module_names import ModuleNames
from sgc.tracing.convert.source import NoSource, converted
from sgc.tracing.operators import OPERATORS
from sgc.tracing.tracer import trace

ORDER = """
def program(note):
    a, b, c = note(1, "a%s"), note(2, "b"), note(3, "c")
    t = f"{note(4, a)!r:>{note(5, 12)}}{note(6, b)}" + note(7, "%s|%s") % (note(8, a), note(9, b))
    t %= () if "%" not in t else tuple("x" * t.count("%s"))
    hit = note(10, "b") in note(11, [a, b]) and note(12, "z") not in note(13, {b: c})
    u = note(14, ", ").join(note(15, str(i)).zfill(note(16, 3)) for i in range(note(17, 3)))
    v = note(18, "{} {k}").format(*note(19, [1]), **note(20, {"k": 2}))
    w = [x.upper() for x in note(21, [a, b]) if x in "abc"] + [y := note(22, "y")]
    d = {note(23, "k"): note(24, "v")}
    d[note(25, "k")] += note(26, "!")
    return t, hit, u, v, w, y, d, note(27, b).replace(note(28, "b"), note(29, "q")), ascii("é")
"""


class Counter:
    """A class with what needs its context: super, name mangling, properties, class cells."""

    made = 0

    def __init__(self, start: int) -> None:
        self.__at = start
        type(self).made += 1

    def __str__(self) -> str:
        return f"<{self.__at}>".center(7)

    @property
    def at(self) -> str:
        return "%d" % self.__at  # noqa: UP031

    def up(self, by: int = 1, *, times: int = 1) -> Counter:
        self.__at += by * times
        return self


class Loud(Counter):
    def __str__(self) -> str:
        return super().__str__().upper() + f"{self.at}" + __class__.__name__


def closures(n: int) -> list[str]:
    def inner(x: str) -> str:
        nonlocal n
        n += 1
        return f"{x}{n}".strip() if "a" in x else "%s-%s" % (x, n)  # noqa: UP031

    pair = (lambda x: f"{x}!", lambda x: x in "abc")
    return [inner(x) for x in ("a", "b")] + [str(each("a")) for each in pair]


def generators(words: list[str]) -> Any:
    def each() -> Any:
        got = None
        for word in words:
            got = yield f"{got}:{word}".upper()
        return "done".title()

    stream = each()
    found = [next(stream)]
    try:
        while True:
            found.append(stream.send(len(found)))
    except StopIteration as error:
        return found, error.value


def matched(value: Any) -> str:
    match value:
        case str(text) if text in ("a", "b"):
            return f"letter {text}"
        case {"k": [first, *rest]}:
            return f"{first}+{len(rest)}".join("<>")
        case Counter(at=at):
            return "at %s" % at  # noqa: UP031
        case _:
            return "other".removesuffix("r")


def failing(kind: str) -> str:
    try:
        if "zero" in kind:
            return f"{1 / 0}"
        return "%d" % kind  # type: ignore[str-format]  # noqa: UP031
    except ZeroDivisionError:
        raise
    finally:
        kind = f"{kind}."


def made(function: FunctionType) -> FunctionType:
    """The function converted, with the operators among its builtins."""
    copy = FunctionType(
        converted(function.__code__), {**function.__globals__, **OPERATORS}, function.__name__,
        function.__defaults__, function.__closure__,
    )  # fmt: skip
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def observed(function: Any, *args: Any) -> Any:
    """What a call gives or raises, the places of the error, and the lines that ran."""
    lines: list[tuple[str, int]] = []

    def on_line(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != __file__:
            return None
        if event == "line":
            lines.append((frame.f_code.co_name, frame.f_lineno))
        return on_line

    sys.settrace(on_line)
    try:
        outcome: Any = repr(function(*args))
    except Exception as error:
        sys.settrace(None)
        frames = traceback.extract_tb(error.__traceback__)
        places = [(f.name, f.lineno, f.colno) for f in frames if f.filename == __file__][1:]
        outcome = type(error), str(error), places
    finally:
        sys.settrace(None)
    return outcome, lines


CALLS = [
    (closures, 3), (generators, ["a", "b"]), (matched, "a"), (matched, {"k": [1, 2]}),
    (matched, Counter(3)), (matched, None), (failing, "zero"), (failing, "x"),
    (Loud.__str__, Loud(4)), (Counter.up, Counter(1), 2), (textwrap.dedent, "  a\n  b"),
    (textwrap.TextWrapper.wrap, textwrap.TextWrapper(width=9), "some words to be wrapped"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args"), [(call[0], call[1:]) for call in CALLS])
def test_results_errors_places_and_lines_are_the_same(function, args):
    assert observed(made(function), *args) == observed(function, *args)


def test_operands_are_evaluated_once_and_in_order():
    file = "converted_order.py"
    linecache.cache[file] = (len(ORDER), None, ORDER.splitlines(True), file)
    namespace: dict[str, Any] = {}
    exec(compile(ORDER, file, "exec"), namespace)
    program, seen = namespace["program"], ([], [])

    def note(into, number, value):
        into.append(number)
        return value

    first = program(functools.partial(note, seen[0]))
    second = made(program)(functools.partial(note, seen[1]))
    assert first == second
    assert seen[0] == seen[1]
    assert set(seen[0]) == set(range(1, 30))


def _codes(code: CodeType) -> Any:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@pytest.mark.sweep
@pytest.mark.parametrize("module", ["textwrap", "string", "argparse", "dataclasses", "typing"])
def test_every_function_of_a_module_has_its_counterpart(module):
    file = __import__(module).__file__
    text = "".join(linecache.getlines(file))
    code = compile(text, file, "exec", dont_inherit=True)
    functions = [each for each in _codes(code) if each is not code]
    assert len(functions) > 15
    for function in functions:
        its = converted(function)
        assert (its.co_name, its.co_firstlineno, its.co_freevars) == (
            function.co_name, function.co_firstlineno, function.co_freevars,
        )  # fmt: skip
        own = [name for name in its.co_varnames if not name.startswith("__sgc_")]
        assert sorted(own) == sorted(function.co_varnames)
        assert converted(its) is its


def test_annotations_and_decorators_stay():
    tree = ast.parse(
        "@f('a')\ndef g(x: f('b') = f('c'), *y: f('d')) -> f('e'):\n    z: f('h') = f('i')\n"
    )
    shown = ast.unparse(source.convert(tree, ModuleNames.of(tree)))
    assert shown.count("__sgc_callee__") == 2
    assert "f('b')=__sgc_text__" in shown.replace(" ", "")


def test_two_lambdas_on_a_line_are_told_apart():
    first, second = (lambda x: f"{x}a"), (lambda x: f"{x}bb")
    assert (made(first)("-"), made(second)("-")) == ("-a", "-bb")


def test_without_source_a_program_is_interpreted_and_says_so(scripted):
    namespace: dict[str, Any] = {"sgc": sgc}
    exec("def program(s, x):\n    s += f'{x}!'[:3] + sgc.gen('g')\n", namespace)
    program = sgc.function(namespace["program"])
    with pytest.raises(TraceError, match="no source"):
        trace(program)
    assert program(x="abcdef", backend=scripted()).text().startswith("abc")
    assert "no source" in program.explain()


def test_a_file_changed_since_its_import_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "changed_program.py"
    file.write_text("def program(s, x):\n    s += f'{x}!'\n")
    monkeypatch.syspath_prepend(tmp_path)
    import changed_program

    file.write_text("# another line\ndef program(s, x):\n    s += f'{x}?'\n")
    with pytest.raises(NoSource, match="changed since"):
        converted(changed_program.program.__code__)
    with pytest.raises(TraceError, match="changed since"):
        trace(sgc.function(changed_program.program))


HELPERS = """
def cut(x):
    return f"<{x}>"[:10]

class Prompt:
    def __init__(self, x):
        self.x = x

    def render(self):
        return f"{self.x}."

    def same(self, y):
        return f"{self.x}." == f"{y}."
"""


def test_helpers_of_other_modules_and_methods_are_converted(tmp_path, monkeypatch, scripted):
    (tmp_path / "helpers_elsewhere.py").write_text(HELPERS)
    monkeypatch.syspath_prepend(tmp_path)
    import helpers_elsewhere
    from helpers_elsewhere import Prompt, cut

    @sgc.function
    def program(s, a, b):
        prompt = Prompt(a)
        s += cut(a) + helpers_elsewhere.cut(b) + prompt.render()[:3]
        s += "same" if prompt.same(b) else "other"

    compiled = program.compile(check=False)
    for a, b in (("x" * 50, "y"), ("same", "same"), ("", "")):
        texts = [p.run(a=a, b=b, backend=scripted(), seed=1).text() for p in (compiled, program)]
        assert texts[0] == texts[1]


def test_operators_are_named_once():
    assert OPERATORS.keys() == NAMES


CELL = """
import sgc

def helper(t):
    return f"<{t}>"[:4]

def program(s, x):
    s += helper(x) + sgc.gen("g", stop="b") + "%s" % x
"""


def test_cells_of_notebooks_are_found(scripted):
    """A notebook compiles each statement of a cell by itself."""
    file = "ipykernel_cell.py"
    linecache.cache[file] = (len(CELL), None, CELL.splitlines(True), file)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for statement in ast.parse(CELL, file).body:
        exec(compile(ast.Module([statement], []), file, "exec"), namespace)
    program = sgc.function(namespace["program"])
    compiled = program.compile(check=False)
    texts = [p.run(x="abcdef", backend=scripted(), seed=1).text() for p in (compiled, program)]
    assert texts[0] == texts[1]


def test_a_module_in_an_archive_has_its_source(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("archived_program.py", CELL)
    monkeypatch.syspath_prepend(tmp_path / "archive.zip")
    import archived_program

    trace(sgc.function(archived_program.program))


def test_a_large_file_is_read_once(tmp_path, monkeypatch):
    many = "".join(f"def f{n}(a, b):\n    return f'{{a}}{n}' + b % a\n" for n in range(400))
    (tmp_path / "large_program.py").write_text(CELL + many)
    monkeypatch.syspath_prepend(tmp_path)
    import large_program

    asked, found = [], source._converted
    monkeypatch.setattr(source, "_converted", lambda *args: asked.append(args) or found(*args))
    trace(sgc.function(large_program.program))
    assert len(asked) == 2  # the program and its helper, of the 402 functions


def test_calls_are_taken_out_of_expressions_in_order():
    """A call on its own is a place where ways can merge; what could tell the order keeps it."""
    log: list[str] = []
    n = 0

    def note(value: int) -> int:
        nonlocal n
        n += value
        log.append(f"{value}")
        return value

    class Held:
        total = 1

        def add(self) -> int:
            self.total += 10
            return self.total

    def program(xs: list[int]) -> list[object]:
        held, found = Held(), [0]
        found += [n + note(1), note(2) + n, str(abs(note(3))), f"{xs} {xs.append(4)} {xs}"]
        found += [held.total + held.add(), held.add() + held.total]
        total = 1
        total += note(5) + sum(note(x) for x in xs)
        found.append(f"{n} {sum(note(x) for x in xs)} {n}")
        found.append(1 > note(6) > note(7))
        found.append(0 < note(8) < note(9))
        found.append((note(0) and note(10)) or note(11))
        found.append(note(12) if note(0) else note(13))
        return [*found, total, [note(x) + n for x in xs]]

    wanted = program([1, 2])
    before, n, log[:] = [*log], 0, []
    assert made(program)([1, 2]) == wanted
    assert log == before


def test_a_file_is_read_in_parts(tmp_path, monkeypatch):
    """Statements that share lines, separators that only `splitlines` knows, and decorators."""
    (tmp_path / "parts_of_a_file.py").write_text(
        'odd = "a\x0cb\x1cc\u2028d"\n'
        'one = lambda x: f"{x}1"; two = lambda x: f"{x}2"\n'
        "def same(f):\n    return f\n\n"
        "@same\n@(lambda f: f)\n"
        'def three(x):\n    """a\n    b"""\n    return [f"{y}3" for y in x]\n'
        'class Four:\n    @staticmethod\n    def five(x): return f"{x}5"\n'
        'if odd:\n    def six(x): return f"{x}6"\nelse:\n    def six(x): return f"{x}7"\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    import parts_of_a_file as found

    functions = [found.one, found.two, found.three, found.Four.five, found.six]
    assert [made(each)("x") for each in functions] == ["x1", "x2", ["x3"], "x5", "x6"]
    for function in functions:
        assert "__sgc_text__" in _names_inside(function)


def _names_inside(function: Any) -> set[str]:
    return {name for code in _codes(converted(function.__code__)) for name in code.co_names}
