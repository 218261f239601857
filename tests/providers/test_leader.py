"""One request writes what others read: who goes first, who waits, and what ends the waiting."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from providers.cache_models import AnthropicCache, CacheApi, VirtualClock
from providers.cache_shapes import TEXT

import sgc
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.providers.backend import ProviderBackend
from sgc.runtime.executor.backends.providers.caches.cache_write_leader import (
    MAX_KNOWN,
    MAX_WAIT_S,
    Leaders,
)
from sgc.runtime.executor.backends.providers.caches.keys import CacheKeys
from sgc.runtime.executor.backends.providers.models.models import Caching, Choices, facts_for
from sgc.runtime.executor.backends.providers.wire.errors import ProviderUnavailable
from sgc.runtime.executor.backends.providers.wire.limits import LimitSettings
from sgc.runtime.executor.backends.providers.wire.messages import Prefix

CACHING = Caching("marks", 512, ttl=("5m", "1h"), readable_after="first reply")


def prefixes(*names: str) -> tuple[Prefix, ...]:
    return tuple(Prefix(name, 4000) for name in names)


class Story:
    """Requests on a virtual clock, and what happened to them: (time, name, what)."""

    def __init__(self, caching: Caching = CACHING) -> None:
        self.clock = VirtualClock()
        self.leaders = Leaders(caching, self.clock)
        self.events: list[tuple[float, str, str]] = []

    def note(self, name: str, what: str) -> None:
        self.events.append((self.clock.now(), name, what))

    async def ask(
        self, name: str, of: tuple[Prefix, ...], first_s: float = 1.0, fails: bool = False
    ) -> None:
        async with self.leaders.turn(of) as begun:
            self.note(name, "goes")
            await self.clock.sleep(first_s)
            if fails:
                raise ProviderUnavailable(name)
            if begun is not None:
                begun()
            await self.clock.sleep(10)

    def goes(self) -> dict[str, float]:
        return {name: at for at, name, _ in self.events}


def test_those_that_share_wait_for_the_first_text_and_others_do_not():
    async def tell() -> Story:
        story = Story()
        shared = [story.ask(f"s{i}", prefixes("rules", f"row {i}")) for i in range(4)]
        await asyncio.gather(*shared, story.ask("x", prefixes("x")), story.ask("none", ()))
        return story

    story = asyncio.run(tell())
    assert story.goes() == {"s0": 0, "x": 0, "none": 0, "s1": 1, "s2": 1, "s3": 1}
    assert story.leaders.n_waited == 3
    assert not story.leaders._leading


def test_a_leader_that_fails_or_is_cancelled_leaves_its_place_to_one_other():
    async def tell() -> Story:
        story = Story()
        of = prefixes("rules")
        one = asyncio.ensure_future(story.ask("one", of, fails=True))
        two = asyncio.ensure_future(story.ask("two", of, first_s=50))
        rest = [asyncio.ensure_future(story.ask(f"r{i}", of)) for i in range(3)]
        await story.clock.sleep(5)
        assert isinstance(one.exception(), ProviderUnavailable)
        two.cancel()
        await asyncio.gather(*rest)
        return story

    assert asyncio.run(tell()).goes() == {"one": 0, "two": 1, "r0": 5, "r1": 6, "r2": 6}


def test_nobody_waits_for_ever():
    async def tell() -> Story:
        story = Story()
        of = prefixes("rules")
        await asyncio.gather(*(story.ask(f"r{i}", of, first_s=1000) for i in range(3)))
        return story

    story = asyncio.run(tell())
    assert story.goes() == {"r0": 0, "r1": MAX_WAIT_S, "r2": MAX_WAIT_S}


def test_one_that_waits_may_be_cancelled():
    async def tell() -> Story:
        story = Story()
        of = prefixes("rules")
        first = asyncio.ensure_future(story.ask("first", of, first_s=30))
        second = asyncio.ensure_future(story.ask("second", of))
        await story.clock.sleep(2)
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert second.cancelled()
        return story

    story = asyncio.run(tell())
    assert story.goes() == {"first": 0}
    assert not story.leaders._leading


def test_after_its_time_what_was_written_is_written_anew():
    async def tell(gap_s: float) -> Story:
        story = Story()
        of = prefixes("rules")
        await story.ask("one", of)
        await story.clock.sleep(gap_s)
        await asyncio.gather(story.ask("two", of), story.ask("three", of))
        return story

    asked = asyncio.run(tell(100)).goes()
    assert asked["two"] == asked["three"]
    asked = asyncio.run(tell(400)).goes()
    assert asked["three"] == asked["two"] + 1


def test_who_knows_the_longest_does_not_wait_for_a_shorter_one():
    async def tell() -> Story:
        story = Story()
        await story.ask("one", prefixes("long"))
        other = asyncio.ensure_future(story.ask("other", prefixes("rules"), first_s=20))
        await story.clock.sleep(1)
        await story.ask("two", prefixes("rules", "long"))
        await other
        return story

    asked = asyncio.run(tell()).goes()
    assert asked["two"] == asked["other"] + 1


def test_where_what_is_written_can_be_read_at_once_nobody_waits():
    async def tell() -> Story:
        story = Story(replace(CACHING, readable_after=""))
        await asyncio.gather(*(story.ask(f"r{i}", prefixes("rules")) for i in range(3)))
        return story

    assert set(asyncio.run(tell()).goes().values()) == {0}


def test_what_is_remembered_is_bounded():
    async def tell() -> Story:
        story = Story()
        for number in range(MAX_KNOWN + 50):
            async with story.leaders.turn(prefixes(str(number))):
                pass
        return story

    assert len(asyncio.run(tell()).leaders._until) == MAX_KNOWN


# -- through a backend --


class Failing(CacheApi):
    """The first request comes to nothing, in a way that is not tried again."""

    async def send(self, lowered, facts, on_text):
        if not self.bodies:
            self.bodies.append({})
            await self.clock.sleep(2)
            raise sgc.SgcError("scripted")
        return await super().send(lowered, facts, on_text)


def fork_of(n: int):
    @sgc.function
    def fan(s, text: str):
        s += sgc.user(text)
        for number, part in enumerate(s.fork(n)):
            part += sgc.user(f"{number}?") + sgc.assistant(sgc.gen("a", max_tokens=64))

    return fan.compile()


def backend_of(make_api=CacheApi, **choices):
    clock = VirtualClock()
    api = make_api(AnthropicCache(), clock)
    facts = facts_for("anthropic", "claude-opus-5", Choices(**choices))
    return api, ProviderBackend(api, facts, LimitSettings(), clock=clock)


def test_a_fork_writes_its_trunk_once():
    api, backend = backend_of()
    fork_of(10).run(TEXT, backend=Endpoint(backend))
    bill = api.cache.bill
    assert bill.n_requests == 10
    assert bill.cached == 9 * bill.written
    assert backend.leaders.n_waited == 9


def test_a_leaders_error_is_the_runs_and_no_other_request_hangs():
    _, backend = backend_of(Failing)
    endpoint = Endpoint(backend)
    with pytest.raises(sgc.SgcError, match="scripted"):
        fork_of(4).run(TEXT, backend=endpoint)
    result = fork_of(4).run(TEXT, backend=endpoint)
    assert result.stats.requests - result.stats.commits == 4
    assert not backend.leaders._leading


# -- keys --


def test_a_key_is_used_fifteen_times_a_minute_and_conversations_stay_where_they_are():
    clock = VirtualClock()
    keys = CacheKeys(Caching("automatic", 1024, key_rpm=15), clock)
    rows = [keys.key_for(prefixes("rules", f"row {i}")) for i in range(40)]
    assert [rows.count(key) for key in dict.fromkeys(rows)] == [15, 15, 10]
    assert keys.key_for(prefixes("rules", "row 35", "turn 35")) == rows[35]
    clock.time = 61.0
    assert keys.key_for(prefixes("rules", "row 3", "turn 3")) == rows[3] == "sgc-rules-0"
    assert keys.key_for(prefixes("rules", "row 20")) == rows[20] != rows[3]


def test_no_marks_no_key_and_other_caches_have_none():
    clock = VirtualClock()
    assert CacheKeys(Caching("automatic", 1024, key_rpm=15), clock).key_for(()) == ""
    assert CacheKeys(CACHING, clock).key_for(prefixes("rules")) == ""
    assert CacheKeys(None, clock).key_for(prefixes("rules")) == ""
