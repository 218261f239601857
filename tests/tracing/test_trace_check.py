"""The trace check: what its rounds try, and what it makes of loops that reach their bound."""

from __future__ import annotations

import asyncio
import threading
from itertools import islice

import pytest
from tests_support import results

import sgc
from sgc import gen
from sgc.core.places import own_texts
from sgc.errors import TraceError, TurnsExceeded
from sgc.ir import types
from sgc.ir.graph import Graph, Lit, Node, Value
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.code import fuel
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.checking import check, pair
from sgc.tracing.checking.check import check_trace
from sgc.tracing.checking.deadline import Deadline, Overdue
from sgc.tracing.checking.rounds import LENGTHS, Draw, rounds
from sgc.tracing.checking.scripted_tools import ScriptedTools
from sgc.tracing.tracer import trace


def test_rounds_have_every_length_and_equal_arguments():
    found = list(rounds(("own", "text")))
    texts = {each.text(index) for each in found for index in range(3)}
    assert set(LENGTHS) <= {len(text) for text in texts}
    assert any(each.text(0) == each.text(1) == each.text(2) for each in islice(found, 4))
    assert all(each.replies for each in found)


@sgc.function
def no_number(s):
    s += gen("a", max_tokens=3)
    try:
        return {"is": [float(s["a"])]}
    except ValueError:
        return {"is": [float("nan"), 1.0]}


def test_what_is_no_number_is_alike_in_both():
    check_trace(no_number, trace(no_number, is_full=True), {})


def imports_a_word(s):
    s += "mine" + gen("a")


def test_the_programs_own_texts_are_not_those_of_words_that_it_imports():
    assert {*own_texts(imports_a_word)} == {"mine", "a"}


def bounded(n: int, last: str = "stop", said: str = "a") -> sgc.Function:
    def program(s, q):
        s += q
        while True:
            s += said + sgc.gen("g", max_tokens=2)
            if s["g"] == last:
                break
        s += "end"

    return sgc.function(program, max_turns=n)


@pytest.fixture
def few_requests(monkeypatch):
    monkeypatch.setattr(pair, "MAX_ASKED", 30)
    monkeypatch.setattr(check, "MAX_ASKED_IN_ALL", 200)


@pytest.mark.full_check
@pytest.mark.parametrize("n", [12, 29, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 99))])
def test_a_run_that_reaches_its_bound_is_none_that_is_wrong(n, scripted, few_requests):
    program = bounded(n).compile()
    for each in (program, bounded(n)):
        asked: list[str] = []

        def reply(prompt, sampling, asked=asked):
            return asked.append(str(prompt)) or "go"

        with pytest.raises(TurnsExceeded, match=f"beyond max_turns={n}$"):
            each.run(q="x", backend=scripted(reply), seed=1)
        assert len(asked) == n
    ends = scripted(lambda prompt, sampling: "stop" if len(prompt) > 1 else "go")
    options = RunOptions(seed=1)
    compiled = program.run_once({"q": "x"}, options, ends)
    assert results(compiled) == results(bounded(n).run_once({"q": "x"}, options, ends))


@sgc.function(max_turns=5)
def nested(s, q, n: int):
    s += q + sgc.gen("a", max_tokens=2)
    while s["a"] != "stop":
        k = 0
        while k < n:
            s += "inner" + sgc.gen("b", max_tokens=2)
            k += 1
        s += "outer" + sgc.gen("a", max_tokens=2)
    return k


def test_a_bound_is_of_each_time_that_a_loop_is_entered(scripted):
    def reply(prompt, sampling):
        return "stop" if str(prompt).count("outer") == 4 else "go"

    program, options = sgc.Program(trace(nested)), RunOptions(seed=1)
    given = {"q": "x", "n": 5}
    wanted = nested.run_once(given, options, scripted(reply))
    assert wanted.ret_value == 5
    assert results(program.run_once(given, options, scripted(reply))) == results(wanted)
    for each in (program, nested):
        with pytest.raises(TurnsExceeded):
            each.run_once(given | {"n": 6}, options, scripted(reply))


@pytest.mark.full_check
@pytest.mark.parametrize("wrong", [bounded(12, said="b"), bounded(12, last="never")])
def test_a_wrong_loop_is_found_where_it_reaches_its_bound(wrong):
    graph: Graph = trace(wrong)
    with pytest.raises(TraceError, match=r"wrong|would fail"):
        check_trace(bounded(12, last="plain"), graph, {})


def long(said: str) -> sgc.Function:
    def program(s, q):
        for _ in range(pair.MAX_ASKED + 100):
            s += said + sgc.gen("g", max_tokens=2)

    return sgc.function(program)


@pytest.mark.full_check
def test_a_wrong_loop_is_found_where_the_check_ends_every_run(few_requests):
    check_trace(long("a"), trace(long("a")), {})
    with pytest.raises(TraceError, match="wrong"):
        check_trace(long("a"), trace(long("b")), {})


def spelled(n_words: int, said: str = "a") -> sgc.Function:
    def program(s, word):
        s += said + sgc.gen("g", max_tokens=2)
        found = s["g"].split()
        s += "".join([letter for letter in word * n_words if letter not in found])

    return sgc.function(program)


@pytest.fixture
def less_fuel(monkeypatch):
    """So that code has too much to do for the longest text after a fraction of a second."""
    monkeypatch.setattr(fuel, "MAX_STEPS", 100_000)


@pytest.mark.slow
@pytest.mark.full_check
def test_code_that_is_too_much_for_the_longest_text_alone_is_none_that_is_wrong(less_fuel):
    check_trace(spelled(1), trace(spelled(1)), {})
    with pytest.raises(TraceError, match="a graph's code takes more than"):
        check_trace(spelled(2000), trace(spelled(2000)), {})


def compared(rows: list[dict[str, str]]) -> list[int]:
    return [sum(a == b for a in text for b in text) for row in rows for text in row.values()]


@sgc.function
def compares(s, rows: list[dict[str, str]]):
    s += str(compared(rows)) + sgc.gen("g", max_tokens=2)


@pytest.mark.slow
@pytest.mark.full_check
def test_so_it_is_for_long_texts_inside_of_data(less_fuel):
    check_trace(compares, trace(compares), {})


@pytest.mark.full_check
def test_what_is_wrong_before_code_is_too_much_is_found(less_fuel, monkeypatch):
    longest = [each for each in rounds(("own",)) if len(each.text(0)) == max(LENGTHS)]
    monkeypatch.setattr(check, "rounds", lambda own: longest)
    check_trace(spelled(1), trace(spelled(1)), {})
    with pytest.raises(TraceError, match="wrong"):
        check_trace(spelled(1, said="b"), trace(spelled(1)), {})


@sgc.tool(effect="pure")
def found(text: str) -> str:
    return text


def finds(said: str) -> sgc.Function:
    def program(s, q):
        found(q + said)
        s += q

    return sgc.function(program)


@pytest.mark.full_check
def test_another_call_of_a_tool_is_found():
    check_trace(finds("!"), trace(finds("!")), {})
    with pytest.raises(TraceError, match="tool"):
        check_trace(finds("!"), trace(finds("?")), {})


@pytest.mark.parametrize("is_testing", [False, True])
def test_a_program_that_never_ends_is_refused(is_testing):
    @sgc.function
    def program(s):
        while True:
            s += "a" + sgc.gen("g", max_tokens=2)
            if is_testing and s["g"] == "a":
                s += "b"

    with pytest.raises(TraceError, match="never ends") as caught:
        trace(program)
    assert "bound" in caught.value.hint
    bounded = sgc.function(max_turns=3)(program.python)
    if is_testing:
        assert len(trace(bounded).blocks) > 1
    else:  # it always fails
        with pytest.raises(TurnsExceeded):
            trace(bounded)


NESTED = Type(Kind.LIST, item=Type(Kind.LIST, item=types.INT))


@pytest.mark.parametrize(
    ("type_", "is_of"),
    [
        (types.TEXT, lambda value: isinstance(value, str)),
        (types.INT, lambda value: type(value) is int),
        (types.FLOAT, lambda value: type(value) is float),
        (types.BOOL, lambda value: type(value) is bool),
        (types.JSON, lambda value: isinstance(value, dict)),
        (Type(Kind.LIST, item=types.TEXT), lambda value: all(type(each) is str for each in value)),
        (NESTED, lambda value: all(type(n) is int for inner in value for n in inner)),
    ],
    ids=lambda value: str(value) if isinstance(value, Type) else "",
)
def test_a_scripted_tool_gives_what_its_type_says(type_, is_of):
    node = Node("tool", (Value("v", type_),), (("name", Lit("look")), ("signature", Lit(""))))
    call = ScriptedTools(Draw(3, ("a", "b c", ""))).find(node).call
    results = [asyncio.run(call(n)) for n in range(60)]
    assert all(map(is_of, results))
    assert len({repr(each) for each in results}) > 1


def may_never_end(s):
    s += gen("said", max_tokens=3)
    step = len(s["said"]) % 2
    n = 0
    while n < 10:
        n += step
    s += f"{n}"


@pytest.mark.full_check
def test_a_run_that_never_ends_is_ended(monkeypatch):
    monkeypatch.setattr(check, "MAX_RUN_S", 0.2)
    program = sgc.function(may_never_end)
    with pytest.raises(TraceError, match=r"did not end within 0\.2 s"):
        check_trace(program, trace(program), {})
    assert "sgc-deadline" not in {each.name for each in threading.enumerate()}


def never_ends():
    while True:
        try:
            sum(range(100))
        except Exception:
            continue


def test_what_ends_a_run_passes_its_handlers():
    with Deadline(0.1) as deadline, pytest.raises(Overdue), deadline.run():
        never_ends()
