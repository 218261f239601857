"""What a provider says to one request of when there is room again holds for all of an endpoint."""

from __future__ import annotations

import asyncio
import email.utils
import time

import pytest
from providers.clocks import JumpingClock
from providers.provider_server import Fault
from providers.test_faults import limited, row

from sgc.runtime.executor.backends.providers.wire.errors import (
    ProviderUnavailable,
    RateLimited,
    retry_after_s,
)
from sgc.runtime.executor.backends.providers.wire.limits import MAX_HOLD_S, Limits, LimitSettings
from sgc.runtime.executor.backends.providers.wire.reply import Replies, Spent
from sgc.runtime.executor.backends.providers.wire.retry import MAX_WAITING_S, Attempts, Estimate


class Endpoint:
    """Requests of one endpoint, on a clock that jumps. starts: when each try was made."""

    def __init__(self, errors, n_room=2, **settings):
        self.errors = list(errors)
        self.clock = JumpingClock()
        self.limits = Limits(LimitSettings(**settings), n_room, self.clock)
        self.attempts = Attempts(self.limits, lambda replies: 0.0)
        self.starts = []

    async def once(self):
        self.starts.append(self.clock.now())
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        return Replies((), Spent(prompt=1, output=1))

    async def send(self, ceiling=0.0):
        return await self.attempts.send(self.once, Estimate(1, ceiling), seed=1)


def run(endpoint, n):
    """What became of n requests that come at once."""

    async def all_of_them():
        return await asyncio.gather(*(endpoint.send() for _ in range(n)), return_exceptions=True)

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("n_room", [1, 2, 8])
def test_all_wait_for_what_one_was_told(n_room):
    endpoint = Endpoint([limited(30.0)], n_room)
    assert all(isinstance(each, Replies) for each in run(endpoint, 6))
    # Those that were under way already, and then nobody before there is room.
    n_first = sum(start == 0 for start in endpoint.starts)
    assert n_first <= n_room
    assert all(start >= 30 for start in endpoint.starts if start)
    assert len(endpoint.starts) == 7


def test_the_longest_wait_counts_and_no_other_fault_holds_others():
    endpoint = Endpoint([limited(30.0), limited(90.0)], 2)
    run(endpoint, 5)
    assert all(start >= 90 for start in endpoint.starts if start)
    unheld = Endpoint([ProviderUnavailable("failed")], 1)
    run(unheld, 3)
    assert unheld.starts[:3] == [0, 0, 0]


def test_no_wait_is_longer_than_is_waited_for_one_fault():
    """Nobody is asked meanwhile; whoever would wait too long ends at once, with what was said."""
    endpoint = Endpoint([limited(MAX_HOLD_S)], 1)
    found = run(endpoint, 4)
    assert all(isinstance(each, RateLimited) for each in found)
    assert len(endpoint.starts) == 1
    assert "takes no requests for 3600 s more" in str(found[1])
    assert endpoint.clock.sleeps == []
    endpoint.clock.time = MAX_HOLD_S - MAX_WAITING_S + 1
    assert isinstance(run(endpoint, 1)[0], Replies)
    assert endpoint.starts[1] == MAX_HOLD_S


def test_a_hold_ends_whatever_a_provider_says():
    endpoint = Endpoint([limited(1e6)], 1)
    run(endpoint, 1)
    assert endpoint.limits.held_s == MAX_HOLD_S


def test_many_waits_of_one_request_are_bounded_together():
    endpoint = Endpoint([limited(250.0)] * 50, 4)
    found = run(endpoint, 8)
    assert all(isinstance(each, RateLimited) for each in found)
    assert endpoint.clock.now() <= MAX_WAITING_S


def test_who_waits_can_be_cancelled():
    endpoint = Endpoint([], 1, max_cost=1.0)

    class Stopped(JumpingClock):
        async def sleep(self, seconds):
            await asyncio.Event().wait()

    async def cancel():
        endpoint.limits.clock = endpoint.clock = Stopped()
        endpoint.limits.hold(30.0)
        waiting = [asyncio.ensure_future(endpoint.send(0.4)) for _ in range(3)]
        await asyncio.sleep(0.01)
        for each in waiting:
            each.cancel()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in found)
        endpoint.clock.time = 31.0
        await asyncio.wait_for(endpoint.send(1.0), 1)  # neither room nor money is held

    asyncio.run(cancel())
    assert endpoint.starts == [31.0]


def _date(seconds):
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize("form", ["seconds", "date"])
@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
def test_an_endpoint_waits_in_both_forms(serve, ask, model, form):
    after = "60" if form == "seconds" else _date(60)
    busy = Fault("status", 429, {"retry-after": after})
    server = serve(fault=lambda each: busy if each.number == 0 else None)
    endpoint = ask(server, model, max_concurrency=1)
    clock = endpoint.backend.limits.clock = JumpingClock()
    rows = [{"number": number} for number in range(3)]
    assert all(state.error() is None for state in row.run_batch(rows, backend=endpoint))
    assert 58 <= max(clock.sleeps) <= 61
    assert clock.now() <= 61


NOW = "Sun, 22 Nov 2026 12:00:00 GMT"
FORMS = [
    "Sun, 22 Nov 2026 12:00:30 GMT",
    "Sunday, 22-Nov-26 12:00:30 GMT",
    "Sun Nov 22 12:00:30 2026",
    "Sun, 22 Nov 2026 12:00:30 -0000",
]


@pytest.mark.parametrize("date", FORMS)
def test_dates_are_read_by_the_servers_clock(date):
    assert retry_after_s({"retry-after": date, "date": NOW}) == 30.0
    assert retry_after_s({"retry-after": NOW, "date": date}) == 0.0


@pytest.mark.parametrize("date", ["Sun, 99 Nov 2026 12:00:30 GMT", "tomorrow", "Sun,,,", ""])
def test_what_is_no_date_says_nothing(date):
    assert retry_after_s({"retry-after": date}) is None


def test_rate_limits_hold_back_only_whom_they_refused():
    headers = {"x-ratelimit-reset-requests": "6m0s"}
    assert retry_after_s(headers) == 360.0
    assert retry_after_s(headers, with_limits=False) is None
