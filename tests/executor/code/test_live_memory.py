"""Code on live objects: one memory for a run, within bounds, in the program's order."""

from __future__ import annotations

import pytest

from sgc.errors import ProgramError, SgcError
from sgc.ir.text.parser import parse
from sgc.ir.verify import find_breaches
from sgc.programs.program import Program
from sgc.runtime.executor.code.live import Memory
from sgc.runtime.executor.interface.value_limits import LimitExceeded

ADD = "def add(xs, x):\n    xs.append(x)\n    return xs"


def graph_of(body: str) -> Program:
    text = 'sgir 1\nprogram @p(%x: text) {\n  %s0 = stream "p" path="p"\n'
    return Program(parse(f'{text}{body}\n  publish %s0 "p" keys=[] items=[]\n  return %r\n}}'))


def test_all_that_have_an_object_see_its_changes(scripted) -> None:
    program = graph_of(
        '  %a: live = perform "def new(x):\\n    return [x]" [%x]\n'
        '  %b: live = perform "def same(a):\\n    return a" [%a]\n'
        f"  %c: live = perform {_quoted(ADD)} [%b, 1]\n"
        '  %r: json = perform "def told(a, c):\\n    return [a, a is c]" [%a, %c]'
    )
    assert program.run(x="q", backend=scripted()).ret_value == [["q", 1], True]


@pytest.mark.parametrize(
    ("gives", "told"), [("[x]", "1 values"), ("[x, x, x]", "3 values"), ("x", "str")]
)
def test_code_gives_as_many_values_as_the_graph_says(scripted, gives: str, told: str) -> None:
    """More were dropped without a word, and fewer ended the run with an error of no type."""
    program = graph_of(f'  %r: json, %b: json = perform "def two(x):\\n    return {gives}" [%x]')
    with pytest.raises(ProgramError, match=f"code gave {told}, which the graph says are 2"):
        program.run(x="q", backend=scripted())


def test_what_a_program_returns_is_a_copy(scripted) -> None:
    program = graph_of(
        '  %a: live = perform "def new(x):\\n    return [x]" [%x]\n'
        '  %r: json = perform "def told(a):\\n    return a" [%a]\n'
        f"  %c: live = perform {_quoted(ADD)} [%a, 1]"
    )
    assert program.run(x="q", backend=scripted()).ret_value == ["q"]


def test_a_failure_ends_the_run_or_is_told(scripted) -> None:
    fails = '"def bad(x):\\n    return int(x)" [%x]'
    with pytest.raises(SgcError, match="invalid literal"):
        graph_of(f"  %r: live = perform {fails}").run(x="q", backend=scripted())
    caught = graph_of(
        f"  %v: live = perform {fails} catches=true\n  %r, %why, %kind, %of = outcome %v"
    )
    assert caught.run(x="q", backend=scripted()).ret_value is False


def test_no_other_op_takes_a_live_object() -> None:
    text = (
        'sgir 1\nprogram @p() {\n  %a: live = perform "def new():\\n    return []" []\n'
        '  %n: int = compute "len" [%a]\n  return %n\n}'
    )
    assert all("of type live" in each.message for each in find_breaches(parse(text)))
    assert find_breaches(parse(text))


def test_constants_are_one_and_are_not_changed() -> None:
    memory, table = Memory(), "TABLE = unchanged([[1], [2]])"
    first = memory.call(f"{table}\ndef f():\n    return TABLE[0]", ())
    assert memory.call(f"{table}\ndef g(x):\n    return x is TABLE[0]", (first,)) is True
    with pytest.raises(ProgramError, match="changes a value that is not its own"):
        memory.call(ADD, (first, 3))


def test_iterators_and_functions_go_on_in_the_next_code() -> None:
    memory = Memory()
    each = memory.call("def f():\n    return (n * n for n in range(3))", ())
    step = "def g(it):\n    for n in it:\n        return n"
    assert [memory.call(step, (each,)) for _ in range(4)] == [0, 1, 4, None]


def test_steps_are_bounded_for_all_of_a_run() -> None:
    memory = Memory(left=1_500)
    code = "def f():\n    n = 0\n    for x in range(150):\n        n += x\n    return n"
    memory.call(code, ())
    memory.left = min(memory.left, 100)
    with pytest.raises(LimitExceeded):
        memory.call(code, ())


def test_equal_texts_are_not_said_to_be_one() -> None:
    memory = Memory()
    code = "def f(a, b):\n    return a is b"
    assert memory.call(code, ("a b", None)) is False
    one, other = "a b", "".join(["a ", "b"])
    assert memory.call(code, (one, one)) is True
    with pytest.raises(ProgramError, match="are one by `is`"):
        memory.call(code, (one, other))


def test_results_of_a_cached_function_are_one_for_all_code_of_a_run() -> None:
    memory = Memory()
    made = "def g_own(x):\n    return [x]\ng = cached(g_own, 'def g')\n"
    first = memory.call(f"{made}def f(x):\n    return g(x)", ("a",))
    first.append("b")
    assert memory.call(f"{made}def h(x):\n    return g(x) + g('c')", ("a",)) == ["a", "b", "c"]
    assert Memory().call(f"{made}def f(x):\n    return g(x)", ("a",)) == ["a"]


def _quoted(code: str) -> str:
    return '"' + code.replace("\n", "\\n") + '"'
