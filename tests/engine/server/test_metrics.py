"""Metrics: what they are called and say, who may read them, and that a scrape stops nobody."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import re
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from waiting import BOUND_S

from sgc.errors import ContextExceeded, UsageError
from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.config import FOR_METRICS, http_address
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.metrics import http as metrics_http
from sgc.runtime.engine.metrics.http import serving_metrics
from sgc.runtime.engine.metrics.metrics import RequestMetrics, StatsCollector, StatsSource
from sgc.runtime.engine.metrics.scraping import scraping
from sgc.runtime.engine.server.accounts.tokens import Tokens
from sgc.runtime.engine.server.listen import Address, Security
from sgc.runtime.engine.server.tally import Tally
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Prompt, Sampling, TextRun

DOCS = Path(__file__).resolve().parents[3] / "docs" / "observability.md"
HELLO: Prompt = (TextRun("Hello, how are you today?"),)
GREEDY = Sampling(max_tokens=10, temperature=0.0, ignore_eos=True)
ENDLESS = Sampling(max_tokens=3000, ignore_eos=True)
INFO = pb.Info(engine_version="1", model="m", dtype="float32", device="cpu", weights="int8", kv="f")
Values = dict[tuple[str, ...], float]


def values_of(text: str) -> Values:
    """(name, label values in the order of their names) -> value."""
    found: Values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[(sample.name, *(sample.labels[k] for k in sorted(sample.labels)))] = sample.value
    return found


def fetch(url: str, token: str | None = None, tls: ssl.SSLContext | None = None) -> str:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=BOUND_S, context=tls) as answer:
        return str(answer.read().decode())


async def stats_of_zeros() -> pb.Stats:
    return pb.Stats()


@contextlib.asynccontextmanager
async def metrics(ask=stats_of_zeros, token=None, tls=None) -> AsyncIterator[str]:
    """In the running loop, on a port of its own."""
    address = Address("127.0.0.1", 0)
    security = Security(Tokens([token] if token else []))
    with scraping(ask, INFO, Tally()) as found:
        async with serving_metrics(address, security, tls, found) as url:
            yield url


# What they say.


def test_statistics_become_metrics() -> None:
    stats = pb.Stats(
        prompt_tokens=100, cached_tokens=60, computed_tokens=40, sampled_tokens=7, steps=5,
        forward_s=0.5, busy_s=0.75, finished_requests=3, refused_requests=2,
        cancelled_requests=1, pool_tokens=1000, free_tokens=700, cached_pool_tokens=250,
        evictable_tokens=200, waiting_requests=4, parked_requests=1,
    )  # fmt: skip

    registry = CollectorRegistry()
    registry.register(StatsCollector(lambda: (stats, 0.25), INFO))
    found = values_of(generate_latest(registry).decode())
    assert found[("sgc_engine_info", "cpu", "float32", "f", "m", "1", "int8")] == 1
    assert found[("sgc_stats_age_seconds",)] == 0.25
    outcomes = ("finished", "refused", "cancelled", "failed")
    assert [found[("sgc_requests_total", o)] for o in outcomes] == [3, 2, 1, 0]
    assert [found[("sgc_pool_tokens", s)] for s in ("free", "evictable", "held")] == [700, 200, 100]
    assert found[("sgc_cached_tokens_total",)] + found[("sgc_computed_tokens_total",)] == 100
    assert found[("sgc_generated_tokens_total",)] == 7
    assert found[("sgc_forward_seconds_total",)] == 0.5
    assert found[("sgc_waiting_requests",)] == 4


def test_times_and_tokens_are_distributed_by_kind() -> None:
    registry = CollectorRegistry()
    observe = RequestMetrics(registry).observe
    usage = pb.Usage(prompt_tokens=100, cached_tokens=64, computed_tokens=36, completion_tokens=11,
                     queue_s=0.5, prefill_s=0.25, decode_s=2)  # fmt: skip
    observe("generate", usage)
    observe("score", pb.Usage(prompt_tokens=9, queue_s=1, decode_s=0.5))
    observe("commit", pb.Usage(prompt_tokens=9, queue_s=1))
    found = values_of(generate_latest(registry).decode())
    assert found[("sgc_request_queue_seconds_sum", "generate")] == 0.5
    assert found[("sgc_time_to_first_token_seconds_sum",)] == 0.75
    assert found[("sgc_time_per_output_token_seconds_sum",)] == 0.2
    assert found[("sgc_request_cached_tokens_bucket", "generate", "64.0")] == 1
    assert found[("sgc_request_cached_tokens_bucket", "generate", "32.0")] == 0
    assert found[("sgc_request_decode_seconds_sum", "score")] == 0.5
    assert found[("sgc_request_queue_seconds_count", "commit")] == 1
    assert found[("sgc_time_to_first_token_seconds_count",)] == 1


def test_failures_are_told_from_refusals() -> None:
    tally = Tally()
    for code in pb.ErrorCode.values():
        tally.fail(code)
    assert (tally.failed, tally.expired) == (2, 1)
    assert tally.refused == len(pb.ErrorCode.values()) - 3


# An engine.


@pytest.fixture(scope="module")
def scraped() -> Iterator[tuple[EmbeddedEngine, str]]:
    """An engine with metrics, and their URL."""
    arguments = ["--metrics", "0", "--max-context", "4096", "--pool-tokens", "20000"]
    with EmbeddedEngine("fake", arguments) as engine:
        found = re.search(r"metrics on (http://127\.0\.0\.1:\d+/metrics)", engine.stderr_tail)
        assert found, engine.stderr_tail
        yield engine, found[1]


def test_an_engine_counts_what_became_of_its_requests(
    scraped: tuple[EmbeddedEngine, str],
) -> None:
    engine, url = scraped

    async def main() -> pb.Stats:
        async with EngineBackend(engine.uri) as backend:
            await backend.generate(HELLO, GREEDY)
            await backend.generate(HELLO, GREEDY)
            await backend.score(HELLO, (" yes", " no"))
            await backend.commit_prefix(HELLO)
            with pytest.raises(ContextExceeded):
                await backend.generate((TextRun("word " * 5000),), GREEDY)
            endless = asyncio.create_task(backend.generate(HELLO, ENDLESS))
            while (await backend.stats()).running_requests == 0:
                await asyncio.sleep(0.005)
            endless.cancel()
            while (stats := await backend.stats()).running_requests or not stats.cancelled_requests:
                await asyncio.sleep(0.005)
            return stats

    stats = asyncio.run(main())
    ended = (stats.finished_requests, stats.refused_requests)
    assert (*ended, stats.cancelled_requests, stats.failed_requests) == (4, 1, 1, 0)
    assert stats.requests == 6
    assert stats.in_flight_requests == 0
    assert stats.prompt_tokens == stats.cached_tokens + stats.computed_tokens
    assert stats.sampled_tokens == stats.completion_tokens >= 20
    assert 0 < stats.forward_s < stats.busy_s
    assert stats.free_tokens + stats.evictable_tokens == stats.pool_tokens
    assert stats.evictable_tokens == stats.cached_pool_tokens

    found = values_of(fetch(url))
    assert found[("sgc_requests_total", "finished")] == 4
    assert found[("sgc_cached_tokens_total",)] == stats.cached_tokens
    assert found[("sgc_generated_tokens_total",)] == stats.sampled_tokens
    assert found[("sgc_request_prefill_seconds_count", "generate")] == 2
    assert found[("sgc_request_queue_seconds_count", "commit")] == 1
    assert found[("sgc_time_to_first_token_seconds_count",)] == 2
    assert found[("sgc_stats_age_seconds",)] < 1


def test_what_the_docs_name_exists(scraped: tuple[EmbeddedEngine, str]) -> None:
    names = set(re.findall(r"^# TYPE (\w+)", fetch(scraped[1]), flags=re.MULTILINE))
    text = DOCS.read_text(encoding="utf-8")
    named = set(re.findall(r"\bsgc_\w+", text)) - {"sgc_cached_", "sgc_computed_"}
    named = {name for name in named if not name.endswith("_")}
    assert len(named) > 15
    assert named <= names
    for name in names:
        assert name.startswith("sgc_")
        assert not name.endswith(("_s", "_ms", "_count"))


# Who may read them, and what they cost others.


def test_addresses_are_checked_before_anything_is_started() -> None:
    def scraped(text: str, security: Security) -> Address | None:
        return http_address("--metrics", text, security, FOR_METRICS)

    assert scraped("off", Security()) is None
    with pytest.raises(UsageError, match="--metrics needs a package that is not installed: none"):
        http_address("--metrics", "0", Security(), {"none": "no_such_module"})
    assert scraped("0", Security()) == Address("127.0.0.1", 0)
    assert scraped("0.0.0.0:0", Security(Tokens(["secret"]))) == Address("0.0.0.0", 0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for text, words in (
            ("0.0.0.0:0", "no token is set"),
            ("unix:/tmp/x", r"expected \[host:\]port or off"),
            ("on", "expected host:port"),
            (str(taken.getsockname()[1]), "is in use"),
        ):
            with pytest.raises(UsageError, match=words):
                scraped(text, Security())


def test_a_token_is_asked_for_where_there_is_one() -> None:
    async def main() -> None:
        async with metrics(token="secret") as url:
            for token in (None, "wrong", "secret\xe9"):
                with pytest.raises(urllib.error.HTTPError, match="401"):
                    await asyncio.to_thread(fetch, url, token)
            with pytest.raises(urllib.error.HTTPError, match="401"):  # open to probes elsewhere
                await asyncio.to_thread(fetch, url.replace("metrics", "health"))
            assert "sgc_steps_total" in await asyncio.to_thread(fetch, url, "secret")

    asyncio.run(main())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls(tmp_path: Path) -> None:
    key, cert = str(tmp_path / "key"), str(tmp_path / "cert")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    extension = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert]
    subprocess.run([*command.split(), *extension], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)

    async def main() -> None:
        async with metrics(tls=tls) as url:
            assert url.startswith("https://")
            trusting = ssl.create_default_context(cafile=cert)
            text = await asyncio.to_thread(fetch, url, None, trusting)
            assert "sgc_steps_total" in text
            with pytest.raises((urllib.error.URLError, ConnectionError)):
                await asyncio.to_thread(fetch, url.replace("https", "http"))

    asyncio.run(main())


def test_in_a_long_step_the_last_known_counts_are_given_and_one_question_is_put() -> None:
    async def main() -> None:
        n_asked, answer = 0, asyncio.Event()
        answer.set()

        async def ask() -> pb.Stats:
            nonlocal n_asked
            n_asked += 1
            await answer.wait()
            return pb.Stats(steps=n_asked)

        source = StatsSource(ask, timeout_s=0.02)
        await source.ask()
        answer.clear()
        for _ in range(3):
            await source.refresh()
            stats, age_s = source.known()
            assert stats.steps == 1
        assert age_s >= 0.06
        assert n_asked == 2
        answer.set()
        await source.ask()
        assert source.known()[0].steps > 1

    asyncio.run(main())


def test_the_event_loop_goes_on_during_a_scrape_that_gets_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics_http, "MAX_SCRAPES", 2)

    async def never() -> pb.Stats:
        await asyncio.Event().wait()
        return pb.Stats()

    async def main() -> None:
        async with metrics(never) as url:
            scrapes = [asyncio.create_task(asyncio.to_thread(fetch, url)) for _ in range(2)]
            n_turns = 0
            while not all(scrape.done() for scrape in scrapes):
                await asyncio.sleep(0.001)
                n_turns += 1
            assert n_turns > 10  # of some hundreds; two, were it held up while it is waited for
            for scrape in scrapes:
                assert values_of(scrape.result())[("sgc_stats_age_seconds",)] >= 1

    asyncio.run(main())


def test_who_says_nothing_takes_no_place_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_http, "MAX_SCRAPES", 1)

    async def main() -> None:
        async with metrics() as url:
            reader = await silent(url)
            assert "sgc_steps_total" in await asyncio.to_thread(fetch, url)
            assert await hung_up(reader)
        monkeypatch.setattr(metrics_http, "CLIENT_TIMEOUT_S", 0.2)
        async with metrics() as url:
            assert await hung_up(await silent(url))

    async def silent(url: str) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.split(":")[2][:-8]))
        writer.write(b"GET /metrics HTTP/1.1\r\nHost:")
        opened.append(writer)
        return reader

    async def hung_up(reader: asyncio.StreamReader) -> bool:
        with contextlib.suppress(ConnectionError):
            return await asyncio.wait_for(reader.read(), BOUND_S) == b""
        return True

    opened: list[asyncio.StreamWriter] = []
    asyncio.run(main())


def test_more_scrapes_than_there_are_places_for_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics_http, "MAX_SCRAPES", 2)

    async def never() -> pb.Stats:
        await asyncio.Event().wait()
        return pb.Stats()

    async def main() -> None:
        async with metrics(never) as url:
            scrapes = []
            for _ in range(2):
                scrapes.append(asyncio.create_task(asyncio.to_thread(fetch, url)))
                await asyncio.sleep(0.2)
            with pytest.raises(urllib.error.HTTPError, match="503"):
                await asyncio.to_thread(fetch, url)
            assert all("sgc_steps_total" in text for text in await asyncio.gather(*scrapes))

    asyncio.run(main())


def test_who_asks_decides_the_form_and_which_metrics() -> None:
    def get(url: str, **headers: str) -> tuple[str, bytes]:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=BOUND_S) as answer:
            assert answer.headers["Connection"] == "close"
            return answer.headers["Content-Type"], answer.read()

    async def main() -> None:
        async with metrics() as url:
            kind, text = await asyncio.to_thread(get, url)
            assert kind.startswith("text/plain; version=")
            kind, _ = await asyncio.to_thread(get, url, Accept="application/openmetrics-text")
            assert kind.startswith("application/openmetrics-text")
            _, packed = await asyncio.to_thread(get, url, **{"Accept-Encoding": "gzip"})
            assert (
                values_of(gzip.decompress(packed).decode()).keys()
                == values_of(text.decode()).keys()
            )
            _, one = await asyncio.to_thread(get, f"{url}?name[]=sgc_request_completion_tokens_sum")
            assert set(values_of(one.decode())) == {("sgc_request_completion_tokens_sum",)}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:1"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:9"}, 200),
        ({}, 200),
    ],
)
def test_without_a_token_no_page_of_another_site_reads_them(headers, status) -> None:
    def get(url: str) -> int:
        request = urllib.request.Request(url, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code

    async def main() -> None:
        async with metrics() as url:
            assert await asyncio.to_thread(get, url) == status
        async with metrics(token="secret") as url:
            assert await asyncio.to_thread(get, url) == 401

    asyncio.run(main())
