"""The abort storm: requests of every kind, of which half are given up at random stages, and what
the server holds afterwards that it did not hold before."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storms.harness import MIB, Sample, Server, grown
from storms.traffic import Traffic

SETTLE_S = 2.5  # the sweep of connections that have ended comes once a second
OURS = re.compile(
    r"^(sgc|asyncio|_asyncio|aiohttp|grpc|.*cython)\.|Future|Task|coroutine|generator|frame"
)
MOST_OBJECTS = 40  # of one kind: far fewer than requests, of which one in 1,000 would show
MOST_CACHED = 1024  # as the caches of checked parameters hold
CACHED = ("Sampling", "SamplingParams", "Generate", "Stops")
TIMERS = "TimerHandle"  # asyncio keeps those that were cancelled, up to a hundred of them
MOST_MIB = 10.0
MOST_THREADS = 2  # gRPC's own pool
IDLE_S = 1.0


@dataclass(frozen=True)
class Held:
    """What a server without clients holds."""

    samples: Mapping[str, Sample]
    objects: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, server: Server) -> Held:
        return cls(server.samples(), server.objects())


async def abort_storm(server: Server, n: int, warm_up: int, **of_traffic: Any) -> dict[str, Any]:
    """Makes n requests after those of the warm-up, which fills caches."""
    warm = Traffic(seed=1, **of_traffic)
    await warm.run(server, warm_up)
    await server.idle()
    await asyncio.sleep(SETTLE_S if n > 1000 else 0.1)
    before, counted = Held.of(server), await server.flushed()
    traffic, start = Traffic(seed=2, **of_traffic), time.monotonic()
    await traffic.run(server, n)
    took_s = time.monotonic() - start
    idle_s = await server.idle()
    stats = await server.flushed()
    await asyncio.sleep(SETTLE_S if n > 1000 else 0.1)
    after = Held.of(server)
    ended = stats.finished_requests + stats.refused_requests + stats.failed_requests
    return {
        "requests": traffic.n_given,
        "warm_up": warm_up,
        "seconds": round(took_s, 1),
        "answered": traffic.n_done,
        "kinds": dict(traffic.kinds),
        "stages": dict(traffic.stages),
        "refused": dict(traffic.refused),
        "wrong": dict((traffic.wrong + warm.wrong).most_common(20)),
        "seen_by_the_server": stats.requests - counted.requests,
        "cancelled_there": stats.cancelled_requests - counted.cancelled_requests,
        "unaccounted": stats.requests - ended - stats.cancelled_requests,
        "idle_after_s": round(idle_s, 3),
        "tokens_not_freed": stats.pool_tokens - stats.free_tokens,
        "growth": growth(before, after),
    }


def growth(before: Held, after: Held) -> dict[str, Any]:
    """By process: memory, descriptors, threads, and objects of kinds that a request makes."""
    found: dict[str, Any] = {}
    for name, now in after.samples.items():
        old = before.samples.get(name)
        if old is None:
            found[name] = {"is": "new"}
            continue
        found[name] = {
            "mib_before": round(old.n_bytes / MIB, 1),
            "mib": round((now.n_bytes - old.n_bytes) / MIB, 2),
            "descriptors": now.n_descriptors - old.n_descriptors,
            "threads": now.n_threads - old.n_threads,
        }
        if name in after.objects:
            more = grown(before.objects[name], after.objects[name], least=5)
            found[name]["objects"] = {kind: k for kind, k in more.items() if OURS.search(kind)}
    return found


def problems(found: Mapping[str, Any], most_mib: float = MOST_MIB) -> list[str]:
    """What the storm has left behind, in words."""
    said = [f"{n} x {what}" for what, n in found["wrong"].items()]
    if found["idle_after_s"] > IDLE_S:
        said.append(f"idle only after {found['idle_after_s']} s")
    for name in ("unaccounted", "tokens_not_freed"):
        if found[name]:
            said.append(f"{name}: {found[name]}")
    for process, more in found["growth"].items():
        if "is" in more:
            said.append(f"a new process: {process}")
            continue
        most = {"mib": most_mib, "descriptors": 0, "threads": MOST_THREADS}
        said += [f"{process}: {more[k]} more {k}" for k in most if more[k] > most[k]]
        objects = more.get("objects", {})
        said += [f"{process}: {n} more {kind}" for kind, n in objects.items() if n > _most(kind)]
    return said


def _most(kind: str) -> int:
    name = kind.rpartition(".")[2]
    if name == TIMERS:
        return 150
    return MOST_CACHED if name in CACHED else MOST_OBJECTS
