"""Prefetches at run time: what is asked for, and that nobody waits for it or fails by it."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace

import pytest
from waiting import BOUND_S

import sgc
from sgc.errors import BackendError
from sgc.ir.graph import Graph
from sgc.ir.text.parser import parse
from sgc.ir.verify import verify
from sgc.runtime.executor.backends.engine.prefetches import MAX_AT_ONCE, Prefetches
from sgc.runtime.executor.backends.scripted import CAPABILITIES, PLAIN_CHAT, ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.backend import Generated, Prompt, Usage
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.log.timeline import chrome_trace
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult

TOLD = replace(
    CAPABILITIES,
    chat=replace(PLAIN_CHAT, default_system="Be kind."),
    special_tokens=("<|end|>", "<|user|>", "<|system|>"),
    prefetches=True,
)


class Ahead(ScriptedBackend):
    """Takes note of prefetches, which take as long as they are let."""

    def __init__(self, capabilities=TOLD, error: BaseException | None = None) -> None:
        super().__init__(lambda prompt, sampling: "r")
        self.told = capabilities
        self.error = error
        self.goes_on = asyncio.Event()
        self.prefetched: list[Prompt] = []
        self.committed: list[Prompt] = []
        self.prompts: list[Prompt] = []
        self.n_cancelled = 0

    async def capabilities(self):
        return self.told

    async def generate(self, prompt, sampling, on_delta=None) -> Generated:
        self.prompts.append(prompt)
        await asyncio.sleep(0.001)
        return await super().generate(prompt, sampling, on_delta)

    async def commit_prefix(self, prompt, heads=()) -> Usage:
        self.committed.append(prompt)
        assert not self.prefetched, "the trunk comes first"
        return Usage()

    async def prefetch(self, prompt: Prompt) -> Usage:
        self.prefetched.append(prompt)
        if self.error is not None:
            raise self.error
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        return Usage(prompt_tokens=9, cached_tokens=2, computed_tokens=7)


def program(body: str) -> Graph:
    graph = parse(f"sgir 1\nprogram @p(%x: text) {{\n{body}\n}}\n")
    verify(graph)
    return graph


ROLES = program("""
  prefetch kinds=["role_begin", "const", "value", "const"] pieces=["user", "Judge ", %x, " by:"]
  %s0 = stream "p"
  %s1 = role_begin %s0 "user"
  %s2 = const %s1 "Judge "
  %s3 = append %s2 %x
  %s4 = const %s3 " by: all"
  %s5, %a = gen %s4
  %s6, %b = gen %s5
  publish %s6 "p" keys=["a"] items=[%a]
  return %a
""")


def run(graph: Graph, backend: Ahead, x: str = "tea", **options) -> RunResult:
    return asyncio.run(
        asyncio.wait_for(run_graph(graph, backend, {"x": x}, RunOptions(**options)), BOUND_S)
    )


@pytest.mark.parametrize("x", ["tea", "", "<|end|> <|user|>"])
def test_what_is_asked_for_is_what_the_prompt_begins_with(x: str) -> None:
    backend = Ahead()
    run(ROLES, backend, x)
    (ahead,), (prompt, *_) = backend.prefetched[0], backend.prompts[0]
    assert prompt.text.startswith(ahead.text)
    assert ahead.text.startswith("<|system|>Be kind.<|end|><|user|>Judge ")
    assert ahead.text.endswith(" by:")
    assert ahead.literal == prompt.literal
    assert bool(ahead.literal) == (x not in ("tea", ""))


def test_nobody_waits_for_it_and_the_end_of_the_run_cancels_it() -> None:
    backend = Ahead()
    result = run(ROLES, backend)
    assert (len(backend.prefetched), backend.n_cancelled) == (1, 1)
    assert (result.prefetches, result.stats.prefetches) == ((), 0)


def test_it_is_no_request_and_stands_in_the_sums_and_the_timeline_apart() -> None:
    backend = Ahead()
    backend.goes_on.set()
    result = run(ROLES, backend)
    assert [request.kind for request in result.requests] == ["generate", "generate"]
    stats = result.stats
    assert (stats.requests, stats.prompt_tokens, stats.prefetches) == (2, 0, 1)
    assert (stats.prefetched_tokens, stats.failed_prefetches) == (7, 0)
    events = chrome_trace(result)["traceEvents"]
    rows = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    (block,) = [e for e in events if e.get("cat") == "prefetch"]
    assert block["tid"] == rows["prefetches"]
    assert block["args"]["computed_tokens"] == 7


@pytest.mark.parametrize("error", [BackendError("no room"), RuntimeError("broken")])
def test_one_that_fails_fails_nothing(error, caplog) -> None:
    with caplog.at_level(logging.DEBUG, "sgc.prefetch"):
        result = run(ROLES, Ahead(error=error))
    assert (result.stats.failed_prefetches, result.stats.prefetches) == (1, 0)
    assert result.ret_value == "r"
    assert str(error) in caplog.text


def test_an_engine_that_does_not_is_not_asked() -> None:
    backend = Ahead(replace(TOLD, prefetches=False))
    assert run(ROLES, backend).ret_value == "r"
    assert backend.prefetched == []


def test_what_follows_a_state_comes_after_its_trunk_is_committed() -> None:
    backend = Ahead()
    backend.goes_on.set()
    graph = program("""
      %s0 = stream "p"
      %s1 = const %s0 "trunk"
      %s2, %c0, %c1 = fork %s1 2
      prefetch kinds=["const"] pieces=[" more"] stream=%c1
      %d0, %a = gen %c0
      %d1 = const %c1 " more of it"
      %d2, %b = gen %d1
      %s3, %c = gen %s2
      %s4, %d = gen %s3
      return %d
    """)
    run(graph, backend)
    assert [run.text for run in backend.committed[0]] == ["trunk"]
    assert [run.text for run in backend.prefetched[0]] == ["trunk more"]


def test_one_that_follows_what_was_cut_off_fails_nothing() -> None:
    graph = program("""
      %s0 = stream "p"
      %s1, %c0, %c1 = fork %s0 2
      %d0, %a = gen %c0
      %d1, %b = gen %c1
      %t0: bool = compute "in" ["r", %a]
      %t1: bool = compute "in" ["x", %b]
      %e0 = ended %d0 %t0
      %e1 = ended %d1 %t1
      %w: list[int] = join_first [%e0, %e1]
      %f0 = winner %d0 %c0 %w 0
      %f1 = winner %d1 %c1 %w 1
      prefetch kinds=["const"] pieces=["more"] stream=%f1
      %s2, %c = gen %f0
      return %c
    """)
    assert run(graph, Ahead()).stats.failed_prefetches == 1


def test_a_log_has_none_of_it_and_is_replayed_without(tmp_path) -> None:
    file, backend = str(tmp_path / "run.log"), Ahead()
    backend.goes_on.set()
    with RunLog.open(file) as log:
        first = run(ROLES, backend, log=log)
    assert first.stats.prefetches == 1
    with RunLog.open(file) as log:
        assert "prefetch" not in {record["kind"] for record in log.records()}
        again = Ahead()
        second = run(ROLES, again, log=log)
    assert second.ret_value == first.ret_value
    assert again.prompts == []


def test_calls_of_a_map_ask_for_theirs() -> None:
    backend = Ahead()
    backend.goes_on.set()
    graph = parse("""sgir 1
program @p(%x: text) {
  %s0 = stream "p"
  %l: list[text] = compute "split" [%x, ","]
  %n: list[text] = map 0 %l caller=%s0 names=["note"]
  return %n
}
called @note(%item: text) {
  prefetch kinds=["const", "value"] pieces=["Note: ", %item]
  %s0 = stream "note"
  %s1 = const %s0 "Note: "
  %s2 = append %s1 %item
  %s3, %note = gen %s2 name="note"
  publish %s3 "note" keys=["note"] items=[%note]
  return none
}
""")
    result = run(graph, backend, "a,b")
    assert sorted(p[0].text for p in backend.prefetched) == ["Note: a", "Note: b"]
    assert (result.stats.prefetches, result.stats.prefetched_tokens) == (2, 14)


# -- of one connection -----------------------------------------------------------------------


class Asked:
    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.goes_on = asyncio.Event()
        self.n_cancelled = 0

    async def __call__(self, prompt: Prompt) -> Usage:
        self.prompts.append(prompt)
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        return Usage(computed_tokens=5)


async def some_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_equal_prompts_are_asked_for_once_and_told_to_the_first_alone() -> None:
    async def main() -> None:
        asked = Asked()
        prefetches = Prefetches(asked, 1000)
        calls = [asyncio.create_task(prefetches.get(("one",))) for _ in range(3)]
        await some_turns()
        asked.goes_on.set()
        assert [u.computed_tokens for u in await asyncio.gather(*calls)] == [5, 0, 0]
        assert await prefetches.get(("one",)) == Usage(), "it has just been done"
        assert (await prefetches.get(("two",))).computed_tokens == 5
        assert asked.prompts == [("one",), ("two",)]

    asyncio.run(main())


def test_it_is_cancelled_when_the_last_who_asked_has_been() -> None:
    async def main() -> None:
        asked = Asked()
        prefetches = Prefetches(asked, 1000)
        calls = [asyncio.create_task(prefetches.get(("one",))) for _ in range(3)]
        for n, call in enumerate(calls):
            await some_turns()
            assert asked.n_cancelled == 0, n
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert (len(asked.prompts), asked.n_cancelled) == (1, 1)
        asked.goes_on.set()
        assert (await prefetches.get(("one",))).computed_tokens == 5, "it is not thought done"

    asyncio.run(main())


@pytest.mark.parametrize(("limit", "n"), [(1000, MAX_AT_ONCE), (8, 2), (3, 0)])
def test_they_leave_most_places_to_requests(limit: int, n: int) -> None:
    async def main() -> None:
        asked = Asked()
        prefetches = Prefetches(asked, limit)
        calls = [asyncio.create_task(prefetches.get((i,))) for i in range(MAX_AT_ONCE + 4)]
        await some_turns()
        assert len(asked.prompts) == n
        asked.goes_on.set()
        await asyncio.gather(*calls)

    asyncio.run(main())


# -- whole programs on an engine -------------------------------------------------------------

RULES = "Judge by clarity, by depth and by style, and give reasons. " * 30


@sgc.tool(effect="pure")
def look_up(topic: str) -> str:
    while_it_runs["do"]()
    return f"{topic} is warm"


while_it_runs = {"do": lambda: None}


@sgc.function
def judge(s, text):
    s += RULES + "Text: " + text + "\n"
    s += sgc.gen("verdict", max_tokens=4)


@sgc.function
def review(s, topic: str):
    found = look_up(topic)
    s += judge(found)["verdict"]


def test_a_called_function_finds_its_text_computed(fake_engine, monkeypatch) -> None:
    """While a tool runs; and nothing is run twice."""
    n_done = shared.run(fake_engine.backend.stats()).prefetches

    def wait_for_it() -> None:
        while shared.run(fake_engine.backend.stats()).prefetches == n_done:
            time.sleep(0.01)

    found = []
    for level in (0, 1):
        fake_engine.flush_cache()
        monkeypatch.setitem(while_it_runs, "do", wait_for_it if level else lambda: None)
        program = review.compile(opt_level=level)
        found.append(program.run_once({"topic": "tea"}, RunOptions(), fake_engine))
    plain, ahead = found
    assert [r.identity() for r in ahead.requests] == [r.identity() for r in plain.requests]
    assert ahead.ret_value == plain.ret_value
    assert ahead.text() == plain.text()
    assert (plain.stats.prefetches, plain.stats.cached_tokens) == (0, 0)
    assert ahead.stats.prefetches == 1
    assert ahead.stats.cached_tokens == ahead.stats.prefetched_tokens > 400
    n_run = [one.stats.computed_tokens + one.stats.prefetched_tokens for one in found]
    assert n_run[0] == n_run[1]
