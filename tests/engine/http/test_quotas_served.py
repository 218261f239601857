"""Limits of tokens on a running server, over HTTP and gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import openai
import pytest
from engine.http.conftest import ARGUMENTS, Answer, HttpEngine
from openai import OpenAI

from sgc.errors import Overloaded
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Sampling, TextRun

TOKENS = """
[[token]]
name = "few"
token = "few-secret"
requests_per_minute = 2
[[token]]
name = "short"
token = "short-secret"
tokens_per_minute = 40
[[token]]
name = "batch"
token = "batch-secret"
tokens_per_minute = 50
[[token]]
name = "one"
token = "one-secret"
max_concurrent = 1
[[token]]
name = "free"
token = "free-secret"
"""
BODY = {"model": "fake", "prompt": "a b c", "max_tokens": 4, "ignore_eos": True}


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpEngine]:
    file = tmp_path_factory.mktemp("tokens") / "tokens.toml"
    file.write_text(TOKENS)
    with EmbeddedEngine("fake", [*ARGUMENTS, "--token-file", str(file)]) as engine:
        yield HttpEngine(engine)


def ask(engine: HttpEngine, name: str, **more: object) -> Answer:
    return engine.ask("/v1/completions", {**BODY, **more}, Authorization=f"Bearer {name}-secret")


def test_requests_a_minute(limited: HttpEngine) -> None:
    first = ask(limited, "few", n=3)  # is one request
    assert first.status == 200
    assert first.headers["x-ratelimit-limit-requests"] == "2"
    assert first.headers["x-ratelimit-remaining-requests"] == "1"
    assert ask(limited, "few").status == 200
    refused = ask(limited, "few")
    assert refused.status == 429
    assert refused.error["type"] == "rate_limit_error"
    assert refused.error["code"] == "rate_limit_exceeded"
    assert "the limit of few is reached: at most 2 requests a minute" in refused.error["message"]
    assert 20 < int(refused.headers["Retry-After"]) <= 30
    assert int(refused.headers["retry-after-ms"]) <= 30_000
    assert ask(limited, "free").status == 200
    client = OpenAI(base_url=limited.url + "/v1", api_key="few-secret", max_retries=0)
    with client, pytest.raises(openai.RateLimitError):
        client.completions.create(model="fake", prompt="a")


def test_tokens_a_minute_are_those_computed(limited: HttpEngine) -> None:
    """The second prompt is cached, so that it takes only what it generates."""
    assert ask(limited, "short", max_tokens=8).status == 200
    left = int(ask(limited, "short", max_tokens=1).headers["x-ratelimit-remaining-tokens"])
    assert ask(limited, "short", max_tokens=60).status == 200
    refused = ask(limited, "short")
    assert refused.status == 429
    assert "40 tokens a minute" in refused.error["message"]
    assert int(refused.headers["Retry-After"]) >= (60 - left) * 60 // 40


async def prefetched(backend: EngineBackend, n_times: int) -> None:
    for _ in range(n_times):
        await backend._prefetch((TextRun("a"),))


def test_at_once_over_grpc(limited: HttpEngine) -> None:
    """Our client learns how many there may be, and asks for no more; another's are refused."""

    async def main() -> None:
        async with EngineBackend(limited.uri, "one-secret") as backend:
            assert (await backend.info()).max_in_flight == 1
            sampling = Sampling(max_tokens=2, ignore_eos=True)
            await asyncio.gather(
                *(backend.generate((TextRun(f"{i}"),), sampling) for i in range(4))
            )
        async with EngineBackend(limited.uri, "few-secret") as backend:
            with pytest.raises(Overloaded, match="the limit of few") as caught:
                await prefetched(backend, 4)  # some of a minute may be over
            assert caught.value.retry_after_s is not None
            assert 0 < caught.value.retry_after_s <= 30

    asyncio.run(main())


def test_use_is_told_by_the_token_s_name(limited: HttpEngine) -> None:
    told = limited.ask("/metrics", Authorization="Bearer free-secret").text
    assert 'sgc_token_requests_total{outcome="finished",token="one"}' in told
    assert 'sgc_token_quota_refusals_total{limit="requests",token="few"}' in told
    assert "secret" not in told


def test_a_request_of_several_prompts_is_let_in_by_its_first_and_pays_for_all(
    limited: HttpEngine,
) -> None:
    prompts = ["k l m n o p q r s t" * 2, "u v w x y z a b c d" * 2, "other words than these" * 2]
    first = ask(limited, "batch", prompt=prompts, max_tokens=1)
    assert first.status == 200
    assert first.headers["x-ratelimit-remaining-tokens"] == "0"
    assert ask(limited, "batch").status == 429
