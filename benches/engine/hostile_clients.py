"""What hostile clients do to the ones beside them.

    python -P benches/engine/hostile_clients.py [--seconds 10] [--rate 40] [--out FILE.json]

Innocents ask at a steady rate: small generations over HTTP and over gRPC, and `/health`. They are
measured alone; then, for each attack of `attacks.py`, beside its generator (a process of its own,
at a fixed rate, loopback only) that sends to a port which discards all, and beside the same
generator that sends to the server. So the generator's own use of the machine is in both. A
latency counts from the time at which the request was due; one that is not answered in time
counts as that time, and as failed. The bound: a p99 at most twice that beside the port which
discards. `others_load` is the machine's load before: what else ran there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import aiohttp
import numpy as np
from attacks import ATTACKS, Target, attack, discard

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Sampling, TextRun

TIMEOUT_S = 10.0
SETTLE_S = 2.0  # between the start of an attack and the measurement
MAX_CONTEXT = 32768
SMALL = Sampling(max_tokens=4, temperature=0.0)
PROCESSES = multiprocessing.get_context("spawn")


@dataclass
class Latencies:
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, Any]:
        p50, p99 = np.percentile(self.seconds, [50, 99])
        return {
            "n": len(self.seconds),
            "failed": len(self.failures),
            "failures": sorted(set(self.failures))[:5],
            "p50_ms": round(1000 * float(p50), 2),
            "p99_ms": round(1000 * float(p99), 2),
            "max_ms": round(1000 * max(self.seconds), 2),
        }


Ask = Callable[[int], Awaitable[None]]


async def steadily(ask: Ask, rate: float, seconds: float) -> Latencies:
    """Makes requests at a fixed rate, whether or not earlier ones have ended."""
    found, start = Latencies(), time.perf_counter()

    async def one(n: int, due: float) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await ask(n)
        except Exception as error:  # any error means that the innocent was not served
            found.failures.append(f"{type(error).__name__}: {error}"[:120])
        found.seconds.append(time.perf_counter() - due)

    async with asyncio.TaskGroup() as group:
        for n in range(int(rate * seconds)):
            due = start + n / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(one(n, due))
    return found


async def innocents(http_url: str, uri: str, rate: float, seconds: float) -> dict[str, Any]:
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    async with aiohttp.ClientSession(connector=connector) as http, EngineBackend(uri) as backend:

        async def generate(n: int) -> None:
            body = {"text": f"Hello {n % 7}", "sampling_params": {"max_new_tokens": 4}}
            async with http.post(f"{http_url}/generate", json=body) as reply:
                reply.raise_for_status()
                await reply.read()

        async def health(n: int) -> None:
            async with http.get(f"{http_url}/health") as reply:
                reply.raise_for_status()

        async def grpc(n: int) -> None:
            await backend.generate((TextRun(f"Hello {n % 7}"),), SMALL)

        await backend.info()
        kinds: dict[str, Ask] = {"generate": generate, "health": health, "grpc": grpc}
        found = await asyncio.gather(*(steadily(ask, rate, seconds) for ask in kinds.values()))
    return {name: each.summary for name, each in zip(kinds, found, strict=True)}


@contextmanager
def running(work: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """Runs a function in a process, which it stops at the end; yields its first message."""
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=work, args=(theirs, *arguments), daemon=True)
    process.start()
    try:
        yield _first(ours)
    finally:
        process.terminate()
        process.join()


def _first(pipe: Connection) -> Any:
    if not pipe.poll(30):
        raise TimeoutError("a process of the bench did not start")
    return pipe.recv()


def beside(name: str, target: Target, ask: Callable[[float], Any], seconds: float) -> Any:
    with running(attack, name, target):
        time.sleep(SETTLE_S)
        return ask(seconds)


def measured(options: argparse.Namespace) -> dict[str, Any]:
    arguments = ["--listen", "127.0.0.1:0", "--http", "0", "--max-context", str(MAX_CONTEXT)]
    seconds = options.seconds
    rows: dict[str, Any] = {}
    load = os.getloadavg()[0]
    with (
        EmbeddedEngine(options.model, arguments) as engine,
        running(discard) as nowhere,
        asyncio.Runner() as runner,
    ):
        said = dict(line.rsplit(" ", 1) for line in engine.stderr_tail.splitlines())
        http_url, uri = said["HTTP on"], f"grpc://{said['listening on']}"
        server = Target(int(http_url.rpartition(":")[2]), int(uri.rpartition(":")[2]))

        def ask(seconds: float) -> dict[str, Any]:
            return runner.run(innocents(http_url, uri, options.rate, seconds))

        ask(1.0)  # warm-up
        alone = ask(seconds)
        for name in options.attacks or ATTACKS:
            row = {
                "discarded": beside(name, nowhere, ask, seconds),
                "attacked": beside(name, server, ask, seconds),
            }
            after = ask(1.0)
            row["ratio_of_p99"] = {
                kind: round(found["p99_ms"] / row["discarded"][kind]["p99_ms"], 2)
                for kind, found in row["attacked"].items()
            }
            rows[name] = {**row, "after": after}
            print(line_of(name, rows[name]), flush=True)
        assert engine.is_running
    return {
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "others_load": load},
        "seconds": seconds,
        "rate": options.rate,
        "alone": alone,
        "attacks": rows,
    }


def line_of(name: str, row: dict[str, Any]) -> str:
    parts = [f"{name:20s} p99, ms:"]
    for kind, ratio in row["ratio_of_p99"].items():
        before, found = row["discarded"][kind], row["attacked"][kind]
        times = f"{before['p99_ms']:.1f} -> {found['p99_ms']:.1f} (x{ratio})"
        parts.append(f"{kind} {times}, {found['failed']} failed;")
    return " ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="fake")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second, of each kind")
    parser.add_argument("--attacks", nargs="*", choices=list(ATTACKS))
    parser.add_argument("--out", type=Path, default=Path("benches/results/hostile_clients.json"))
    options = parser.parse_args()
    found = measured(options)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
