"""Batches and awaited runs: rows, their order, their errors, and how they end."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest
from lang.behaviours.shared import by_text, greet
from waiting import BOUND_S

import sgc
from sgc import errors


def test_a_batch_runs_the_body_once_a_row(recorded):
    """SGLang runs it once more, with dummies for arguments, before any row."""
    seen: list[str] = []

    @sgc.function
    def program(s, x):
        seen.append(x)
        s += x + sgc.gen("a")

    program.run_batch([(str(i),) for i in range(4)], backend=recorded())
    assert sorted(seen) == ["0", "1", "2", "3"]


def test_what_a_body_raises_for_odd_arguments_ends_no_batch(recorded):
    """In SGLang a KeyError with the dummies ends the batch."""
    prices = {"a": "1", "b": "2"}

    @sgc.function
    def program(s, x):
        s += prices[x] + sgc.gen("g")
        if int(prices[x]) > 1:
            s += "!"

    states = program.run_batch([("a",), ("b",)], backend=recorded("r"))
    assert [state.text() for state in states] == ["1r", "2r!"]


def test_run_batch_of_dicts(recorded):
    rows = [{"name": "ann"}, {"name": "bob", "mark": "?"}]
    states = greet.run_batch(rows, backend=recorded(by_text))
    assert isinstance(states, list)
    assert [state["reply"] for state in states] == ["<hello ann!>", "<hello bob?>"]
    assert [state.ret_value for state in states] == ["ann", "bob"]


@pytest.mark.parametrize("kind", [list, tuple])
def test_run_batch_of_tuples_and_lists(recorded, kind):
    states = greet.run_batch(kind([("ann",), ["bob", "?"]]), backend=recorded(by_text))
    assert [state["reply"] for state in states] == ["<hello ann!>", "<hello bob?>"]


def test_run_batch_of_a_generator(recorded):
    rows = ({"name": name} for name in ("ann", "bob"))
    states = greet.run_batch(rows, backend=recorded(by_text))
    assert [state.ret_value for state in states] == ["ann", "bob"]


def test_run_batch_of_nothing(recorded):
    assert greet.run_batch([], backend=recorded()) == []
    assert list(greet.run_batch([], backend=recorded(), generator_style=True)) == []


def test_run_batch_gives_rows_in_order_whatever_order_they_end_in(recorded):
    rows = [{"name": "x" * i} for i in range(40)]
    states = greet.run_batch(rows, backend=recorded(by_text), num_threads=3)
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
        assert caught.value.where.startswith("test_batches.py:")


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


def test_arun(recorded):
    async def main():
        return await greet.arun("ann", backend=recorded(by_text), temperature=0.5)

    state = asyncio.run(main())
    assert (state["reply"], state.ret_value, state.is_done) == ("<hello ann!>", "ann", True)


def test_arun_raises_what_ended_the_run(recorded):
    async def main():
        await greet.arun("bad", backend=recorded(_fails_on("bad")))

    with pytest.raises(errors.ProgramError, match="backend broke") as caught:
        asyncio.run(main())
    assert caught.value.where.startswith("shared.py:")


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
        return [state["reply"] async for state in greet.abatch(rows, backend=recorded(by_text))]

    assert asyncio.run(main()) == ["<hello ann!>", "<hello bob?>"]


def test_abatch_errors_stay_in_their_row(recorded):
    async def main():
        states = greet.abatch([("ok",), ("bad",)], backend=recorded(_fails_on("bad")))
        return [state.error() async for state in states]

    fine, failed = asyncio.run(main())
    assert fine is None
    assert "backend broke" in str(failed)
