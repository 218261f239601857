"""Programs (FRONTEND 1.3): run, batches, bind, trace, compile, cache and attributes."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest
from tests_support import run_both
from waiting import BOUND_S

import sgc
from sgc import errors
from sgc.ir.graph import Graph


@sgc.function
def greet(s, name, mark="!"):
    s += "hello " + name + mark
    s += sgc.gen("reply")
    return name


def _by_text(text, sampling):
    return f"<{text}>"


# -- run -----------------------------------------------------------------------------------


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


# -- calls ---------------------------------------------------------------------------------


def test_call_is_a_run(recorded):
    state = greet("ann", "?", backend=recorded(), temperature=0.5)
    assert state.text() == "hello ann?reply"
    assert (state["reply"], state.ret_value, state.how) == ("reply", "ann", "compiled")


def test_call_inside_a_program_is_a_stream_of_its_own(recorded):
    @sgc.function
    def program(s):
        other = greet("ann")
        s += "it was: " + other["reply"] + "; " + other.ret_value

    result = run_both(program, recorded(_by_text))
    assert result.text() == "it was: <hello ann!>; ann"


def test_call_with_stream_can_be_followed(recorded):
    state = greet("ann", backend=recorded("abcd", chunk=1), stream=True)
    assert "".join(state.text_iter("reply")) == "abcd"


# -- run_batch -----------------------------------------------------------------------------


def test_run_batch_of_dicts(recorded):
    rows = [{"name": "ann"}, {"name": "bob", "mark": "?"}]
    states = greet.run_batch(rows, backend=recorded(_by_text))
    assert isinstance(states, list)
    assert [state["reply"] for state in states] == ["<hello ann!>", "<hello bob?>"]
    assert [state.ret_value for state in states] == ["ann", "bob"]


@pytest.mark.parametrize("kind", [list, tuple])
def test_run_batch_of_tuples_and_lists(recorded, kind):
    states = greet.run_batch(kind([("ann",), ["bob", "?"]]), backend=recorded(_by_text))
    assert [state["reply"] for state in states] == ["<hello ann!>", "<hello bob?>"]


def test_run_batch_of_a_generator(recorded):
    rows = ({"name": name} for name in ("ann", "bob"))
    states = greet.run_batch(rows, backend=recorded(_by_text))
    assert [state.ret_value for state in states] == ["ann", "bob"]


def test_run_batch_of_nothing(recorded):
    assert greet.run_batch([], backend=recorded()) == []
    assert list(greet.run_batch([], backend=recorded(), generator_style=True)) == []


def test_run_batch_gives_rows_in_order_whatever_order_they_end_in(recorded):
    rows = [{"name": "x" * i} for i in range(40)]
    states = greet.run_batch(rows, backend=recorded(_by_text), num_threads=3)
    assert [state["reply"] for state in states] == [f"<hello {'x' * i}!>" for i in range(40)]


def test_run_batch_generator_style_is_lazy_and_in_order(recorded):
    """SGLang yields in order, by chunks of 200."""
    names = [str(i) for i in range(450)]
    rows = greet.run_batch(
        [{"name": name} for name in names], backend=recorded(), generator_style=True
    )
    assert inspect.isgenerator(rows) or hasattr(rows, "__next__")
    assert next(iter(rows)).ret_value == "0"
    assert [state.ret_value for state in rows] == names[1:]


def test_run_batch_unordered_gives_rows_as_they_end(recorded):
    gate = threading.Event()
    slow = recorded(gate=gate)

    @sgc.function
    def program(s, x):
        s += x
        if x == "slow":
            s += sgc.gen("g")
        return x

    rows = program.run_batch([("slow",), ("quick",)], backend=slow, ordered=False)
    first = next(rows)
    assert first.ret_value == "quick"
    gate.set()
    assert [state.ret_value for state in rows] == ["slow"]


@pytest.mark.parametrize("threads", ["auto", 1, 2])
def test_run_batch_num_threads(recorded, threads):
    states = greet.run_batch(
        [{"name": "a"}] * 4, backend=recorded(), num_threads=threads, progress_bar=False
    )
    assert len(states) == 4


def test_run_batch_num_threads_must_be_a_number(recorded):
    with pytest.raises(errors.UsageError, match="num_threads"):
        greet.run_batch([{"name": "a"}], backend=recorded(), num_threads=0)


def test_run_batch_progress_bar(recorded, capsys):
    greet.run_batch([{"name": "a"}] * 3, backend=recorded(), progress_bar=True)
    assert "3/3" in capsys.readouterr().err


def _fails_on(word):
    def reply(text, sampling):
        if word in text:
            raise RuntimeError("backend broke")
        return "fine"

    return reply


@pytest.mark.parametrize("jit", [True, False])
def test_run_batch_errors_stay_in_their_row(recorded, jit):
    """In SGLang one body that reads a variable of a failed generation ends the whole batch."""

    @sgc.function(jit=jit)
    def program(s, x):
        s += x + sgc.gen("g")
        return s["g"] + "."

    rows = [("ok",), ("bad",), ("ok",)]
    states = program.run_batch(rows, backend=recorded(_fails_on("bad")))
    assert [state.error() is None for state in states] == [True, False, True]
    assert [states[0].ret_value, states[2].ret_value] == ["fine.", "fine."]
    for read in (states[1].text, states[1].sync, lambda: states[1]["g"]):
        with pytest.raises(errors.ProgramError, match="backend broke") as caught:
            read()
        assert caught.value.where.startswith("test_function.py:")


@pytest.mark.parametrize("jit", [True, False])
def test_run_batch_max_errors(recorded, jit):
    @sgc.function(jit=jit)
    def program(s, x):
        s += x + sgc.gen("g")

    endpoint = recorded(_fails_on("bad"))
    rows = [("ok",), ("bad",), ("ok",)]
    states = program.run_batch(rows, backend=endpoint, max_errors=1)
    assert [state.error() is None for state in states] == [True, False, True]
    with pytest.raises(sgc.BatchFailed, match=r"row 1: .*backend broke") as caught:
        program.run_batch(rows, backend=endpoint, max_errors=0)
    assert isinstance(caught.value.__cause__, errors.ProgramError)
    assert caught.value.states[1].error() is caught.value.__cause__


def test_run_batch_wrong_rows_are_told_before_any_runs(recorded):
    endpoint = recorded()
    with pytest.raises(errors.ArgumentError, match=r"row 1: .*missing argument 'name'"):
        greet.run_batch([{"name": "a"}, {"mark": "?"}], backend=endpoint)
    with pytest.raises(errors.ArgumentError, match="row 0: a row is a dict or a tuple"):
        greet.run_batch(["ann"], backend=endpoint)
    assert endpoint.asked == []


def test_run_batch_of_an_exception_in_the_body(recorded):
    @sgc.function
    def program(s, x):
        s += x
        return {"known": 1}[x]

    states = program.run_batch([("known",), ("unknown",)], backend=recorded())
    assert states[0].ret_value == 1
    assert isinstance(states[1].error(), KeyError)
    with pytest.raises(KeyError, match="unknown"):
        states[1].text()


# -- arun and abatch -----------------------------------------------------------------------


def test_arun(recorded):
    async def main():
        return await greet.arun("ann", backend=recorded(_by_text), temperature=0.5)

    state = asyncio.run(main())
    assert (state["reply"], state.ret_value, state.is_done) == ("<hello ann!>", "ann", True)


def test_arun_raises_what_ended_the_run(recorded):
    async def main():
        await greet.arun("bad", backend=recorded(_fails_on("bad")))

    with pytest.raises(errors.ProgramError, match="backend broke") as caught:
        asyncio.run(main())
    assert caught.value.where.startswith("test_function.py:")


def test_aruns_go_on_side_by_side(recorded):
    gate = threading.Event()
    endpoint = recorded(gate=gate)

    async def main():
        runs = [asyncio.ensure_future(greet.arun(str(i), backend=endpoint)) for i in range(5)]
        while len(endpoint.asked) < 5:
            await asyncio.sleep(0.002)
        gate.set()
        return [state.ret_value for state in await asyncio.gather(*runs)]

    assert asyncio.run(asyncio.wait_for(main(), BOUND_S)) == ["0", "1", "2", "3", "4"]


def test_cancelling_an_arun_ends_its_requests(recorded):
    gate = threading.Event()
    endpoint = recorded(gate=gate)

    async def main():
        run = asyncio.ensure_future(greet.arun("a", backend=endpoint))
        while not endpoint.asked:
            await asyncio.sleep(0.002)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(asyncio.wait_for(main(), BOUND_S))
    gate.set()


def test_a_call_can_be_awaited(recorded):
    async def main():
        return (await greet("ann", backend=recorded())).ret_value

    assert asyncio.run(asyncio.wait_for(main(), BOUND_S)) == "ann"


def test_abatch(recorded):
    async def main():
        rows = [{"name": "ann"}, ("bob", "?")]
        return [state["reply"] async for state in greet.abatch(rows, backend=recorded(_by_text))]

    assert asyncio.run(main()) == ["<hello ann!>", "<hello bob?>"]


def test_abatch_errors_stay_in_their_row(recorded):
    async def main():
        states = greet.abatch([("ok",), ("bad",)], backend=recorded(_fails_on("bad")))
        return [state.error() async for state in states]

    fine, failed = asyncio.run(main())
    assert fine is None
    assert "backend broke" in str(failed)


# -- bind ----------------------------------------------------------------------------------


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


# -- trace, compile, explain, cache ----------------------------------------------------------


def test_trace(recorded):
    graph = greet.trace()
    assert isinstance(graph, Graph)
    assert [param.value.name for param in graph.params] == ["name", "mark"]
    fixed = greet.trace(backend=recorded(), mark="?")
    assert [param.value.name for param in fixed.params] == ["name"]


def test_compile_gives_a_program_with_run_run_batch_and_a_text(recorded):
    """SGLang's `CompiledFunction` takes keywords only, knows no defaults, loses what is returned,
    and runs nothing that its last node does not need."""
    program = greet.compile(backend=recorded())
    result = program.run("ann", backend=recorded(_by_text))
    assert (result.text(), result["reply"]) == ("hello ann!<hello ann!>", "<hello ann!>")
    assert result.ret_value == "ann"
    assert program.run(name="ann", backend=recorded(), max_new_tokens=3).text().endswith("reply")
    rows = program.run_batch([{"name": "ann"}, ("bob", "?")], backend=recorded(_by_text))
    assert [row["reply"] for row in rows] == ["<hello ann!>", "<hello bob?>"]
    assert "gen" in program.text()


def test_explain_tells_what_was_compiled(recorded):
    @sgc.function
    def program(s, x):
        s += x + sgc.gen("g")

    assert "has not been called" in program.explain()
    program("a", backend=recorded()).sync()
    program("b", backend=recorded()).sync()
    assert program.explain() == "program(x: text): compiled"

    @sgc.function(jit=False)
    def never(s):
        s += "x"

    assert "always interpreted" in never.explain()


def test_explain_tells_why_something_is_interpreted(recorded):
    @sgc.function
    def program(s, x):
        s += "a" if x.startswith("b") else "c"
        s += "".join(c for c in x if c == "z")

    state = program("bb", backend=recorded())
    assert state.text() == "a"
    assert state.how.startswith("interpreted: ")
    assert "test_function.py:" in program.explain()


def test_full_graph_makes_it_an_error(recorded):
    @sgc.function(full_graph=True)
    def program(s, x):
        s += "".join(reversed(x))

    with pytest.raises(errors.TraceError, match="full_graph is set"):
        program("x", backend=recorded())


LONG = "a constant beginning of more than sixty-four characters, which every run has; "


def test_cache_has_the_backend_keep_the_constant_beginning(recorded):
    endpoint = recorded()

    @sgc.function
    def program(s, x):
        s += sgc.system(LONG)
        s += sgc.user(x)

    program.cache(endpoint)
    assert endpoint.backend.commits == [f"<|system|>{LONG}<|end|><|user|>"]
    assert endpoint.asked == []


def test_cache_at_a_server_is_a_request_of_no_tokens(served, server):
    @sgc.function
    def program(s, x):
        s += LONG + x

    program.cache(backend=served())
    (body,) = server.requests
    assert body["text"] == LONG
    assert body["sampling_params"]["max_new_tokens"] == 0


def test_cache_of_a_program_without_a_constant_beginning(recorded):
    endpoint = recorded()

    @sgc.function
    def program(s, x):
        s += x

    program.cache(endpoint)
    assert endpoint.backend.commits == []


# -- attributes ----------------------------------------------------------------------------


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
