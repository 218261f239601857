"""What a server holds while it serves for long: memory by process, sampled, and its slope.

`soak` is mixed traffic with aborts, on several servers side by side; `overload.py` watches memory
as well.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from storms.abort import IDLE_S
from storms.harness import MIB, Server
from storms.traffic import WORDS, Traffic, http_request

SAMPLE_S = 2.0
FLAT_MIB_A_MINUTE = 0.5  # of a slope that counts as flat, by the lower end of its interval
BLOCKS = 20
TEXTS_THAT_FILL = 3000


@dataclass
class Memory:
    """Samples of each process's memory, in MiB."""

    times: list[float] = field(default_factory=list)
    mib: dict[str, list[float]] = field(default_factory=dict)
    descriptors: dict[str, list[int]] = field(default_factory=dict)
    most_waiting: int = 0
    most_unfinished: int = 0

    async def watch(self, server: Server, sample_s: float = SAMPLE_S) -> None:
        """Samples until cancelled."""
        start = time.monotonic()
        while True:
            found = server.samples()
            self.times.append(time.monotonic() - start)
            for name, each in found.items():
                self.mib.setdefault(name, []).append(each.n_bytes / MIB)
                self.descriptors.setdefault(name, []).append(each.n_descriptors)
            stats = await server.stats()
            self.most_waiting = max(self.most_waiting, stats.waiting_requests)
            self.most_unfinished = max(self.most_unfinished, stats.in_flight_requests)
            await asyncio.sleep(sample_s)

    def after(self, warm_s: float) -> Memory:
        """The samples from then on."""
        first = int(np.searchsorted(self.times, warm_s))
        later = {name: x[first:] for name, x in self.mib.items()}
        return Memory(self.times[first:], later, self.descriptors)

    @property
    def summary(self) -> dict[str, Any]:
        return {
            name: {
                "first_mib": round(float(np.median(x[:BLOCKS])), 1),
                "last_mib": round(float(np.median(x[-BLOCKS:])), 1),
                "most_mib": round(max(x), 1),
                **slope(self.times[-len(x) :], x),
                "second_half": slope(self.times[-(len(x) // 2) :], x[-(len(x) // 2) :]),
                "each_minute": [round(each, 1) for each in x[:: max(1, int(60 / SAMPLE_S))]],
                "most_descriptors": max(self.descriptors[name]),
            }
            for name, x in self.mib.items()
        }


def slope(times: Sequence[float], values: Sequence[float]) -> dict[str, Any]:
    """MiB a minute, by least squares, with a 95% interval from a bootstrap over blocks of time, for
    neighbouring samples are alike."""
    t, v = np.array(times) / 60, np.array(values)
    if len(t) < 2 * BLOCKS:
        return {"mib_a_minute": None}
    found = float(np.polyfit(t, v, 1)[0])
    line = np.polyval(np.polyfit(t, v, 1), t)
    rng, left = np.random.default_rng(1), v - line
    length = max(1, len(t) // BLOCKS)
    slopes = []
    for _ in range(500):
        starts = rng.integers(0, len(t) - length + 1, -(-len(t) // length))
        drawn = np.concatenate([left[at : at + length] for at in starts])[: len(t)]
        slopes.append(np.polyfit(t, line + drawn, 1)[0])
    low, high = np.percentile(slopes, [2.5, 97.5])
    return {
        "mib_a_minute": round(found, 4),
        "interval": [round(float(low), 4), round(float(high), 4)],
    }


def growing(memory: Mapping[str, Any], where: str) -> list[str]:
    """The processes whose memory is surely not flat."""
    return [
        f"{where} {name}: {each['mib_a_minute']} MiB a minute, {each['interval']}"
        for name, each in memory.items()
        if each["mib_a_minute"] is not None and each["interval"][0] > FLAT_MIB_A_MINUTE
    ]


# A soak.


async def soak(
    servers: Mapping[str, tuple[Server, float]], seconds: float, warm_s: float
) -> dict[str, Any]:
    """Mixed traffic on each server at its rate, of which half is given up."""
    work = [_soaked(name, *each, seconds, warm_s) for name, each in servers.items()]
    return dict(zip(servers, await asyncio.gather(*work), strict=True))


async def filled(server: Server) -> None:
    """Fills the cache of tokenized texts, which would take a slow model's clients an hour."""
    rng = random.Random(4)

    async def client() -> None:
        for _ in range(TEXTS_THAT_FILL // 8):
            text = " ".join(rng.choice(WORDS) for _ in range(600))
            reader, writer = await asyncio.open_connection("127.0.0.1", server.http)
            writer.write(http_request("/tokenize", {"prompt": text}))
            await reader.read()
            writer.close()

    await asyncio.gather(*(client() for _ in range(8)))


async def _soaked(
    model: str, server: Server, rate: float, seconds: float, warm_s: float
) -> dict[str, Any]:
    memory, traffic = Memory(), Traffic(seed=3, model=model)
    await filled(server)
    watching = asyncio.create_task(memory.watch(server))
    running = asyncio.create_task(traffic.run(server, 10**9, n_clients=16, rate=rate))
    await asyncio.wait([running], timeout=seconds)
    traffic.is_over = True
    await running
    watching.cancel()
    idle_s = await server.idle()
    stats = await server.flushed()
    return {
        "requests": traffic.n_given,
        "answered": traffic.n_done,
        "rate": rate,
        "refused": dict(traffic.refused),
        "wrong": dict(traffic.wrong.most_common(10)),
        "idle_after_s": round(idle_s, 3),
        "tokens_not_freed": stats.pool_tokens - stats.free_tokens,
        "memory": memory.after(warm_s).summary,
    }


def problems_of_soak(found: Mapping[str, Any]) -> list[str]:
    said = []
    for name, each in found.items():
        said += [f"{name}: {n} x {what}" for what, n in each["wrong"].items()]
        said += growing(each["memory"], name)
        if each["tokens_not_freed"] or each["idle_after_s"] > IDLE_S:
            said.append(f"{name}: idle after {each['idle_after_s']} s, {each['tokens_not_freed']}")
    return said
