"""Pieces that can be traced neither as nodes nor as code: they run in Python, between the nodes."""

from __future__ import annotations

import sys
import textwrap
import warnings
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from control_flow import outcome, replying
from placed_lines import PLACES, POOL, program_at, run_at

from sgc.errors import DeoptReached, ProgramError, SgcWarning, TraceError
from sgc.ir.analysis.host_calls import pieces_in_python
from sgc.ir.analysis.interpreted import left_of
from sgc.ir.file.sgir import from_bytes, to_bytes
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions

# Lines that only Python can run, using a text `x` of the run, and which give data.
LINES = (
    "s += ','.join(fnmatch.filter(x.split(','), 'a*'))",
    "s += 'even' if zlib.crc32(x.encode()) % 2 == 0 else 'odd'",
    "w = binascii.hexlify(x.encode()).decode(); s += w",
    "s += str([zlib.crc32(y.encode()) for y in x.split(',')])",
)


def _compiled(function: Any) -> Program:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SgcWarning)
        return function.compile(partial=True)  # type: ignore[no-any-return]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("place", "line"),
    [(place, LINES[n % len(LINES)]) for n, place in enumerate((*PLACES, "arm", "helper", "loop"))],
)
def test_a_piece_runs_where_it_stands(place: str, line: str) -> None:
    function = program_at(place, line, LINES)
    program = _compiled(function)
    assert pieces_in_python(program.graph)
    assert left_of(program.graph) is None
    left: list[RunOptions] = []
    for level in (0, 1, 2):
        each = program.with_graph(optimize(program.graph, level))
        for seed in range(6):
            assert run_at(each, function, seed, left) == run_at(function, function, seed), seed
    assert not left


LIBRARY = """
import zlib
from contextvars import ContextVar
LOG = []
TONE = ContextVar("tone", default="plain")

class Truth:
    def __bool__(self):
        return True

class Number:
    def __init__(self, n):
        self.n = n

    def __gt__(self, other):
        return Truth() if self.n > other else False

def toned(x):
    return TONE.get() + str(zlib.crc32(x.encode()))

def size(x):
    return Number(zlib.crc32(x.encode()) % 3)

def note(x):
    LOG.append(("note", zlib.crc32(x.encode()) * 0, x))
    return len(LOG)

def grown(x, xs):
    xs.append(zlib.crc32(x.encode()) * 0)
    return len(xs)

def own(x):
    return object() if zlib.crc32(x.encode()) >= 0 else None

def same(x, xs):
    return xs if zlib.crc32(x.encode()) else xs

class Refused(ValueError):
    pass

def picky(x):
    if zlib.crc32(x.encode()) % 2:
        raise Refused("odd: " + x)
    return "even"
"""
HEAD = """
import a_library, zlib
import sgc

@sgc.tool
def tell(x: str) -> str:
    a_library.LOG.append(("tell", 0, x))
    return x
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("p") / "site-packages"
    folder.mkdir()
    (folder / "a_library.py").write_text(LIBRARY)
    sys.path.insert(0, str(folder))
    import a_library

    yield a_library
    sys.path.remove(str(folder))
    del sys.modules["a_library"]


def _function(tmp_path: Path, body: str, after: str = "") -> Any:
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    source = f"{HEAD}\n@sgc.function\ndef program(s, q: str):\n{lines}\n{after}"
    file = tmp_path / "prog.py"
    file.write_text(source)
    module = ModuleType("prog")
    module.__file__ = str(file)
    exec(compile(source, str(file), "exec"), vars(module))
    return module.program


def _agree(function: Any, n: int = 8) -> Program:
    """Compares runs."""
    program, left = _compiled(function), list[RunOptions]()
    for seed in range(n):
        assert run_at(program, function, seed, left) == run_at(function, function, seed), seed
    assert not left
    return program


BEFORE = 's += q + sgc.gen("a", max_tokens=9)\nx = s["a"]\n'


def test_its_failures_go_to_handlers(library: Any, tmp_path: Path) -> None:
    body = (
        BEFORE
        + """
try:
    s += a_library.picky(x)
except a_library.Refused as e:
    s += f"refused ({e})"
s += sgc.gen("z", max_tokens=2)
"""
    )
    assert pieces_in_python(_agree(_function(tmp_path, body)).graph)


def test_a_failure_that_nothing_handles_ends_the_run_as_it_is(library: Any, tmp_path: Path) -> None:
    body = BEFORE + "s += a_library.picky(x)\ns += sgc.gen('z', max_tokens=2)"
    function = _function(tmp_path, body)
    program = _compiled(function)
    for seed in range(8):
        wanted, found = (
            outcome(partial(each.run_once, {"q": "x"}, RunOptions(seed=seed), replying(seed, POOL)))
            for each in (function, program)
        )
        assert found == wanted


def test_tools_and_pieces_keep_their_order(library: Any, tmp_path: Path) -> None:
    body = (
        BEFORE
        + """
for n in range(3):
    tell(x + str(n))
    s += str(a_library.note(x) > 0)
    tell("then")
"""
    )
    function = _function(tmp_path, body)
    program, logs = _compiled(function), list[Any]()
    for each in (function, program):
        library.LOG.clear()
        options = RunOptions(seed=1)
        each.run_once({"q": "x"}, options, replying(1, POOL))
        logs.append([*library.LOG])
    assert logs[0] == logs[1]
    assert len(logs[0]) == 9


def test_it_runs_in_the_context_of_the_caller(library: Any, tmp_path: Path) -> None:
    function = _function(tmp_path, BEFORE + "s += str(a_library.toned(x))")
    token = library.TONE.set("loud")
    try:
        state = function("x", backend=replying(1, POOL), seed=1)
    finally:
        library.TONE.reset(token)
    assert "compiled" in function.explain()
    assert "loud" in state.text()
    assert "plain" in function("x", backend=replying(1, POOL), seed=1).text()


def test_a_comparison_that_is_only_tested_may_give_anything(library: Any, tmp_path: Path) -> None:
    body = BEFORE + "s += 'more' if a_library.size(x) > 0 else 'none'\ns += sgc.gen('z')"
    function = _function(tmp_path, body)
    assert pieces_in_python(_agree(function).graph)
    function("x", backend=replying(1, POOL), seed=1)
    assert "interpreted" not in function.explain()
    kept = _function(tmp_path, BEFORE + "y = a_library.size(x) > 0\ns += str(y is True)")
    kept("x", backend=replying(1, POOL), seed=1)  # else it is not certain that it is a bool
    assert "interpreted" in kept.explain()


def test_compiling_runs_none(library: Any, tmp_path: Path) -> None:
    library.LOG.clear()
    program = _compiled(_function(tmp_path, BEFORE + "s += str(a_library.note(x))"))
    assert pieces_in_python(program.graph)
    assert not library.LOG


@pytest.mark.parametrize(
    "line",
    [
        "a_library.grown(x, xs)",  # changes its argument
        "y = a_library.own(x)\ns += str(y is None)",  # gives an object
        "y = a_library.same(x, xs)\ns += str(len(y))",  # gives its argument
    ],
)
def test_what_is_no_data_ends_a_run_and_a_call_is_interpreted(
    library: Any, tmp_path: Path, line: str
) -> None:
    body = f"{BEFORE}xs = [x, 'b']\n{line}\ns += sgc.gen('z', max_tokens=2) + xs[-1 * len(xs)]"
    function = _function(tmp_path, body)
    program = _compiled(function)
    assert pieces_in_python(program.graph)
    with pytest.raises(ProgramError, match="a_library"):
        program.run_once({"q": "x"}, RunOptions(seed=1), replying(1, POOL))
    state = function("x", backend=replying(1, POOL), seed=1)  # it is not certain, so interpreted
    assert state.text() == function.run("x", backend=replying(1, POOL), seed=1).text()


def test_a_file_of_it_ends_there_without_its_source(library: Any, tmp_path: Path) -> None:
    function = _function(tmp_path, BEFORE + "s += str(a_library.note(x) > 0) + sgc.gen('z')")
    loaded = Program(from_bytes(to_bytes(_compiled(function).graph)))
    with pytest.raises(DeoptReached, match=r"a_library.note\(x\) > 0\) runs in Python"):
        loaded.run_once({"q": "x"}, RunOptions(seed=1), replying(1, POOL))
    left: list[RunOptions] = []
    assert run_at(loaded, function, 1, left) == run_at(function, function, 1)
    assert len(left) == 1


def test_a_piece_of_another_text_is_not_taken(library: Any, tmp_path: Path) -> None:
    line = BEFORE + "s += str(a_library.note(x) > 0)"
    program = _compiled(_function(tmp_path, line))
    other = _compiled(_function(tmp_path, line.replace("> 0", "> 1")))
    mixed = Program(program.graph, other.tools)
    with pytest.raises(DeoptReached):
        mixed.run_once({"q": "x"}, RunOptions(seed=1), replying(1, POOL))


def test_a_whole_graph_has_none(library: Any, tmp_path: Path) -> None:
    function = _function(tmp_path, BEFORE + "s += str(a_library.note(x))")
    for compiling in (function.compile, partial(_full, function)):
        with pytest.raises(TraceError, match=r"a_library\.py"):
            compiling()


def _full(function: Any) -> Program:
    function.full_graph = True
    return _compiled(function)


def test_calls_are_compiled(library: Any, tmp_path: Path) -> None:
    function = _function(tmp_path, BEFORE + "s += str(a_library.note(x) > 0)")
    state = function("x", backend=replying(1, POOL), seed=1)
    assert state.text() == function.run("x", backend=replying(1, POOL), seed=1).text()
    assert not state.how.startswith("interpreted")
    assert "compiled" in function.explain()


def test_functions_of_the_program_are_traced_and_not_called(library: Any, tmp_path: Path) -> None:
    body = BEFORE + "y = helper(x)\ns += zlib.crc32(y.encode()) % 2 * 'odd' + helper('b')"
    helper = "def helper(x):\n    tell(x)\n    return x + 'b'"
    function = _function(tmp_path, body, helper)
    program = _agree(function)
    (piece,) = pieces_in_python(program.graph)
    assert "helper" not in piece.text("source")


def test_what_takes_nothing_of_the_run_is_none(library: Any, tmp_path: Path) -> None:
    """Nothing would say when a clock is read, before a generation or behind it."""
    function = _function(tmp_path, BEFORE + "import time\ns += str(time.time() > 1)")
    program = _compiled(function)
    assert not pieces_in_python(program.graph)
    assert left_of(program.graph) is not None


def test_what_surely_gives_a_set_is_none(library: Any, tmp_path: Path) -> None:
    """What follows it is left to the interpreter; a run would end there with an error."""
    body = "found = []\nfor w in BANNED & set(x.split()):\n    found.append(w)\ns += str(found)"
    function = _function(tmp_path, BEFORE + body, "BANNED = frozenset({'even', 'odd', 'a', 'b'})")
    program = _compiled(function)
    assert not pieces_in_python(program.graph)
    assert left_of(program.graph) is not None
    for seed in range(4):
        assert run_at(program, function, seed) == run_at(function, function, seed), seed


def test_it_is_told_with_its_line(library: Any, tmp_path: Path) -> None:
    function = _function(tmp_path, BEFORE + "s += str(a_library.note(x) > 0)")
    with pytest.warns(SgcWarning, match=r"runs 1 piece in Python: str\(a_library.note\(x\) > 0\)"):
        function.compile(partial=True)
