"""What a server holds while it serves for long: memory by process, sampled, and its slope.

`soak` is mixed traffic with aborts, on several servers side by side; `overload` offers one server
twice what it can do.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
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
LEAST_SHARE = 0.9
TEXTS_THAT_FILL = 3000
RAMP = 0.3  # of a measurement, until the server's queue is full


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


async def _filled(server: Server) -> None:
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
    await _filled(server)
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


# Overload.


@dataclass
class Load:
    """HTTP requests that are offered, whether or not earlier ones have ended."""

    port: int
    max_tokens: int
    done: list[float] = field(default_factory=list)  # when
    tokens: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    refused_s: list[float] = field(default_factory=list)  # how long each took
    wrong: Counter[str] = field(default_factory=Counter)

    async def one(self, rng: random.Random) -> None:
        text = f"{rng.random()} of a story that is to be told"
        params = {"max_new_tokens": self.max_tokens, "ignore_eos": True}
        data = http_request("/generate", {"text": text, "sampling_params": params})
        start = time.monotonic()
        try:
            async with asyncio.timeout(120):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(data)
                found = await reader.read()
                writer.transport.abort()
        except (OSError, TimeoutError) as error:
            self.wrong[type(error).__name__] += 1
            return
        status = found[9:12].decode()
        self.outcomes[status] += 1
        if status == "200":
            self.done.append(time.monotonic())
            body = json.loads(found.partition(b"\r\n\r\n")[2])
            self.tokens += body["meta_info"]["completion_tokens"]
        elif status in ("429", "503"):
            self.refused_s.append(time.monotonic() - start)
            if b"Retry-After:" not in found:
                self.wrong[f"{status} without Retry-After"] += 1
        else:
            self.wrong[f"{status}: {found[-120:]!r}"] += 1

    async def closed(self, n_clients: int, seconds: float) -> float:
        """Requests a second that n_clients get done, one after the other each."""
        end = time.monotonic() + seconds

        async def client(number: int) -> None:
            rng = random.Random(number)
            while time.monotonic() < end:
                await self.one(rng)

        start = time.monotonic()
        await asyncio.gather(*(client(i) for i in range(n_clients)))
        return self._rate(start, end)

    async def offered(self, rate: float, seconds: float) -> float:
        """Requests a second that get done while `rate` a second are offered."""
        rng, loop = random.Random(7), asyncio.get_running_loop()
        start, tasks, n = loop.time(), set[asyncio.Task[None]](), 0
        while loop.time() - start < seconds:
            task = asyncio.create_task(self.one(rng))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            n += 1
            await asyncio.sleep(max(0.0, start + n / rate - loop.time()))
        end = loop.time()
        if tasks:
            await asyncio.wait(tasks)
        return self._rate(start, end)

    def _rate(self, start: float, end: float) -> float:
        """Requests a second that were done between the two, once the server was full."""
        start += RAMP * (end - start)
        return sum(start <= at < end for at in self.done) / (end - start)


async def overload(
    server: Server, seconds: float, rounds: int, max_tokens: int, n_clients: int = 64
) -> dict[str, Any]:
    """By turns, as many clients as the server runs at once, and twice the requests they get done.
    So both are measured beside the same other load of the machine."""
    load, memory = Load(server.http, max_tokens), Memory()
    watching = asyncio.create_task(memory.watch(server))
    await load.closed(n_clients, min(5.0, seconds / 4))
    peaks, overloaded = [], []
    for _ in range(rounds):
        peaks.append(await load.closed(n_clients, seconds / rounds / 3))
        overloaded.append(await load.offered(2 * peaks[-1], seconds / rounds))
    watching.cancel()
    idle_s = await server.idle()
    ratios = [over / peak for over, peak in zip(overloaded, peaks, strict=True)]
    refused = np.array(load.refused_s or [0.0])
    return {
        "seconds_overloaded": seconds,
        "peak_a_second": [round(x, 1) for x in peaks],
        "overloaded_a_second": [round(x, 1) for x in overloaded],
        "share_of_peak": round(float(np.mean(ratios)), 3),
        "share_of_peak_spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "outcomes": dict(load.outcomes),
        "wrong": dict(load.wrong.most_common(10)),
        "refused_within_ms": {
            f"p{p}": round(1000 * float(np.percentile(refused, p)), 1) for p in (50, 99, 100)
        },
        "most_waiting": memory.most_waiting,
        "most_unfinished": memory.most_unfinished,
        "idle_after_s": round(idle_s, 3),
        "memory": memory.after(0.4 * seconds).summary,
    }


def problems_of_overload(found: Mapping[str, Any], max_waiting: int) -> list[str]:
    said = [f"{n} x {what}" for what, n in found["wrong"].items()]
    said += growing(found["memory"], "overload")
    if found["share_of_peak"] < LEAST_SHARE:
        said.append(f"throughput is {found['share_of_peak']} of its peak")
    if found["most_waiting"] > max_waiting:
        said.append(f"{found['most_waiting']} requests waited")
    if not any(status in found["outcomes"] for status in ("429", "503")):
        said.append("nothing was refused: it was no overload")
    return said
