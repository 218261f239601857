"""Providers that fail: every row ends once, waits are as asked for, and tries are bounded."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from aiohttp import web
from providers.clocks import JumpingClock
from providers.provider_server import Fault

import sgc
from sgc.errors import BackendError, ContextExceeded, EngineUnavailable, Overloaded
from sgc.runtime.executor.backends.providers.wire import errors
from sgc.runtime.executor.backends.providers.wire.errors import (
    ContentRefused,
    KeyRefused,
    MalformedReply,
    ProviderUnavailable,
    RateLimited,
)
from sgc.runtime.executor.backends.providers.wire.limits import Limits, LimitSettings
from sgc.runtime.executor.backends.providers.wire.reply import Replies, Spent
from sgc.runtime.executor.backends.providers.wire.retry import RETRIES, Attempts, Estimate

BUSY = Fault("status", 429, {"retry-after": "2"})
BUSY_MS = Fault("status", 429, {"retry-after-ms": "2500"})
KINDS = [BUSY, BUSY_MS, Fault("status", 500), Fault("status", 502), Fault("status", 503),
         Fault("status", 529), Fault("cut"), Fault("garbage"), Fault("double")]  # fmt: skip
ALWAYS = {"stream": "always"}


@sgc.function
def row(s, number: int):
    s += f"row {number}:" + sgc.gen("a", max_tokens=8, temperature=0)


class Faults:
    """The same for each request whatever the order: 30% of its tries fail, at most five."""

    def __init__(self, kinds, timeouts=()):
        self.kinds, self.timeouts = kinds, timeouts
        self.tries = Counter()
        self.made = Counter()

    def __call__(self, ask):
        self.tries[ask.raw] += 1
        number = self.tries[ask.raw]
        if ask.text in self.timeouts and number == 1:
            self.made["timeout"] += 1
            return Fault("timeout")
        rng = random.Random(ask.text + str(number))
        if number > 5 or rng.random() >= 0.3:
            return None
        fault = rng.choice(self.kinds)
        self.made[fault.kind + str(fault.status or "")] += 1
        return fault


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("model", "options", "n_rows"),
    [("gpt-4o", None, 150), ("gpt-4o", ALWAYS, 150), ("claude-haiku-4-5", None, 100),
     ("claude-haiku-4-5", ALWAYS, 150)],
)  # fmt: skip
def test_every_row_ends_once_whatever_fails(serve, ask, model, options, n_rows):
    # Only a stream can say something twice.
    kinds = KINDS if options else KINDS[:-1]
    faults = Faults(kinds)
    server = serve(fault=faults, reply=lambda ask: f"<{ask.text}>")
    endpoint = ask(server, model, options=options, max_concurrency=48)
    clock = endpoint.backend.limits.clock = JumpingClock()
    states = row.run_batch([{"number": n} for n in range(n_rows)], backend=endpoint)
    for n, state in enumerate(states):
        assert state.error() is None
        assert state["a"] == f"<row {n}:>"
    answered = Counter(each.raw for each in server.answered)
    assert len(answered) == n_rows
    assert set(answered.values()) == {1}
    n_faults = sum(faults.made.values())
    assert n_faults > 0.25 * n_rows
    assert len(faults.made) >= len({(k.kind, k.status) for k in kinds})
    assert n_faults == endpoint.backend.attempts.n_retries
    assert sum(seconds >= 2 for seconds in clock.sleeps) >= faults.made["status429"]
    assert server.n_most <= 48


@pytest.mark.slow
def test_a_reply_that_does_not_come_is_asked_for_again(serve, ask):
    # Few rows: on a busy machine the replies that do come must be in time.
    faults = Faults([BUSY], {"row 3:", "row 7:"})
    server = serve(fault=faults, reply=lambda ask: f"<{ask.text}>")
    endpoint = ask(server, "gpt-4o", request_timeout_s=2.5, max_concurrency=4)
    clock = endpoint.backend.limits.clock = JumpingClock()
    states = row.run_batch([{"number": n} for n in range(8)], backend=endpoint)
    assert [state["a"] for state in states] == [f"<row {n}:>" for n in range(8)]
    assert faults.made["timeout"] == 2
    assert endpoint.backend.attempts.n_retries == sum(faults.made.values())
    assert len(clock.sleeps) >= sum(faults.made.values())  # a server that is busy holds all back


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_rows_end_once(serve, ask):
    faults = Faults(KINDS[:-1])
    server = serve(fault=faults, reply=lambda ask: f"<{ask.text}>")
    endpoint = ask(server, "gpt-4o", max_concurrency=64)
    endpoint.backend.limits.clock = JumpingClock()
    states = row.run_batch([{"number": n} for n in range(10_000)], backend=endpoint)
    assert all(state["a"] == f"<row {n}:>" for n, state in enumerate(states))
    answered = Counter(each.raw for each in server.answered)
    assert (len(answered), set(answered.values())) == (10_000, {1})


ENDS = [
    (Fault("status", 400, body={"error": {"message": "odd"}}), BackendError, "odd"),
    (Fault("status", 400, body={"error": {"message": "no", "code": "context_length_exceeded"}}),
     ContextExceeded, "400"),
    (Fault("status", 400, body={"error": {"message": "prompt is too long: 9 > 8"}}),
     ContextExceeded, "too long"),
    (Fault("status", 401), KeyRefused, "check the API key"),
    (Fault("status", 404), BackendError, "is there a model"),
    (Fault("status", 429, body={"error": {"message": "x", "code": "insufficient_quota"}}),
     BackendError, "no money left"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "kind", "words"), ENDS, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
def test_what_trying_again_cannot_help_is_tried_once(serve, ask, model, fault, kind, words):
    server = serve(fault=lambda ask: fault)
    error = row.run(number=1, backend=ask(server, model)).error()
    assert isinstance(error, kind)
    assert words in str(error)
    assert len(server.asks) == 1


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (BUSY, Overloaded),
        (Fault("status", 529), EngineUnavailable),
        (Fault("garbage"), MalformedReply),
    ],
    ids=["429", "529", "garbage"],
)
def test_tries_are_bounded(serve, ask, model, fault, kind):
    server = serve(fault=lambda ask: fault)
    endpoint = ask(server, model)
    endpoint.backend.limits.clock = JumpingClock()
    error = row.run(number=1, backend=endpoint).error()
    assert isinstance(error, kind)
    assert len(server.asks) == RETRIES.max_tries


ODD = [
    [], "text", 7, {}, {"choices": None}, {"choices": [1]}, {"choices": [{"message": None}]},
    {"choices": [{"message": {"content": 7}, "finish_reason": "stop"}]},
    {"choices": [{"message": {"content": "a"}, "finish_reason": "odd"}]},
    {"choices": [{"message": {"content": "a"}, "finish_reason": ["stop"]}]},
    {"choices": [{"message": {"content": []}, "finish_reason": "stop"}]},
    {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}],
     "usage": {"prompt_tokens": -1}},
    {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}],
     "usage": {"completion_tokens": 10**12}},
    {"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn",
     "usage": {"output_tokens": 10**12}},
    {"choices": [{"message": {"content": "a"}, "finish_reason": "stop", "logprobs": [1]}]},
    {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}] * 2},
    {"content": None}, {"content": [1]}, {"content": [{"type": "text"}], "stop_reason": "end_turn"},
    {"content": [{"type": "text", "text": "a"}], "stop_reason": None},
    {"content": [{"type": "text", "text": "a"}], "stop_reason": ["end_turn"]},
    {"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn", "usage": {
        "input_tokens": "many"}},
]  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
@pytest.mark.parametrize("body", ODD, ids=lambda body: str(body)[:50])
def test_replies_of_odd_shapes_are_malformed(serve, ask, recwarn, model, body):
    server = serve(fault=lambda ask: Fault("status", 200, body=body if body else [body]))
    endpoint = ask(server, model)
    endpoint.backend.limits.clock = JumpingClock()
    error = row.run(number=1, backend=endpoint).error()
    assert isinstance(error, MalformedReply)
    assert len(server.asks) == RETRIES.max_tries
    assert not [each for each in recwarn if each.category is not DeprecationWarning]


STREAMS = [
    b"data: {not json\n\n",
    b"data: []\n\n",
    b'data: {"choices": [1]}\n\n',
    b'data: {"choices": {"a": []}}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {"content": [1]}, "finish_reason": "stop"}]}\n\n',
    b"\xff\xfe\n\n",
    b"event: message_stop\ndata: {}\n\n",
    b'event: message_start\ndata: {"type": "message_start", "message": null}\n\n',
    b'event: content_block_delta\ndata: {"type": "content_block_delta"}\n\n',
    b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n',
    b'data: {"error": {"message": "odd"}}\n\n',
    b"",
]


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
@pytest.mark.parametrize("stream", STREAMS)
def test_streams_of_odd_shapes_end_in_typed_errors(serve, ask, model, stream):
    server = serve()

    async def answer(request, ask):
        return web.Response(body=stream, content_type="text/event-stream")

    server._answer = answer
    endpoint = ask(server, model, options=ALWAYS)
    endpoint.backend.limits.clock = JumpingClock()
    error = row.run(number=1, backend=endpoint).error()
    assert isinstance(error, (MalformedReply, ProviderUnavailable))
    assert len(server.asks) == RETRIES.max_tries


def test_a_text_that_was_shown_is_not_begun_anew(serve, ask):
    server = serve(fault=lambda ask: Fault("cut"), reply=lambda ask: "a long reply to be cut")
    endpoint = ask(server, "gpt-4o")
    state = row.run(number=1, backend=endpoint, stream=True)
    with pytest.raises(ProviderUnavailable):
        list(state.text_iter())
    assert len(server.asks) == 1


def test_a_server_that_is_not_there_is_an_error(ask, serve):
    server = serve()
    endpoint = ask(server, "gpt-4o")
    endpoint.backend.limits.clock = JumpingClock()
    asyncio.run_coroutine_threadsafe(server._runner.cleanup(), server._loop).result()
    error = row.run(number=1, backend=endpoint).error()
    assert isinstance(error, ProviderUnavailable)
    with pytest.raises(EngineUnavailable):
        sgc.connect(f"openai+{server.url}/v1")


# -- one request, without a server -------------------------------------------------------------


def attempts(errors_, **settings):
    """Sends one request whose first tries end with errors; (what came, the clock)."""
    clock = JumpingClock()
    left = list(errors_)

    async def once():
        if left:
            raise left.pop(0)
        return Replies((), Spent(prompt=1, output=1))

    async def run():
        limits = Limits(LimitSettings(**settings), 4, clock)
        return await Attempts(limits, lambda replies: 0.0).send(once, Estimate(10), seed=5)

    try:
        return asyncio.run(run()), clock
    except BackendError as error:
        return error, clock


def limited(seconds):
    error = RateLimited("busy")
    error.retry_after_s = seconds
    return error


def test_waits_grow_with_jitter_and_obey_the_server():
    _, clock = attempts([ProviderUnavailable("x")] * 6)
    assert all(0 <= wait <= 0.5 * 2**n for n, wait in enumerate(clock.sleeps))
    assert len(set(clock.sleeps)) == 6
    assert attempts([ProviderUnavailable("x")] * 6)[1].sleeps == clock.sleeps  # of one seed
    _, clock = attempts([limited(7.5), limited(0.0)])
    assert clock.sleeps[0] == 7.5
    assert clock.sleeps[1] <= 1


def test_waiting_is_bounded():
    error, clock = attempts([limited(250.0)] * 7)
    assert isinstance(error, RateLimited)
    assert sum(clock.sleeps) <= 600
    assert len(clock.sleeps) == 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "3"}, 3.0),
        ({"x-ratelimit-reset-requests": "1m2.5s", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"anthropic-ratelimit-tokens-reset": "2020-01-01T00:00:00Z"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1000000"}, 1e6),
        ({"retry-after": "1" + "0" * 400}, 1e6),
        ({"retry-after-ms": "86400000000000"}, 1e6),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 1e6),
        ({"retry-after": "Fri, 31 Dec 99999999999999999999 23:59:59 GMT"}, None),
        ({"x-ratelimit-reset-requests": "9" * 400 + "d"}, 1e6),
        ({}, None),
    ],
)
def test_waits_are_read_from_headers(headers, seconds):
    assert errors.retry_after_s(headers) == seconds


def test_who_is_told_to_wait_for_weeks_is_not_asked_again_at_once(serve, ask):
    server = serve(fault=lambda ask: Fault("status", 429, {"retry-after": "2592000"}))
    endpoint = ask(server, "gpt-4o")
    clock = endpoint.backend.limits.clock = JumpingClock()
    assert isinstance(row.run(number=1, backend=endpoint).error(), RateLimited)
    assert (len(server.asks), clock.sleeps) == (1, [])


def test_refusals_of_the_model_are_errors(serve, ask):
    server = serve()
    whole = server._answer

    async def refuse(request, ask):
        response = await whole(request, ask)
        response.text = response.text.replace("end_turn", "refusal").replace(
            '"finish_reason": "stop"', '"finish_reason": "content_filter"'
        )
        return response

    server._answer = refuse
    for model in ("gpt-4o", "claude-haiku-4-5"):
        error = row.run(number=1, backend=ask(server, model)).error()
        assert isinstance(error, ContentRefused)
    assert len(server.asks) == 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no  model"}}, "no  model"),
        ("", "(no message)"),
        ("x" * 600, "x" * 500),
        ("\n<!DOCTYPE HTML>\n<title>Error\n page</title>", "a page in HTML, 'Error page'"),
        ("<html><body>", "a page in HTML"),
    ],
)  # fmt: skip
def test_a_message_is_taken_from_what_a_provider_sends(body, message):
    assert errors.message_of(body) == message
