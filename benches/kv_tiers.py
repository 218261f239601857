"""Prefixes on disk: the first token after an eviction, from disk and computed, and a warm restart.

    python -P benches/kv_tiers.py [--models S,M] [--folder FOLDER] [--reps 9] [--seconds 30]
        [--parts first_token,unshared,restart] [--out FILE.json]

First, in one process: a prompt whose prefix is evicted is asked again, in turn of an engine that
computes it and of one with `--kv-dir`, which measures and decides by itself whether to load. `disk`
has its files in the system's page cache; for `device` they are dropped from it before. Second, what
it costs where nothing comes back: prompts that have nothing in common, in a pool of a quarter of
them, in turn without a disk and with one. Third, over gRPC: questions about documents that do not
fit in the pool come at random times, to an engine without a disk, to one on an empty folder, and to
one that is started on what that left. Both of these on model S.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent / "engine"))

import models
from peers import machine
from summary import paired_ratio

from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.names import StepOptions
from sgc.runtime.engine.requests.request import EngineRequest, Generate
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.worker.disk import Disk
from sgc.runtime.engine.worker.main import READING_S
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Sampling, TokenRun

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8064)
LONG = 2048  # from here on computing takes seconds
N_NEW = 8  # tokens after the prefix
POOL = 12288
WAYS = ("computed", "disk", "device")
N_UNSHARED, UNSHARED, N_GENERATED = 48, 512, 16
N_DOCUMENTS, DOCUMENT = 96, 1024
SERVED_POOL = 16384  # a sixth of the documents


class Asked:
    """One model, and its pages, of which each engine holds none between two requests."""

    def __init__(self, folder: Path, kv: Path, pool: int = POOL) -> None:
        options = StepOptions(kv_dir=str(kv))
        disk, self._kv = Disk(options, str(folder)), kv
        runner = load_model(str(folder), pool_tokens=pool)
        self._vocab = runner.vocab_size
        self._tier = disk.tier_of(runner)

        def core(**more: Any) -> EngineCore:
            return EngineCore(
                runner, pool_tokens=pool, max_context=runner.max_context,
                vocab_size=runner.vocab_size, **more,
            )  # fmt: skip

        self._plain, self._tiered = core(), core(disk=self._tier)

    def first_token_s(self, way: str, prefix: Ints, seed: int) -> tuple[float, int]:
        """Seconds, and tokens that were cached. Another end each time, so that it is the prefix
        that is found."""
        end = np.random.default_rng(seed).integers(300, self._vocab, N_NEW)
        core = self._plain if way == "computed" else self._tiered
        if way == "device":
            self._forget_files()
        found = _run(core, np.concatenate([prefix, end]))
        if way == "computed":
            core.flush_cache()
        else:
            self._evict()
        return found

    def all_s(self, is_tiered: bool, seed: int) -> tuple[float, float]:
        """Of requests that arrive together and have nothing in common: seconds, and those of all
        threads on a processor, until everything is written."""
        core = self._tiered if is_tiered else self._plain
        for i in range(N_UNSHARED):
            prompt, kind = self.prefix(UNSHARED, 1000 * seed + i), Generate(N_GENERATED)
            core.submit(EngineRequest(1 + i, prompt, kind))
        begun, begun_cpu = time.perf_counter(), time.process_time()
        while core.has_work:
            core.step()
        took_s = time.perf_counter() - begun
        self._tier._writer.finish(time.monotonic() + 60)
        took_cpu_s = time.process_time() - begun_cpu
        core.flush_cache()
        return took_s, took_cpu_s

    @property
    def stats(self) -> dict[str, int]:
        return asdict(self._tier.stats())

    def _evict(self) -> None:
        cache = self._tiered.cache
        cache.release(cache.reserve(cache.n_available))
        self._tier._writer.finish(time.monotonic() + 60)

    def _forget_files(self) -> None:
        os.sync()
        for path in self._kv.iterdir():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)

    def prefix(self, n: int, seed: int) -> Ints:
        return np.random.default_rng([n, seed]).integers(300, self._vocab, n)


def _run(core: EngineCore, tokens: Ints) -> tuple[float, int]:
    core.submit(EngineRequest(1, tokens, Generate(1)))
    begun = time.perf_counter()
    while True:
        for update in core.step():
            if update.final:
                return time.perf_counter() - begun, update.usage.cached_tokens
        if core.is_loading_only:
            time.sleep(READING_S)


def first_tokens(folder: Path, name: str, reps: int) -> list[dict[str, Any]]:
    with _kv_folder() as kv:
        asked = Asked(folder, kv)
        for n in (64, 512, 1024):  # warms both up, and measures both
            for way in (*WAYS[:2], "disk"):
                asked.first_token_s(way, asked.prefix(n, 99), 0)
        return [_row(asked, name, n, reps) for n in LENGTHS]


def _row(asked: Asked, name: str, n: int, reps: int) -> dict[str, Any]:
    prefix = asked.prefix(n, 0)
    asked.first_token_s("disk", prefix, 0)  # writes it
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    cached: dict[str, list[int]] = {way: [] for way in WAYS}
    n_reps = max(3, reps // 3) if name == "M" and n >= LONG else reps
    for rep in range(n_reps):
        for way in WAYS[:: 1 if rep % 2 else -1]:
            seconds, n_cached = asked.first_token_s(way, prefix, 1 + rep)
            took[way].append(seconds)
            cached[way].append(n_cached)
    row: dict[str, Any] = {"model": name, "prefix": n, "reps": n_reps}
    for way in WAYS:
        row[way] = {"median_s": float(np.median(took[way])), "cached_tokens": cached[way]}
        if way != "computed":
            ratios = np.array(took[way]) / np.array(took["computed"])
            row[way]["of_computed"], row[way]["of_computed_95"] = paired_ratio(ratios)
    shown = "; ".join(f"{way} {1e3 * row[way]['median_s']:.1f} ms" for way in WAYS)
    ratio = f"{row['disk']['of_computed']} {row['disk']['of_computed_95']}"
    print(f"  {name} {n:5}: {shown}; ratio {ratio}", flush=True)
    return row


def unshared(folder: Path, reps: int) -> dict[str, Any]:
    with _kv_folder() as kv:
        asked = Asked(folder, kv, N_UNSHARED * UNSHARED // 4)
        took: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        for rep in range(reps + 1):  # the first is a warm-up
            for is_tiered in (False, True)[:: 1 if rep % 2 else -1]:
                seconds = asked.all_s(is_tiered, rep)
                took[is_tiered] += [seconds] if rep else []
        found: dict[str, Any] = {
            "requests": N_UNSHARED, "prompt": UNSHARED, "generated": N_GENERATED, "reps": reps,
            "stats": asked.stats,
        }  # fmt: skip
    without, disk = np.array(took[False]), np.array(took[True])
    for i, what in enumerate(("wall", "cpu")):
        found[what] = {"without_s": float(np.median(without[:, i]))}
        found[what]["disk_s"] = float(np.median(disk[:, i]))
        ratio, found[what]["of_without_95"] = paired_ratio(disk[:, i] / without[:, i])
        found[what]["of_without"] = ratio
    print(f"  {found}", flush=True)
    return found


async def _serve(uri: str, moments: list[float], seed: int) -> dict[str, Any]:
    """Questions at these moments, each about one of the documents."""
    draw = random.Random(seed)
    documents = [_ids(random.Random(f"document {i}"), DOCUMENT) for i in range(N_DOCUMENTS)]
    took: list[float] = []
    usages = []

    async def one(backend: EngineBackend, ids: tuple[int, ...]) -> None:
        begun, first = time.perf_counter(), []
        reply = await backend.generate(
            (TokenRun(ids, ""),), Sampling(max_tokens=8, temperature=0.0, ignore_eos=True),
            lambda text: first.append(time.perf_counter() - begun),
        )  # fmt: skip
        took.append(first[0])
        usages.append(reply.usage)

    async with EngineBackend(uri) as backend:
        begun, works = time.perf_counter(), []
        for moment in moments:
            ids = draw.choice(documents) + _ids(draw, 24)
            await asyncio.sleep(max(0.0, begun + moment - time.perf_counter()))
            works.append(asyncio.create_task(one(backend, ids)))
        await asyncio.gather(*works)
        stats = await backend.stats()
    n_prompt = sum(usage.prompt_tokens for usage in usages)
    return {
        "requests": len(usages), "loaded_tokens": stats.disk_loaded_tokens,
        "hit_rate": round(sum(usage.cached_tokens for usage in usages) / n_prompt, 4),
        "first_token_s": {
            f"p{p}": round(float(np.percentile(took, p)), 4) for p in (50, 90, 99)
        },
    }  # fmt: skip


def _ids(draw: random.Random, n: int) -> tuple[int, ...]:
    return tuple(draw.randrange(300, 4000) for _ in range(n))


async def restarts(folder: Path, rate: float, seconds: float, reps: int) -> dict[str, Any]:
    """The first `seconds` of each engine's life."""
    rows: dict[str, list[dict[str, Any]]] = {"none": [], "empty": [], "restarted": []}
    for rep in range(reps):
        draw, at, moments = random.Random(f"arrivals {rep}"), 0.0, []
        while (at := at + draw.expovariate(rate)) < seconds:
            moments.append(at)
        with _kv_folder() as kv:
            for name, row in rows.items():
                options = ["--pool-tokens", str(SERVED_POOL)]
                options += [] if name == "none" else ["--kv-dir", str(kv)]
                seed = 2 * rep + (name == "restarted")  # it is asked other questions
                with EmbeddedEngine(str(folder), options) as engine:
                    row.append(await _serve(engine.uri, moments, seed))
                print(f"  {name}: {row[-1]}", flush=True)
    return {"rate": rate, "seconds": seconds, "documents": N_DOCUMENTS, "runs": rows}


@contextmanager
def _kv_folder() -> Iterator[Path]:
    kv = Path(tempfile.mkdtemp(prefix="sgc-kv-", dir=os.environ.get("SGC_BENCH_DISK")))
    try:
        yield kv
    finally:
        shutil.rmtree(kv)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--models", default="S,M")
    parser.add_argument("--reps", type=int, default=9)
    parser.add_argument("--rate", type=float, default=4.0, help="questions a second, of S")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--parts", default="first_token,unshared,restart")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    parts = options.parts.split(",")
    found: dict[str, Any] = {}
    if options.out and options.out.exists():  # other parts stay
        found = json.loads(options.out.read_text())
    about = {
        "command": f"python -P benches/kv_tiers.py --models {options.models} --reps "
        f"{options.reps} --rate {options.rate:g} --seconds {options.seconds:g}",
        "machine": machine(), "versions": {"torch": version("torch")},
        "load_before": os.getloadavg(),
    }  # fmt: skip
    small = models.make("S", options.folder)
    if "first_token" in parts:
        print("the first token")
        rows = []
        for name in options.models.split(","):
            rows += first_tokens(models.make(name, options.folder), name, options.reps)
        found["first_token"] = about | {"rows": rows}
    if "unshared" in parts:
        print("where nothing comes back")
        found["unshared"] = about | unshared(small, options.reps)
    if "restart" in parts:
        print("the first seconds of an engine")
        reps = max(1, options.reps // 3)
        asked = restarts(small, options.rate, options.seconds, reps)
        found["restart"] = about | asyncio.run(asked)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
