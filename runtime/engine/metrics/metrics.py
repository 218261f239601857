"""The engine's metrics for Prometheus: their names, their sources and how they are collected.

Counters and gauges are the engine's statistics, fetched at each scrape. Histograms are kept here,
with one observation per finished request; no single request is stored. `metrics/http.py` makes
them; no other module imports prometheus_client.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Histogram, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.server.accounts.quotas import Account
from sgc.runtime.engine.worker.link import WorkerDied

ASK_TIMEOUT_S = 1.0
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
TOKENS = tuple(2**i for i in range(18))
KINDS = ("generate", "score", "commit", "prefetch", "embed")
OUTCOMES = ("finished", "refused", "cancelled", "failed", "expired")

# name (without _total), field of pb.Stats, help
COUNTERS = (
    ("prompt_tokens", "prompt_tokens", "Prompt tokens of requests that have ended."),
    ("cached_tokens", "cached_tokens", "Prompt tokens taken from the cache."),
    ("computed_tokens", "computed_tokens", "Prompt tokens run through the model."),
    ("generated_tokens", "sampled_tokens", "Tokens generated, as they come."),
    ("forced_tokens", "forced_tokens", "Of these, those a constraint forced without a step."),
    ("positions_run", "positions_run", "Token positions put through the model, of any kind."),
    ("accepted_tokens", "accepted_tokens", "Guessed tokens that were right."),
    ("speculated_tokens", "speculated_tokens", "Guessed tokens that were run and refused."),
    ("steps", "steps", "Steps made."),
    ("forward_seconds", "forward_s", "Time in the model's forward pass."),
    ("busy_seconds", "busy_s", "Time the step process was not waiting for work."),
    ("preemptions", "preemptions", "Preemptions of running requests."),
    ("evicted_tokens", "evicted_tokens", "Cached tokens dropped to make room."),
    ("prefetches", "prefetches", "Prefetches that have ended."),
    ("dropped_prefetches", "dropped_prefetches", "Prefetches dropped unfinished."),
    ("prefetched_tokens", "prefetched_tokens", "Token positions run for prefetches."),
    ("encoded_images", "encoded_images", "Images run through the vision encoder."),
    ("reused_images", "reused_images", "Images computed for that were found encoded."),
    ("disk_loads", "disk_loads", "Prefixes loaded from disk."),
    ("disk_loaded_tokens", "disk_loaded_tokens", "Tokens of prefixes loaded from disk."),
    ("disk_written_bytes", "disk_written_bytes", "Bytes of K and V written to disk."),
    ("disk_damaged_files", "disk_damaged_files", "Damaged files of K and V, removed."),
    ("disk_dropped_chunks", "disk_dropped_chunks", "Evicted chunks that were not written."),
)
GAUGES = (
    ("sessions", "sessions", "Client streams that are open."),
    ("in_flight_requests", "in_flight_requests", "Unfinished requests, wherever they are."),
    ("running_requests", "running_requests", "Requests that hold a part of the pool."),
    ("waiting_requests", "waiting_requests", "Requests that wait in the queue, parked included."),
    ("parked_requests", "parked_requests", "Of those, waiting for a prefix another computes."),
    ("running_programs", "programs", "Runs of programs with unfinished requests."),
    ("waiting_prefetches", "waiting_prefetches", "Prefetches that are not done."),
    ("pool_capacity_tokens", "pool_tokens", "Tokens whose KV fits in the pool."),
    ("pool_cached_tokens", "cached_pool_tokens", "Of the pool, held by the radix tree."),
    ("encoded_images_bytes", "encoded_images_bytes", "Bytes of encoded images that are kept."),
    ("disk_bytes", "disk_bytes", "Bytes of K and V in the folder on disk."),
)


class RequestMetrics:
    """Histograms of finished requests."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def by_kind(name: str, doc: str, buckets: tuple[float, ...]) -> dict[str, Histogram]:
            made = Histogram(f"sgc_{name}", doc, ["kind"], registry=registry, buckets=buckets)
            return {kind: made.labels(kind) for kind in KINDS}

        def of_generations(name: str, doc: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"sgc_{name}", doc, registry=registry, buckets=buckets)

        self._queue = by_kind("request_queue_seconds", "Until it was admitted.", SECONDS)
        self._prefill = by_kind(
            "request_prefill_seconds", "Time from admission to the end of the prefill.", SECONDS
        )
        self._decode = by_kind("request_decode_seconds", "From then to its end.", SECONDS)
        self._prompt = by_kind("request_prompt_tokens", "Prompt tokens.", TOKENS)
        self._cached = by_kind("request_cached_tokens", "Those from the cache.", (0, *TOKENS))
        self._completion = of_generations("request_completion_tokens", "Generated.", TOKENS)
        self._first = of_generations("time_to_first_token_seconds", "Queue and prefill.", SECONDS)
        self._each = of_generations(
            "time_per_output_token_seconds", "Of the tokens after the first.", SECONDS
        )

    def observe(self, kind: str, usage: pb.Usage) -> None:
        """Records a finished request."""
        self._queue[kind].observe(usage.queue_s)
        self._prefill[kind].observe(usage.prefill_s)
        self._decode[kind].observe(usage.decode_s)
        self._prompt[kind].observe(usage.prompt_tokens)
        self._cached[kind].observe(usage.cached_tokens)
        if kind == "generate":
            self._observe_generation(usage)

    def _observe_generation(self, usage: pb.Usage) -> None:
        n_tokens = usage.completion_tokens
        self._completion.observe(n_tokens)
        if n_tokens > 0:
            self._first.observe(usage.queue_s + usage.prefill_s)
        if n_tokens > 1:
            self._each.observe(usage.decode_s / (n_tokens - 1))


class StatsSource:
    """The latest statistics of the engine.

    At most one query is open at a time, however many scrapes wait for it and however long a step
    takes; no scrape waits longer than `timeout_s`.
    """

    def __init__(
        self, ask: Callable[[], Awaitable[pb.Stats]], timeout_s: float = ASK_TIMEOUT_S
    ) -> None:
        self._ask, self._timeout_s = ask, timeout_s
        self._asking: asyncio.Task[None] | None = None
        self._last, self._answered_at = pb.Stats(), time.monotonic()

    def ask(self) -> asyncio.Task[None]:
        """Starts a query, unless one is open."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._answer())
        return self._asking

    async def refresh(self) -> None:
        """Waits up to `timeout_s` for new statistics."""
        await asyncio.wait([self.ask()], timeout=self._timeout_s)

    def known(self) -> tuple[pb.Stats, float]:
        """The statistics, and how many seconds old they are."""
        return self._last, time.monotonic() - self._answered_at

    def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()

    async def _answer(self) -> None:
        with contextlib.suppress(WorkerDied):  # the server is about to end
            self._last = await self._ask()
            self._answered_at = time.monotonic()


class StatsCollector(Collector):
    """The engine's statistics as metrics."""

    def __init__(self, known: Callable[[], tuple[pb.Stats, float]], info: pb.Info) -> None:
        self._known = known
        facts = {"version": info.engine_version, "model": info.model}
        facts |= {"dtype": info.dtype, "device": info.device}
        self._facts = facts | {"weights": info.weights, "kv": info.kv}

    def describe(self) -> Iterator[Metric]:
        """Yields nothing, so that registering does not collect."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        stats, age_s = self._known()
        yield InfoMetricFamily("sgc_engine", "The engine.", self._facts)
        yield GaugeMetricFamily(
            "sgc_stats_age_seconds", "Age of the engine's counts; grows in a long step.", age_s
        )
        yield _requests(stats)
        for name, field, doc in COUNTERS:
            yield CounterMetricFamily(f"sgc_{name}", doc, getattr(stats, field))
        for name, field, doc in GAUGES:
            yield GaugeMetricFamily(f"sgc_{name}", doc, getattr(stats, field))
        yield _pool(stats)


class AccountCollector(Collector):
    """What the clients of each token use, by the token's name."""

    def __init__(self, accounts: Callable[[], Sequence[Account]]) -> None:
        self._accounts = accounts

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        accounts = self._accounts()
        running = GaugeMetricFamily(
            "sgc_token_running_requests", "Unfinished requests of a token.", labels=["token"]
        )
        for account in accounts:
            running.add_metric([account.name], account.n_running)
        yield running
        for name, doc, label, counts in (
            ("requests", "Requests that have ended.", "outcome", "outcomes"),
            ("quota_refusals", "Requests that a limit of the token refused.", "limit", "refusals"),
        ):
            family = CounterMetricFamily(f"sgc_token_{name}", doc, labels=["token", label])
            for account in accounts:
                for value, n in getattr(account, counts).items():
                    family.add_metric([account.name, value], n)
            yield family
        for name in ("prompt_tokens", "cached_tokens", "generated_tokens"):
            family = CounterMetricFamily(
                f"sgc_token_{name}", "Of the token's requests that finished.", labels=["token"]
            )
            for account in accounts:
                family.add_metric([account.name], getattr(account, name))
            yield family


def _requests(stats: pb.Stats) -> Metric:
    family = CounterMetricFamily("sgc_requests", "Requests that have ended.", labels=["outcome"])
    for outcome in OUTCOMES:
        family.add_metric([outcome], getattr(stats, f"{outcome}_requests"))
    return family


def _pool(stats: pb.Stats) -> Metric:
    doc = "The pool's tokens: free, evictable (cached, unused) and held by running requests."
    family = GaugeMetricFamily("sgc_pool_tokens", doc, labels=["state"])
    held = stats.pool_tokens - stats.free_tokens - stats.evictable_tokens
    for state, n_tokens in (
        ("free", stats.free_tokens),
        ("evictable", stats.evictable_tokens),
        ("held", held),
    ):
        family.add_metric([state], n_tokens)
    return family
