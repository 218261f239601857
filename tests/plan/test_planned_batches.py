"""Batches that are planned: order, windows, room; results are those of the given order."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from waiting import BOUND_S, settle

import sgc
from sgc.errors import BackendError, UsageError
from sgc.planning.plan import RowSize, plan_rows
from sgc.planning.room import Room
from sgc.runs import batch as batches
from sgc.runs.batch import BatchOptions
from sgc.runs.endpoint import Endpoint
from sgc.runs.options import make_options
from sgc.runs.planned_batch import make_batch
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.capabilities import Capabilities

PAGES = [f"{name} page: " + "words " * 20 for name in ("first", "second", "third")]


@sgc.function
def asking(s, page: str, question: str):
    s += page + "\nQ: " + question + "\nA:" + sgc.gen("answer", max_tokens=4)


@sgc.function
def interpreted(s, page: str, question: str):
    s += page + "\nQ: " + question + "\nA:" + sgc.gen("answer", max_tokens=4)


interpreted = sgc.function(interpreted.func, jit=False)

ROWS = [{"page": PAGES[i % 3], "question": f"number {i:02}?"} for i in range(12)]
BY_PAGE = [*range(0, 12, 3), *range(1, 12, 3), *range(2, 12, 3)]


class Recording(ScriptedBackend):
    """Replies with the question's number and keeps the order of what was asked; the first wait
    until `n_meet` are under way."""

    def __init__(self, pool_tokens: int | None = None, n_meet: int = 0) -> None:
        super().__init__(self._answer)
        self.asked: list[int] = []
        self.pool_tokens = pool_tokens
        self.active = self.most = 0
        self.n_meet, self._met = n_meet, asyncio.Event()

    def _answer(self, prompt: Any, sampling: Any) -> str:
        number = prompt[0].text.rpartition("number ")[2].partition("?")[0]
        self.asked.append(int(number))
        return f" {int(number)}:{sampling.seed}"

    async def capabilities(self) -> Capabilities:
        return Capabilities("recording", CAPABILITIES.chat, 4096, pool_tokens=self.pool_tokens)

    async def generate(self, *args: Any, **kwargs: Any) -> Any:
        self.active += 1
        self.most = max(self.most, self.active)
        if self.most < self.n_meet:
            await asyncio.wait_for(self._met.wait(), BOUND_S)
        self._met.set()
        await asyncio.sleep(0.001)
        self.active -= 1
        return await super().generate(*args, **kwargs)


def run(program: Any, **options: Any) -> tuple[list[str], Recording]:
    backend = Recording()
    states = program.run_batch(
        ROWS, backend=Endpoint(backend), seed=5, max_concurrency=1, **options
    )
    return [state["answer"] for state in states], backend


@pytest.mark.parametrize("program", [asking, asking.compile()], ids=["function", "program"])
def test_rows_that_begin_alike_start_one_after_another_and_give_the_same(program):
    planned, backend = run(program)
    assert backend.asked == BY_PAGE
    given, backend = run(program, order="given")
    assert backend.asked == list(range(12))
    assert planned == given
    assert [answer.split(":")[0] for answer in given] == [f" {i}" for i in range(12)]


def test_rows_that_are_interpreted_and_those_of_o0_stay_as_they_are():
    for program in (interpreted, asking.compile(opt_level=0)):
        assert run(program)[1].asked == list(range(12))
    assert run(asking.compile(opt_level=0), order="plan")[1].asked == BY_PAGE


def test_an_order_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="order must be one of plan, given"):
        run(asking, order="sorted")


sent: list[str] = []


@sgc.tool(effect="effect")
def send(text: str) -> str:
    sent.append(text)
    return "sent"


@sgc.function
def sending(s, page: str, question: str):
    s += page + question + send(question) + sgc.gen("answer", max_tokens=4)


def test_rows_with_effects_keep_their_order():
    sent.clear()
    _, backend = run(sending)
    assert backend.asked == list(range(12))
    assert sent == [row["question"] for row in ROWS]
    program = sending.compile()
    row = program.row(ROWS[0], backend, make_options({}), "0")
    notes = make_batch([row], BatchOptions(), backend, 4).notes
    assert notes == ("rows keep their order: a tool that they call has effects",)


# -- windows: rows taken one by one in the given order -------------------------------------------


def bounded(call: Any) -> Any:
    """The value of a call that must not hang."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(30)
    assert found, "it hangs"
    return found[0]


@pytest.mark.parametrize("window", [1, 2, 5, 12, 100])
@pytest.mark.parametrize("width", [1, 3, 50])
def test_rows_taken_in_order_are_planned_in_windows(monkeypatch, window, width):
    monkeypatch.setattr(batches, "WINDOW", window)
    monkeypatch.setattr("sgc.runs.row_iterator.WINDOW", window)
    backend = Recording()
    rows = asking.run_batch(
        ROWS, backend=Endpoint(backend), generator_style=True, max_concurrency=width
    )
    answers = bounded(lambda: [row["answer"].split(":")[0] for row in rows])
    assert answers == [f" {i}" for i in range(12)]
    if width == 1:
        assert backend.asked == sorted(BY_PAGE, key=lambda row: row // window)


def test_rows_taken_as_they_end_come_in_the_order_of_the_plan():
    backend = Recording()
    rows = asking.run_batch(ROWS, backend=Endpoint(backend), ordered=False, max_concurrency=1)
    assert bounded(lambda: [int(row["answer"].split(":")[0]) for row in rows]) == BY_PAGE


# -- room ---------------------------------------------------------------------------------------


def sizes(*own: int, shared: int = 0, generated: int = 0) -> list[RowSize]:
    return [RowSize(shared, chars, generated) for chars in own]


async def entered(room: Room, rows: range) -> list[int]:
    """The rows that get in when all of them want to."""
    tasks = [asyncio.ensure_future(room.enter(row)) for row in rows]
    await settle()
    done = [row for row, task in zip(rows, tasks, strict=True) if task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return done


CASES = {
    "no pool": (4, sizes(*[1000] * 6), None, 4),
    "no plan": (4, None, 100, 4),
    "text": (100, sizes(*[100] * 6), 300, 4),  # 50 tokens each, of 225
    "generated": (100, sizes(*[0] * 6, generated=50), 200, 3),
    "the shared path counts once": (100, sizes(*[100] * 6, shared=200), 400, 4),
    "one row always": (100, sizes(*[10_000] * 3), 100, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_as_many_rows_start_as_fit_most_of_the_pool(name):
    most, given, pool, n_entered = CASES[name]
    room = Room(most, given, pool)
    assert asyncio.run(entered(room, range(len(given or [0] * 6)))) == list(range(n_entered))


def test_rows_are_let_in_as_others_leave():
    async def main() -> None:
        room = Room(1, None, None)
        await room.enter(0)
        waiting = asyncio.ensure_future(room.enter(1))
        await settle()
        assert not waiting.done()
        room.leave(0)
        await asyncio.wait_for(waiting, BOUND_S)

    asyncio.run(main())


def test_what_rows_have_taken_corrects_the_estimate(fake_engine):
    (state,) = asking.run_batch(ROWS[:1], backend=fake_engine, seed=1)
    result = state.result()
    n_chars = len(result.requests[0].prompt[0].text)
    ratio = result.stats.prompt_tokens / n_chars
    assert ratio < 0.45  # the first guess is a half

    async def main() -> int:
        room = Room(1000, sizes(*[100] * 100, generated=0), 1000)
        room.learn(0, result)
        return len(await entered(room, range(100)))

    assert asyncio.run(main()) == int(750 / (100 * ratio))


def test_a_pool_bounds_the_rows_under_way_and_none_is_lost():
    backend = Recording(pool_tokens=300)
    states = asking.run_batch(ROWS, backend=Endpoint(backend), seed=5)
    assert [state["answer"].split(":")[0] for state in states] == [f" {i}" for i in range(12)]
    assert 1 <= backend.most < 12
    unbounded = Recording(n_meet=12)
    asking.run_batch(ROWS, backend=Endpoint(unbounded), seed=5)
    assert unbounded.most == 12


def test_rows_tell_of_a_backend_that_does_not_answer_themselves():
    class Gone(Recording):
        async def capabilities(self) -> Capabilities:
            raise BackendError("nobody there")

    states = asking.run_batch(ROWS, backend=Endpoint(Gone()))
    assert all("nobody there" in str(state.error()) for state in states)


def test_plan_rows_tells_the_plan_before_anything_runs():
    found = plan_rows(asking.compile().graph, ROWS)
    assert list(found.order) == BY_PAGE
    known = sum(len(row["page"] + "\nQ: " + row["question"] + "\nA:\0") - 1 for row in ROWS)
    assert found.known_chars == known
    assert 0.6 < found.predicted_hit_rate < 0.9
