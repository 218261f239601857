"""Functions: how they are made and called, what their arguments may be, bind and trace."""

from __future__ import annotations

import threading

import pytest
from lang.behaviours.shared import by_text, greet
from tests_support import run_both

import sgc
from sgc import errors
from sgc.ir.graph import Graph


def test_run_returns_early_and_batches_are_synced(recorded):
    gate = threading.Event()
    endpoint = recorded(gate=gate)

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a")

    state = program.run(backend=endpoint)
    assert not state.is_finished
    gate.set()
    assert state.text() == "xreply"
    for row in program.run_batch([{}] * 3, backend=recorded()):
        assert row.is_done
        assert row.stream_executor.is_finished


def test_a_programs_own_parameters_win_over_options_of_a_run(recorded):
    """SGLang gives `n=5` of `parallel_sample.run(question=…, n=5)` to its sampling."""
    endpoint = recorded("r")

    @sgc.function
    def parallel_sample(s, question, n):
        s += question
        forks = s.fork(n)
        forks += sgc.gen("answer")
        forks.join()

    for state in (
        parallel_sample.run(question="q", n=5, backend=endpoint),
        parallel_sample("q", n=5, backend=endpoint),
        parallel_sample.run_batch([{"question": "q", "n": 5}], backend=endpoint)[0],
    ):
        assert state["answer"] == ["r"] * 5


def test_bind_keeps_num_api_spec_tokens():
    """In SGLang they are lost."""

    @sgc.function(num_api_spec_tokens=9)
    def program(s, x, y):
        s += x + y

    assert program.bind(x="bound ", y="too").num_api_spec_tokens == 9


def test_function_bare_and_called(recorded):
    @sgc.function
    def bare(s):
        s += "bare"

    @sgc.function(num_api_spec_tokens=4)
    def called(s):
        s += "called"

    assert bare.run(backend=recorded()).text() == "bare"
    assert called.run(backend=recorded()).text() == "called"
    assert (bare.num_api_spec_tokens, called.num_api_spec_tokens) == (None, 4)


def test_function_without_a_stream_is_refused():
    """SGLang asserts that the first parameter is called `s`; here any name will do."""
    with pytest.raises(errors.UsageError, match="first parameter must be one"):

        @sgc.function
        def program():
            pass


def test_function_whose_stream_has_another_name(recorded):
    @sgc.function
    def program(state, x):
        state += x

    assert run_both(program, recorded(), x="t").text() == "t"


def test_run_takes_arguments_by_place_and_by_name(recorded):
    endpoint = recorded()
    for state in (
        greet.run("ann", "?", backend=endpoint),
        greet.run("ann", mark="?", backend=endpoint),
        greet.run(name="ann", mark="?", backend=endpoint),
    ):
        assert state.text() == "hello ann?reply"


def test_run_gives_a_program_state(recorded):
    state = greet.run("ann", backend=recorded())
    assert isinstance(state, sgc.ProgramState)
    assert (state["reply"], state.ret_value) == ("reply", "ann")


@pytest.mark.parametrize("use_thread", [True, False])
def test_run_takes_use_thread(recorded, use_thread):
    state = greet.run("ann", backend=recorded(), use_thread=use_thread)
    assert state.text() == "hello ann!reply"


def test_run_does_not_change_the_callers_arguments(recorded):
    """SGLang's `run` changes the dicts it is given."""
    given = {"name": "ann", "backend": recorded(), "temperature": 0.5}
    before = dict(given)
    greet.run(**given)
    greet.bind(mark="?").run(**given)
    rows = [{"name": "ann"}, {"name": "bob"}]
    greet.run_batch(rows, backend=given["backend"])
    assert given == before
    assert rows == [{"name": "ann"}, {"name": "bob"}]


def test_names_of_arguments_that_are_names_of_options(recorded):
    """SGLang's `run` takes `n` and `stop` for itself, and the body then misses them."""
    endpoint = recorded()

    @sgc.function
    def program(s, question, n, stop="none", backend="mine"):
        s += f"{question} {n} {stop} {backend}" + sgc.gen("g", max_tokens=4)

    bound = program.bind(question="q")
    expected = "q 5 s minereply"
    sgc.set_default_backend(endpoint)
    try:
        assert program.run(question="q", n=5, stop="s").text() == expected
        assert program("q", n=5, stop="s").text() == expected
        assert bound.run(n=5, stop="s").text() == expected
    finally:
        sgc.set_default_backend(None)
    for sampling in endpoint.samplings:
        assert sampling.stop == ()
    assert len(endpoint.asked) == 3


def test_names_of_arguments_that_are_names_of_options_in_batches(recorded):
    endpoint = recorded()

    @sgc.function
    def program(s, question, n):
        s += f"{question} {n}" + sgc.gen("g")

    states = program.run_batch([{"question": "q", "n": 5}], backend=endpoint, n=2)
    assert states[0].text() == "q 5reply"
    assert states[0]["g"] == ["reply", "reply"]


def test_call_is_a_run(recorded):
    state = greet("ann", "?", backend=recorded(), temperature=0.5)
    assert state.text() == "hello ann?reply"
    assert (state["reply"], state.ret_value, state.how) == ("reply", "ann", "compiled")


def test_call_inside_a_program_is_a_stream_of_its_own(recorded):
    @sgc.function
    def program(s):
        other = greet("ann")
        s += "it was: " + other["reply"] + "; " + other.ret_value

    result = run_both(program, recorded(by_text))
    assert result.text() == "it was: <hello ann!>; ann"


def test_call_with_stream_can_be_followed(recorded):
    state = greet("ann", backend=recorded("abcd", chunk=1), stream=True)
    assert "".join(state.text_iter("reply")) == "abcd"


def test_bind_gives_a_new_program(recorded):
    bound = greet.bind(mark="?")
    assert bound is not greet
    assert bound.run("ann", backend=recorded()).text() == "hello ann?reply"
    assert greet.run("ann", backend=recorded()).text() == "hello ann!reply"
    assert bound.bind(name="bob").run(backend=recorded()).text() == "hello bob?reply"
    assert bound("ann", backend=recorded()).text() == "hello ann?reply"
    assert bound.run_batch([("ann",)], backend=recorded())[0].text() == "hello ann?reply"


def test_bind_gives_way_to_what_the_call_gives(recorded):
    """In SGLang bound arguments win over those of the call."""
    bound = greet.bind(name="ann", mark="?")
    assert bound.run(mark=".", backend=recorded()).text() == "hello ann.reply"
    assert bound.run("bob", ".", backend=recorded()).text() == "hello bob.reply"
    states = bound.run_batch([{"name": "bob"}, ("eve", "-")], backend=recorded())
    assert [state.text() for state in states] == ["hello bob?reply", "hello eve-reply"]
    assert bound("bob", backend=recorded()).text() == "hello bob?reply"


def test_bind_of_what_is_no_argument():
    with pytest.raises(errors.ArgumentError, match="no argument 'nope'"):
        greet.bind(nope=1)


def test_bind_inside_a_program(recorded):
    @sgc.function
    def program(s):
        s += greet.bind(mark="?")("ann").text()

    assert run_both(program, recorded()).text() == "hello ann?reply"


def test_trace(recorded):
    graph = greet.trace()
    assert isinstance(graph, Graph)
    assert [param.value.name for param in graph.params] == ["name", "mark"]
    fixed = greet.trace(backend=recorded(), mark="?")
    assert [param.value.name for param in fixed.params] == ["name"]


def test_attributes_of_a_function():
    @sgc.function(num_api_spec_tokens=8)
    def program(s, a, b, c=3):
        """What it says."""

    assert program.func.__name__ == "program"
    assert (program.__name__, program.__doc__) == ("program", "What it says.")
    assert program.num_api_spec_tokens == 8
    assert program.bind_arguments == {}
    assert program.bind(a=1).bind_arguments == {"a": 1}
    assert list(program.arg_names) == ["a", "b", "c"]
    assert list(program.arg_defaults) == [3]


@pytest.mark.parametrize("wrong", ["abc", -4, True, 1.5])
def test_tokens_to_speculate_with_are_a_whole_number(wrong):
    with pytest.raises(
        sgc.errors.UsageError, match="num_api_spec_tokens takes a whole number from 0 to"
    ):
        sgc.function(num_api_spec_tokens=wrong)(lambda s: None)
