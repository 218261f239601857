"""The parts of batches: when a loop is idle, the journal, the names of requests, all examples."""

from __future__ import annotations

import asyncio
import threading

import pytest
from providers.batch_child import shorten
from providers.batch_server import BatchServer
from providers.conftest import KEY
from providers.test_examples import ARGUMENTS, CANNOT, OPTIONS, index, load, script
from tests_support import asked, one_in, results

import sgc
from sgc.errors import RunLogError
from sgc.runtime.executor.backends.providers.batched import Batching
from sgc.runtime.executor.backends.providers.batches.identity import digest_of
from sgc.runtime.executor.backends.providers.batches.journal import Journal
from sgc.runtime.executor.backends.providers.batches.lines import split_lines
from sgc.runtime.executor.backends.providers.models.models import Choices, facts_for
from sgc.runtime.executor.backends.providers.models.prices import Prices
from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.messages import (
    Conversation,
    Mark,
    Message,
    Text,
)
from sgc.runtime.executor.loops.idle import Idle
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.tools import threads
from sgc.runtime.executor.tools.threads import call_on_loop, call_on_thread, n_running


def test_a_loop_is_idle_when_all_that_could_run_has_run():
    """However many steps tasks take by themselves, and whatever comes back from threads."""
    idle, told = Idle(), []
    idle.count_also(n_running)
    loop = idle.new_loop()
    steps, gates = [0], [threading.Event() for _ in range(2)]

    def watch(is_busy):
        told.append((steps[0], is_busy))
        closed = [gate for gate in gates if not gate.is_set()]
        if is_busy and closed:
            closed[0].set()
        elif not is_busy and not over.done():
            over.set_result(None)
            return True
        return False

    async def hop(n):
        for _ in range(n):
            await asyncio.sleep(0)
            steps[0] += 1

    async def work():
        await asyncio.gather(*(hop(n) for n in range(0, 60, 20)))
        await asyncio.to_thread(gates[0].wait)
        await hop(50)
        await call_on_thread(gates[1].wait, None)
        await hop(50)
        await call_on_loop(lambda: hop(7), None)
        await over

    try:
        over = loop.create_future()
        idle.watchers.append(watch)
        loop.run_until_complete(work())
    finally:
        loop.close()
    assert [each for each in told if not each[1]] == [(60 + 50 + 50 + 7, False)]
    assert {n for n, is_busy in told if is_busy} == {60, 110}


def test_a_call_that_has_come_back_is_not_under_way(monkeypatch):
    """However long its thread takes to say that it is idle: nothing would wake the loop again."""
    run, gate = threads._Job.run, threading.Event()

    def slow(job):
        run(job)
        gate.wait()

    async def call():
        assert await call_on_thread(n_running, None) == (1, None)
        return n_running()

    monkeypatch.setattr(threads._Job, "run", slow)
    try:
        assert asyncio.run(call()) == 0
    finally:
        gate.set()


def test_a_timer_that_is_set_when_a_loop_is_idle_wakes_it():
    idle = Idle()
    loop = idle.new_loop()
    over = loop.create_future()

    def watch(is_busy):
        idle.watchers.clear()
        loop.call_later(0.01, over.set_result, None)
        return True

    idle.watchers.append(watch)
    try:
        loop.run_until_complete(asyncio.wait_for(asyncio.shield(over), None))
    finally:
        loop.close()


def test_a_journal_is_read_again_whatever_cut_it_off(tmp_path):
    path = tmp_path / "job.log.batches"
    journal = Journal(path, "there")
    first, second = journal.begin(["a", "b"]), journal.begin(["c"])
    journal.uploaded(first, "file-1")
    journal.submitted(first, "batch_1")
    journal.over(first, "expired")
    third = journal.begin(["a"])
    journal.dropped(second, "refused")
    journal.close()
    whole = path.read_bytes()
    for end in (*range(0, len(whole), 23), len(whole) - 1, len(whole)):
        path.write_bytes(whole[:end])
        again = Journal(path, "there")
        if end == len(whole):
            assert again.job == journal.job
            assert {n: (b.batch, [*b.left], b.was_over) for n, b in again.batches.items()} == {
                1: ("batch_1", ["a", "b"], True),
                3: ("", ["a"], False),
            }
            assert again.where["a"].number == third.number
            assert again.begin(["d"]).number == 4
        again.close()
    with pytest.raises(RunLogError, match="tells of batches at 'there'"):
        Journal(path, "elsewhere")
    path.write_bytes(whole[:10] + b"x" + whole[11:])
    with pytest.raises(RunLogError, match="1: the line is no record"):
        Journal(path, "there")


def lowered(*parts, **params):
    asked = Conversation((Message("user", parts),))
    return Lowered(asked, 8, params)


def test_a_request_is_named_by_what_it_asks_and_not_by_hints():
    plain = digest_of(lowered(Text("ab"), temperature=1), 3)
    marked = lowered(Text("a"), Mark("1h"), Text("b"), temperature=1, prompt_cache_key="k")
    assert digest_of(marked, 3) == plain
    others = [digest_of(lowered(Text("ab"), temperature=1), 4),
              digest_of(lowered(Text("ab"), temperature=0.5), 3),
              digest_of(lowered(Text("a\ud800"), temperature=1), 3)]  # fmt: skip
    assert len({plain, *others}) == 4


def test_batches_cost_half_where_that_is_known():
    facts = [facts_for(provider, "gpt-4o", Choices()) for provider in ("openai", "compatible")]
    assert [each.batch_price for each in facts] == [0.5, 1.0]
    prices = Prices(2.0, 8.0, 1.0, 2.5, 4.0, 1000, Prices(4.0, 16.0, 2.0, 5.0, 8.0))
    half = prices.times(0.5)
    for n_prompt in (900, 1100):
        used = (n_prompt, 100, 50, 20, 70)
        assert half.cost(*used) == pytest.approx(prices.cost(*used) / 2)
    assert half.at(1100) == Prices(2.0, 8.0, 1.0, 2.5, 4.0)


@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_lines_are_split_wherever_chunks_end(n):
    text = b'{"a": 1}\n\n{"b": 2}\r\n{"c": "\xc3\xa9"}'

    async def chunks():
        for at in range(0, len(text), n):
            yield text[at : at + n]

    async def read():
        return [line async for line in split_lines(chunks())]

    assert [line.strip() for line in asyncio.run(read())] == [
        line for line in (part.strip() for part in text.split(b"\n")) if line
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "model"), one_in(1, [*ARGUMENTS], ["gpt-4o", "claude-haiku-4-5", "served"])
)
def test_examples_by_batch_are_as_at_once(tmp_path, name, model):
    shorten()
    program, arguments = getattr(load(name), name), ARGUMENTS[name]
    if (name, model) in CANNOT or (name, "*") in CANNOT:
        return
    server = BatchServer(
        reply=lambda ask: script(ask.text),
        prefer=lambda ask, choices: choices[index(ask.text, choices)],
        owned_by="vllm",
    )
    shared.idle.count_also(n_running)
    batching = Batching(tmp_path / "batches", shared.idle, lambda line: None, lambda: None)
    runs = []
    for how in (None, batching):
        settings = {"batching": how, "api_key": KEY, "options": {"like": model}}
        if model.startswith("claude"):
            endpoint = sgc.Anthropic(model, base_url=server.url, **settings)
        elif model == "served":
            endpoint = sgc.connect(f"openai+{server.url}/v1#served", batching=how)
        else:
            endpoint = sgc.OpenAI(model, base_url=server.url + "/v1", **settings)
        server.asks.clear()
        with endpoint:
            found = program.compile(check=False).run_once(arguments, OPTIONS, endpoint)
        runs.append((results(found), asked(found), sorted(map(body, server.asks))))
    server.close()
    assert runs[0] == runs[1]
    assert server.wrong == []
    assert set(server.submitted.values()) == {1}


def body(ask):
    """A request as it came, but for how it is sent."""
    fields = {k: v for k, v in ask.body.items() if k not in ("stream", "stream_options")}
    return str(sorted(fields.items()))
