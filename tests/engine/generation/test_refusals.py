"""What of a generation is refused at once, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from engine.generation.asking import GREEDY, HELLO, cpu_of, run
from waiting import cpu_below

from sgc.errors import BackendError, SgcError
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import (
    LogprobsAsked,
    Sampling,
)

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"min_tokens": 11}, r"min_tokens \(11\) is larger than max_tokens \(10\)"),
    ({"regex": "a", "stop_regex": ("b",)}, "stop_regex and a constraint are both given"),
    ({"json_schema": "{}", "stop_regex": ("b",)}, "stop_regex and a constraint are both given"),
    ({"regex": "a", "json_schema": "{}"}, "regex and json_schema are both given"),
    ({"regex": "a", "ebnf": 'start: "a"'}, "both given"),
    ({"regex": "[ab]{500}"}, "max_tokens is 10, but a text .* has 500 characters at least"),
    ({"stop": ("x" * 100_000,)}, "bytes in a stop string: 100000, of at most 4096"),
    ({"stop": tuple(f"x{i}" for i in range(10_000))}, "stop strings: 10000, of at most 64"),
    ({"stop": ("",)}, "a stop string is empty"),
    ({"stop": ("\ud800",)}, "lone surrogate"),
    ({"regex": "\ud800"}, "lone surrogate"),
    ({"logprobs": LogprobsAsked(top=10**6)}, "top_logprobs_num: 1000000, of at most 100"),
    ({"logprobs": LogprobsAsked(top=-1)}, "out of range"),
    ({"logprobs": LogprobsAsked(start=-1)}, "out of range"),
    ({"logit_bias": ((10**6, 1.0),)}, "logit_bias: token id 1000000 is not below"),
    ({"logit_bias": ((-1, 1.0),)}, "out of range"),
    ({"logit_bias": ((5, float("nan")),)}, "a logit bias must be in .* found nan"),
    ({"logit_bias": ((5, float("inf")),)}, "a logit bias must be in .* found inf"),
    ({"logit_bias": ((5, 1001.0),)}, "a logit bias must be in .* found 1001"),
    ({"logit_bias": tuple((i, 1.0) for i in range(1025))}, "logit biases: 1025, of at most 1024"),
    ({"regex": "(?=a)b"}, "looks ahead or behind"),
    ({"regex": "("}, "is invalid"),
    ({"regex": "a" * 9000}, "has 9000 characters, of at most 8192"),
    ({"regex": r"[^\s\S]"}, "nothing can satisfy the constraint"),
    ({"json_schema": "false"}, "allows nothing"),
    ({"json_schema": "{"}, "is not valid JSON"),
    ({"json_schema": ""}, "is not valid JSON"),
    ({"json_schema": '{"minimum": 3, "maximum": 1, "type": "integer"}'}, "minimum .3. is greater"),
    ({"json_schema": '{"$ref": "http://127.0.0.1:1/"}'}, "does not fetch"),
    ({"json_schema": '{"const": "a constant that takes more tokens"}', "max_tokens": 4}, "forces"),
    ({"ebnf": "start: nope"}, "nope"),
    ({"ebnf": 'root ::= "a'}, "EBNF grammar is invalid"),
    ({"ebnf": ""}, "cannot be used"),
    ({"ebnf": "root ::= b"}, "^the EBNF grammar is invalid.*'b' not found"),
]


BAD_STOPS: list[tuple[tuple[str, ...], str]] = [
    (("a*",), "matches the empty text"),
    (("(",), "is invalid"),
    (("(?=a)b",), "looks ahead"),
    ((r"a\b",), "word boundary"),
    (("^a",), "anchor"),
    (tuple(f"a{i}" for i in range(100)), "1 to 16 stop patterns, found 100"),
    (("a" * 20_000,), "16384"),
    ((r"[^\s\S]",), "can never match"),
]


def assert_refused(engine: EmbeddedEngine, more: dict[str, Any], reason: str) -> None:
    """At once, and the next request of the same session is answered."""

    async def work(backend: EngineBackend) -> None:
        expected = (await backend.generate(HELLO, GREEDY)).ids
        for on_delta in (None, lambda text: None):
            sampling = Sampling(**{"max_tokens": 10, **more})
            with cpu_below(1, cpu_of(engine)), pytest.raises(SgcError, match=reason):
                await backend.generate(HELLO, sampling, on_delta)
        assert (await backend.generate(HELLO, GREEDY)).ids == expected

    run(engine, work)


@pytest.mark.sweep
@pytest.mark.parametrize(("more", "reason"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_done_is_refused_at_once(engine: EmbeddedEngine, more, reason) -> None:
    assert_refused(engine, more, reason)


@pytest.mark.parametrize(("patterns", "reason"), BAD_STOPS, ids=lambda value: str(value)[:30])
def test_a_bad_stop_pattern_is_refused_at_once(engine: EmbeddedEngine, patterns, reason) -> None:
    assert_refused(engine, {"stop_regex": patterns}, reason)


def test_refusals_are_counted_and_leave_nothing(engine: EmbeddedEngine) -> None:
    bad = [
        Sampling(10, regex="("),
        Sampling(10, json_schema="false"),
        Sampling(10, regex="[^\\s\\S]"),
    ]

    async def work(backend: EngineBackend) -> tuple[Any, Any]:
        before = await backend.stats()
        calls = [backend.generate(HELLO, s) for s in bad * 5]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(each, BackendError) for each in found)
        return before, await backend.stats()

    before, after = run(engine, work)
    assert after.refused_requests - before.refused_requests == 15
    assert after.failed_requests == before.failed_requests
    assert (after.running_requests, after.waiting_requests, after.in_flight_requests) == (0, 0, 0)
