"""Runs and batches from the outside: who does the work, how they end, what is refused."""

from __future__ import annotations

import asyncio
import operator
import threading
import time
from typing import Any

import pytest
from runs.slow_runs import WAYS, Slow, bounded, programs
from tests_support import by_c
from waiting import BOUND_S, until

import sgc
from sgc.errors import ProgramError, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.options import make_options
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.interface.backend import Generated

# -- where compiling is done ------------------------------------------------------------------


def test_rows_are_made_by_the_thread_that_asks(scripted, monkeypatch):
    program, threads = programs(True), []
    specialize = program._jit.specialize

    def watched(*args: Any) -> Any:
        threads.append(threading.current_thread().name)
        return specialize(*args)

    monkeypatch.setattr(program._jit, "specialize", watched)
    bounded(lambda: program.run_batch([{"q": "b"}] * 2, backend=scripted()))

    async def rows() -> list[str]:
        return [row.text() async for row in program.abatch([{"q": "b"}], backend=scripted())]

    assert asyncio.run(rows()) == ["ab reply 2"]
    assert len(threads) == 3
    assert "sgc-loop" not in threads


def test_a_batch_compiles_nothing_that_the_trace_check_refuses(scripted):
    @sgc.function
    def program(s, q):
        s += (
            q
            + (" known" if by_c(operator.contains, "red, green", q) else " unknown")
            + sgc.gen("x")
        )

    end = scripted()
    (row,) = bounded(lambda: program.run_batch([{"q": "red"}], backend=end, seed=1))
    assert row.text() == program.run("red", backend=end, seed=1).text()
    assert row.how.startswith("interpreted")
    assert "the trace of program is wrong" in row.how


@pytest.mark.parametrize("call", ["call", "run", "run_batch", "each", "compile", "trace"])
def test_a_callback_cannot_start_what_its_thread_would_do(scripted, call):
    program, end, raised = programs(True), scripted(), []
    ways = {
        "call": lambda: program(backend=end),
        "run": lambda: program.run(backend=end),
        "run_batch": lambda: program.run_batch([{}], backend=end),
        "each": lambda: program.run_batch([{}], backend=end, generator_style=True),
        "compile": lambda: program.compile(),
        "trace": lambda: program.trace(),
    }

    def callback(node: Any, path: str, text: str) -> None:
        try:
            ways[call]()
        except UsageError as error:
            raised.append(str(error))

    bounded(programs(False).run(backend=end, on_text=callback).text)
    assert raised
    assert "same thread" in raised[0]
    assert program.explain() == "program has not been called yet"


# -- batches that are taken row by row --------------------------------------------------------


@pytest.mark.parametrize("jit", WAYS)
def test_a_cancelled_abatch_raises_what_wait_for_promises(jit):
    slow = Slow()

    async def rows() -> None:
        async for _ in programs(jit).abatch([{}] * 3, backend=Endpoint(slow)):
            pass

    async def main() -> str:
        task = asyncio.ensure_future(rows())
        await asyncio.to_thread(until, lambda: slow.active == 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, BOUND_S)
        try:
            await asyncio.wait_for(rows(), 0.5)
        except TimeoutError:
            return "timeout"
        return "none"

    assert asyncio.run(main()) == "timeout"
    until(lambda: slow.active == 0)


class FirstAlone(Slow):
    """Replies to the first row alone."""

    async def generate(self, prompt: Any, *args: Any, **kwargs: Any) -> Generated:
        if prompt[0].text == "a0":
            self.begun += 1
            return await ScriptedBackend.generate(self, prompt, *args, **kwargs)
        return await super().generate(prompt, *args, **kwargs)


@pytest.mark.parametrize("jit", WAYS)
def test_leaving_an_abatch_ends_its_rows(jit):
    slow = FirstAlone()

    async def main() -> None:
        given = [{"q": str(i)} for i in range(500)]
        rows = programs(jit).abatch(given, backend=Endpoint(slow), max_concurrency=4)
        await anext(rows)
        await rows.aclose()

    asyncio.run(main())
    until(lambda: slow.active == 0)
    assert slow.begun <= 5  # the one taken, and as many as may be under way


@pytest.mark.parametrize("jit", WAYS)
@pytest.mark.parametrize("ordered", [True, False])
def test_rows_that_nobody_takes_hold_up_new_ones(jit, ordered):
    slow = Slow(0.001)
    end = Endpoint(slow)
    rows = programs(jit).run_batch(
        [{"q": str(i)} for i in range(40)], backend=end, max_concurrency=4, generator_style=True,
        ordered=ordered,
    )  # fmt: skip
    first = bounded(lambda: next(rows).text())
    until(lambda: slow.active == 0 and slow.begun >= 9)
    time.sleep(0.2)
    assert slow.begun <= 9  # the one taken, as many as may wait, as many as may be under way
    texts = [first, *bounded(lambda: [row.text() for row in rows])]
    assert (texts if ordered else sorted(texts, key=lambda t: int(t[1:-1]))) == [
        f"a{i}r" for i in range(40)
    ]


def test_a_failed_row_ends_an_iterator_beyond_max_errors(scripted):
    def reply(prompt: Any, sampling: Any) -> str:
        if "1" in prompt[-1].text:
            raise ValueError("no")
        return "r"

    rows = programs(True).run_batch(
        [{"q": str(i)} for i in range(4)], backend=scripted(reply), max_errors=0,
        generator_style=True,
    )  # fmt: skip
    with pytest.raises(sgc.BatchFailed, match="row 1"):
        bounded(lambda: list(rows))


# -- runs that are cancelled ------------------------------------------------------------------


@pytest.mark.parametrize("jit", WAYS)
def test_a_cancelled_run_reads_as_a_program_error(jit):
    slow = Slow()

    async def main() -> tuple[str, str]:
        state = await asyncio.to_thread(programs(jit), backend=Endpoint(slow))
        waiting = asyncio.ensure_future(asyncio.wait_for(state, BOUND_S))
        await asyncio.to_thread(until, lambda: slow.active == 1)
        state.cancel()
        with pytest.raises(ProgramError, match="cancelled") as raised:
            await waiting
        return str(raised.value), str(await asyncio.to_thread(state.error))

    awaited, error = asyncio.run(main())
    assert awaited == error == "the run was cancelled"
    until(lambda: slow.active == 0)


@pytest.mark.parametrize("jit", WAYS)
def test_cancelling_who_awaits_a_run_stops_it(jit):
    slow = Slow()

    async def main() -> None:
        state = await asyncio.to_thread(programs(jit), backend=Endpoint(slow))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(state, 0.2)
        error = await asyncio.to_thread(state.error)
        assert isinstance(error, ProgramError)

    asyncio.run(main())
    until(lambda: slow.active == 0)


def test_an_awaited_run_may_raise_stop_iteration(scripted):
    @sgc.function(jit=False)
    def program(s):
        s += "a" + sgc.gen("x")
        next(iter(()))

    async def main() -> None:
        await asyncio.wait_for(program.arun(backend=scripted()), BOUND_S)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(main())


# -- options of a run -------------------------------------------------------------------------


@pytest.mark.parametrize("jit", WAYS)
def test_calls_show_text_as_it_comes(scripted, jit):
    shown: dict[str, list[str]] = {"call": [], "arun": [], "run": [], "stream": []}
    program, end = programs(jit), scripted()

    def into(way: str) -> Any:
        return lambda node, path, text: shown[way].append(text)

    text = bounded(program("b", backend=end, on_text=into("call")).text)
    asyncio.run(program.arun("b", backend=end, on_text=into("arun")))
    bounded(program.run("b", backend=end, on_text=into("run")).text)
    bounded(program.run("b", backend=end, on_text=into("stream"), stream=True).text)
    assert {way: "".join(texts) for way, texts in shown.items()} == dict.fromkeys(shown, text)


def test_arun_does_not_stream(scripted):
    with pytest.raises(UsageError, match=r"run\(stream=True\)"):
        asyncio.run(programs(True).arun(backend=scripted(), stream=True))


def test_runs_of_several_texts_a_generation_are_interpreted(scripted):
    @sgc.function
    def program(s):
        s += "a" + sgc.gen("x")
        return len(s["x"])

    end = scripted(lambda p, s: "reply")
    state = program(backend=end, n=2)
    assert (state.ret_value, state["x"]) == (2, ["reply", "reply"])
    assert state.how.startswith("interpreted")
    assert "gen(n=2)" in state.how
    assert program.explain().startswith("program(…, n=2): interpreted")
    (row,) = bounded(lambda: program.run_batch([{}], backend=end, n=2))
    assert (row.ret_value, row.how[:11]) == (2, "interpreted")
    assert program(backend=end).ret_value == 5
    assert "has not been called" not in program.explain()


def test_compiled_programs_draw_one_text_a_generation(scripted):
    program, end = programs(True).compile(), scripted()
    for run in (
        lambda: program.run("b", backend=end, n=2),
        lambda: program.run_batch([{"q": "b"}], backend=end, n=2),
        lambda: asyncio.run(program.arun("b", backend=end, n=2)),
    ):
        with pytest.raises(UsageError, match=r"gen\(n=2\)"):
            bounded(run)


@pytest.mark.parametrize(
    "given",
    [
        {"stop": 5}, {"stop": [5]}, {"stop": {"a": "b"}}, {"stop_regex": 5}, {"stop_regex": b"x"},
        {"stop_token_ids": 5}, {"stop_token_ids": "ab"}, {"stop_token_ids": ["a"]},
        {"stop_token_ids": [True]},
    ],
)  # fmt: skip
def test_options_of_wrong_types_are_usage_errors(given):
    (name,) = given
    with pytest.raises(UsageError, match=name):
        make_options(given)


def test_options_of_right_types_are_taken():
    found = make_options({"stop": ["a"], "stop_regex": "b", "stop_token_ids": (1, 2)})
    assert (found.stop, found.stop_regex, found.stop_token_ids) == (("a",), ("b",), (1, 2))


# -- following a run --------------------------------------------------------------------------


class Gated(ScriptedBackend):
    """A second piece that comes when it is let through."""

    def __init__(self) -> None:
        super().__init__(lambda p, s: "first second")
        self.gate = threading.Event()

    async def generate(self, prompt: Any, sampling: Any, on_delta: Any = None) -> Generated:
        if on_delta is not None:
            on_delta("first ")
        await asyncio.to_thread(self.gate.wait, BOUND_S)
        if on_delta is not None:
            on_delta("second")
        return await super().generate(prompt, sampling)


def test_a_piece_is_given_before_the_next_one_comes():
    gated = Gated()

    async def main() -> list[str]:
        state = programs(True).run(backend=Endpoint(gated), stream=True)
        pieces = state.text_async_iter("x")
        first = await asyncio.wait_for(anext(pieces), BOUND_S / 2)
        gated.gate.set()
        return [first, *[piece async for piece in pieces]]

    assert asyncio.run(main()) == ["first ", "second"]


@pytest.mark.parametrize("how", ["call", "run", "stream"])
def test_meta_data_of_all_text_is_empty(scripted, how):
    program, end = programs(True), scripted()

    async def main() -> list[Any]:
        state = program(backend=end) if how == "call" else program.run(
            backend=end, stream=how == "stream"
        )  # fmt: skip
        whole = [pair async for pair in state.text_async_iter(return_meta_data=True)]
        named = [pair async for pair in state.text_async_iter("x", return_meta_data=True)]
        assert named[-1][1]["finish_reason"]
        return whole

    pairs = asyncio.run(asyncio.wait_for(main(), BOUND_S))
    assert "".join(text for text, _ in pairs) == "a reply 1"
    assert all(meta == {} for _, meta in pairs)
