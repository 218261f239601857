"""Equal requests in flight or answered are asked once; nobody has another's failure or end."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

import sgc
from sgc.errors import BackendError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.interface.backend import LogprobsAsked, Sampling, TextRun
from sgc.runtime.executor.keep.single_flight import SingleFlight

GREEDY = Sampling(max_tokens=4, temperature=0.0)
SEEDED = Sampling(max_tokens=4, seed=7, is_repeatable=True)
DRAWN = Sampling(max_tokens=4, seed=7)


def prompt(text: str = "a"):
    return (TextRun(text),)


class Slow(ScriptedBackend):
    """Answers when it is told to, in pieces; fails the requests with the numbers `fails`."""

    def __init__(self, *fails: int) -> None:
        super().__init__(lambda prompt, sampling: "one two")
        self.n_asked = self.n_cancelled = 0
        self.fails = fails
        self.steps = asyncio.Semaphore(0)

    async def generate(self, prompt, sampling, on_delta=None):
        number, self.n_asked = self.n_asked, self.n_asked + 1
        try:
            for piece in ("one ", "two"):
                await self.steps.acquire()
                if on_delta is not None:
                    on_delta(piece)
            if number in self.fails:
                raise BackendError(f"request {number} failed")
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        return await super().generate(prompt, sampling)

    async def score(self, prompt, choices, unconditional=False):
        self.n_asked += 1
        await self.steps.acquire()
        return await super().score(prompt, choices, unconditional)

    async def step(self, n: int = 1) -> None:
        for _ in range(n):
            self.steps.release()
        for _ in range(20):
            await asyncio.sleep(0)


def run(test):
    """Runs an async test, at the end of which no task and no flight is left."""

    async def whole():
        backend = Slow()
        flight = SingleFlight(backend)
        await test(backend, flight)
        assert flight._flights == {}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(whole())


async def start(flight, *askers, sampling=GREEDY):
    tasks = [asyncio.ensure_future(flight.generate(prompt(), sampling, each)) for each in askers]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize("sampling", [GREEDY, SEEDED])
def test_those_who_ask_meanwhile_and_later_get_the_same_reply(sampling):
    async def test(backend, flight):
        tasks = await start(flight, None, None, None, sampling=sampling)
        await backend.step(2)
        replies = [await task for task in tasks] + [await flight.generate(prompt(), sampling)]
        assert backend.n_asked == 1
        assert [reply.usage.from_shared for reply in replies] == [False, True, True, True]
        assert {reply.text for reply in replies} == {"one two"}

    run(test)


def test_what_draws_or_differs_is_asked_each_time():
    others = [
        (prompt(), DRAWN),
        (prompt(), DRAWN),
        (prompt(), SEEDED),
        (prompt(), replace(SEEDED, seed=8)),
        (prompt(), GREEDY),
        (prompt("b"), GREEDY),
        (prompt(), replace(GREEDY, stop=("x",))),
        (prompt(), replace(GREEDY, logprobs=LogprobsAsked())),
        ((TextRun("a", literal=((0, 1),)),), GREEDY),
    ]

    async def test(backend, flight):
        await backend.step(100)
        replies = [await flight.generate(*other) for other in others]
        assert backend.n_asked == len(others)
        assert not any(reply.usage.from_shared for reply in replies)

    run(test)


def test_a_greedy_generation_has_no_use_for_its_seed():
    async def test(backend, flight):
        await backend.step(100)
        await flight.generate(prompt(), GREEDY)
        await flight.generate(prompt(), replace(GREEDY, seed=9))
        many = [replace(SEEDED, seed=seed) for seed in (1, 2)]
        first = await flight.generate_n(prompt(), many)
        again = await flight.generate_n(prompt(), many)
        assert [reply.usage.from_shared for reply in (*first, *again)] == [False] * 2 + [True] * 2
        await flight.generate_n(prompt(), [DRAWN, DRAWN])
        assert backend.n_asked == 1 + 2 + 2

    run(test)


def test_scores_are_shared_too():
    async def test(backend, flight):
        await backend.step(9)
        asked = [("a", "b"), ("a", "b"), ("b", "a"), ("a", "b")]
        replies = [await flight.score(prompt(), choices) for choices in asked]
        assert [reply.usage.from_shared for reply in replies] == [False, True, False, True]
        await flight.score(prompt(), ("a", "b"), unconditional=True)
        assert backend.n_asked == 3

    run(test)


@pytest.mark.parametrize("gone", [(0,), (1,), (0, 2)])
def test_one_who_is_cancelled_leaves_the_others_alone(gone):
    async def test(backend, flight):
        tasks = await start(flight, None, None, None)
        for index in gone:
            tasks[index].cancel()
        await backend.step(2)
        await backend.step(2)
        for index, task in enumerate(tasks):
            if index in gone:
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                assert (await task).text == "one two"
        # Who comes next asks anew, where the one who asked has gone.
        assert (backend.n_asked, backend.n_cancelled) == ((2, 1) if 0 in gone else (1, 0))

    run(test)


def test_a_text_that_somebody_else_begins_anew_is_told_on():
    async def test(backend, flight):
        seen: list[list[str]] = [[], []]
        tasks = await start(flight, seen[0].append, seen[1].append)
        await backend.step()
        tasks[0].cancel()
        await backend.step(2)
        await backend.step(2)
        assert (await tasks[1]).text == "one two"
        assert seen == [["one "], ["one ", "two"]]
        assert (backend.n_asked, backend.n_cancelled) == (2, 1)

    run(test)


def test_the_last_to_go_cancels_the_request_and_waits_for_it():
    async def test(backend, flight):
        tasks = await start(flight, None, None)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in results)
        assert (backend.n_asked, backend.n_cancelled) == (1, 1)
        again = await start(flight, None)
        await backend.step(2)
        assert (await again[0]).text == "one two"
        assert backend.n_asked == 2

    run(test)


def test_a_failure_is_the_first_ones_alone():
    async def test(backend, flight):
        backend.fails = (0,)
        tasks = await start(flight, None, None, None)
        await backend.step(20)
        with pytest.raises(BackendError, match="request 0"):
            await tasks[0]
        assert [(await task).text for task in tasks[1:]] == ["one two"] * 2
        assert backend.n_asked == 3  # the others asked for themselves
        assert not (await tasks[1]).usage.from_shared
        await flight.generate(prompt(), GREEDY)  # no failure is kept
        assert backend.n_asked == 4

    run(test)


def test_text_reaches_everyone_from_its_beginning():
    async def test(backend, flight):
        seen: list[list[str]] = [[], [], [], []]
        tasks = await start(flight, seen[0].append, seen[1].append)
        await backend.step()
        tasks += await start(flight, seen[2].append, None)
        assert seen[:3] == [["one "]] * 3
        await backend.step()
        await asyncio.gather(*tasks)
        await flight.generate(prompt(), GREEDY, seen[3].append)
        assert ["".join(each) for each in seen] == ["one two"] * 4
        assert backend.n_asked == 1

    run(test)


def test_one_who_streams_behind_one_who_does_not_sees_all_at_the_end():
    async def test(backend, flight):
        seen: list[str] = []
        tasks = await start(flight, None, seen.append)
        await backend.step(2)
        await asyncio.gather(*tasks)
        assert seen == ["one two"]

    run(test)


@pytest.mark.parametrize("kind", [ZeroDivisionError, StopIteration])
def test_one_whose_callback_fails_ends_alone(kind):
    async def test(backend, flight):
        seen: list[str] = []

        def fail(text):
            raise kind

        tasks = await start(flight, fail, seen.append)
        await backend.step()
        assert isinstance(tasks[0].exception(), RuntimeError if kind is StopIteration else kind)
        await backend.step(2)  # the other one asks anew
        assert (await tasks[1]).text == "".join(seen) == "one two"

    run(test)


def test_a_text_that_was_begun_is_not_begun_anew():
    async def test(backend, flight):
        backend.fails = (0,)
        seen: list[str] = []
        tasks = await start(flight, seen.append, seen.append, None)
        await backend.step(10)
        for task in tasks[:2]:
            with pytest.raises(BackendError, match="request 0"):
                await task
        assert tasks[0].exception() is not tasks[1].exception()  # each gets a line of its own
        assert (await tasks[2]).text == "one two"
        assert seen == ["one ", "one ", "two", "two"]

    run(test)


def test_what_is_kept_is_bounded():
    async def whole():
        backend = Slow()
        for _ in range(40_000):
            backend.steps.release()
        few, small = SingleFlight(backend, max_replies=3), SingleFlight(backend, max_bytes=20_000)
        for flight in (few, small):
            for n in range(100):
                await flight.generate(prompt(f"{n:03} " + "x" * 500), GREEDY)
        assert len(few._kept._replies) == 3
        assert 3 < len(small._kept._replies) < 10
        assert small._kept._n_bytes <= 20_000
        n_asked = backend.n_asked
        assert (await few.generate(prompt("099 " + "x" * 500), GREEDY)).usage.from_shared
        assert not (await few.generate(prompt("000 " + "x" * 500), GREEDY)).usage.from_shared
        assert backend.n_asked == n_asked + 1

    asyncio.run(whole())


def test_anything_may_happen_in_any_order():
    """Random askers, cancellations, failures and callbacks: each gets its reply or its own end."""

    async def test(backend, flight):
        rng = random.Random(3)
        backend.fails = {n for n in range(3000) if rng.random() < 0.2}
        tasks: list[asyncio.Task] = []
        cancelled, seen = set(), {}
        for number in range(600):
            text, streams = rng.choice("abc"), rng.random() < 0.5
            seen[number] = []
            on_delta = seen[number].append if streams else None
            ask = flight.generate(prompt(text), GREEDY, on_delta)
            tasks.append(asyncio.ensure_future(ask))
            if rng.random() < 0.3:
                index = rng.randrange(len(tasks))
                if not tasks[index].done():
                    tasks[index].cancel()
                    cancelled.add(index)
            if rng.random() < 0.5:
                await asyncio.sleep(0)
            if rng.random() < 0.4:
                backend.steps.release()
            if number % 50 == 0:
                flight._kept._replies.clear()
                flight._kept._n_bytes = 0
        await backend.step(3000)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for number, result in enumerate(results):
            if isinstance(result, asyncio.CancelledError):
                assert number in cancelled
            elif isinstance(result, BackendError):
                assert "failed" in str(result)
            else:
                assert result.text == "one two"
                assert "".join(seen[number]) in ("", "one two")
        assert sum(isinstance(each, BackendError) for each in results) > 5
        assert sum(not isinstance(each, BaseException) for each in results) > 200

    run(test)


# -- programs -----------------------------------------------------------------------------


class Counting(ScriptedBackend):
    def __init__(self):
        super().__init__(lambda prompt, sampling: f"r{sampling.seed % 1000}")
        self.n_generated = self.n_scored = 0

    async def generate(self, *asked):
        self.n_generated += 1
        await asyncio.sleep(0)
        return await super().generate(*asked)

    async def score(self, *asked):
        self.n_scored += 1
        return await super().score(*asked)


@sgc.function
def classify(s, q: str):
    s += "Q: " + q + sgc.gen("t", temperature=0, max_tokens=4) + sgc.select("v", ["a", "b"])
    s += sgc.gen("u", max_tokens=4)


ROWS = [{"q": f"question {n % 10}"} for n in range(200)]


def summed(states):
    return sum(state.result().stats.shared_requests for state in states)


def test_the_rows_of_a_batch_share():
    for rows in (classify.compile(), classify):
        backend = Counting()
        states = rows.run_batch(ROWS, backend=Endpoint(backend), seed=3)
        assert (backend.n_generated, backend.n_scored) == (10 + 200, 10)
        assert summed(states) == 190 * 2
        assert len({state["u"] for state in states}) > 100
        assert all(state["t"] == "r0" for state in states)
        assert states[150].result().stats.requests == 1
        assert states[150].get_meta_info("t") == states[0].get_meta_info("t")
    again = rows.run_batch(ROWS[:10], backend=Endpoint(backend), seed=3)
    assert summed(again) == 0  # each batch for itself


def test_without_optimization_and_interpreted_every_request_is_asked():
    backend = Counting()
    states = classify.compile(opt_level=0).run_batch(ROWS[:30], backend=Endpoint(backend))
    assert (backend.n_generated, backend.n_scored, summed(states)) == (60, 30, 0)
    backend = Counting()
    states = sgc.function(jit=False)(classify.python).run_batch(
        ROWS[:30], backend=Endpoint(backend)
    )
    assert (backend.n_generated, backend.n_scored, summed(states)) == (60, 30, 0)


@pytest.mark.parametrize("n_rows", [2000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_rows_ask_once(n_rows):
    backend = Counting()

    @sgc.function
    def one(s, q: str):
        s += q + sgc.gen("t", temperature=0)

    rows = [{"q": "same"}] * n_rows
    states = one.compile().run_batch(rows, backend=Endpoint(backend), max_concurrency=10_000)
    assert backend.n_generated == 1
    assert summed(states) == n_rows - 1
