"""Prefetches: what a called function gains from them, and what others lose.

    python -P benches/prefetch.py [--folder FOLDER] [--reps 9] [--seconds 15] [--out FILE.json]
        [--plot FILE.png]

It uses model S of benches/engine (random weights, which do not affect times). First: a program
calls a tool that sleeps, then a function whose prompt begins with some 4,000 constant tokens, none
of them cached. It measures the time to the first token, at -O0 and with the pass `insert_prefetch`,
in turn. Second: short requests come at random times, alone and while long prompts are prefetched
without a pause, with the same times in turn. It compares their latency with the time of a chunk.
Third: as the second, on a virtual clock (`tests/support/virtual_clock.py`), with the same figures
on every machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent / "engine"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import models
import virtual_clock as clock
from peers import machine
from texts import Prose

import sgc
from sgc.passes.exact import fold_constants
from sgc.passes.hints import insert_prefetch
from sgc.passes.pipeline import run_pass
from sgc.programs.program import Program
from sgc.runs.endpoints import connect
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.scheduling.prefetch_queue import SHARE
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Sampling, TextRun, TokenRun
from sgc.runtime.executor.run.options import RunOptions

CHUNK = 512 // SHARE  # a prefetch's part of the engine's default chunk
N_WORDS = 1600
RULES = Prose(4).text(N_WORDS) + "\n"
ONE = Sampling(max_tokens=1, temperature=0.0)
sleep_s = {"now": 0.0}


@sgc.tool(effect="pure")
def look_up(topic: str) -> str:
    time.sleep(sleep_s["now"])
    return topic + " is warm"


@sgc.function
def judge(s: Any, text: str) -> None:
    s += RULES
    s += text + sgc.gen("verdict", max_tokens=1)


@sgc.function
def review(s: Any, topic: str) -> None:
    found = look_up(topic)
    s += judge(found)["verdict"]


@sgc.function
def maybe_review(s: Any, topic: str) -> None:
    """A review whose call is in an arm that is never taken."""
    found = look_up(topic)
    if found == "cold":
        s += judge(found)["verdict"]
    s += "Say: " + found + sgc.gen("said", max_tokens=1)


def compiled(function: Any) -> dict[str, Program]:
    """The program without passes, and with prefetches inserted."""
    plain = function.compile(opt_level=0)
    graph = run_pass(insert_prefetch.PASS, run_pass(fold_constants.PASS, plain.graph))
    assert any(node.op == "prefetch" for node in graph.nodes())
    return {"without": plain, "with": replace(plain, graph=graph)}


def median(values: list[float]) -> dict[str, float]:
    """The median with its 95% confidence interval (order statistics, binomial)."""
    ordered, n = np.sort(values), len(values)
    k = max(0, int(np.floor(n / 2 - 1.96 * np.sqrt(n) / 2)))
    return {
        "median": float(np.median(ordered)), "low": float(ordered[k]),
        "high": float(ordered[n - 1 - k]), "n": n,
    }  # fmt: skip


def called(endpoint: sgc.Endpoint, programs: dict[str, Program], gap_s: float,
           reps: int) -> dict[str, Any]:  # fmt: skip
    """Times to the first token of the last request (max_tokens is 1), by the client's clock."""
    sleep_s["now"] = gap_s
    took: dict[str, list[float]] = {name: [] for name in programs}
    walls: dict[str, list[float]] = {name: [] for name in programs}
    counts: dict[str, Any] = {}
    for rep in range(reps + 1):  # the first is a warm-up
        for name in list(programs)[:: 1 if rep % 2 else -1]:
            endpoint.flush_cache()
            time.sleep(0.05)
            begun = time.perf_counter()
            result = programs[name].run_once({"topic": "tea"}, RunOptions(), endpoint)
            wall = time.perf_counter() - begun
            last = result.requests[-1]
            if rep:
                took[name].append(last.end_s - last.start_s)
                walls[name].append(wall)
            counts[name] = {
                "prompt_tokens": last.usage.prompt_tokens,
                "computed_tokens": last.usage.computed_tokens,
                "prefetched_tokens": result.stats.prefetched_tokens,
            }
            wait_idle(endpoint)
    before, after = median(took["without"]), median(took["with"])
    found = {
        "gap_s": gap_s, "first_token_s": {"without": before, "with": after},
        "wall_s": {name: median(each) for name, each in walls.items()},
        "drop": 1 - after["median"] / before["median"], "counts": counts,
    }  # fmt: skip
    print(f"  gap {gap_s:.2f} s: {1e3 * before['median']:.0f} -> {1e3 * after['median']:.0f} ms "
          f"({-100 * found['drop']:+.0f}%), run {found['wall_s']['without']['median']:.2f} -> "
          f"{found['wall_s']['with']['median']:.2f} s")  # fmt: skip
    return found


def wait_idle(endpoint: sgc.Endpoint) -> None:
    from sgc.runtime.executor.run.loop import shared

    while shared.run(endpoint.backend.stats()).in_flight_requests:
        time.sleep(0.01)


# -- others -----------------------------------------------------------------------------------


def arrivals(seed: int, rate: float, seconds: float) -> list[float]:
    draw, at, found = random.Random(f"arrivals {seed}"), 0.0, []
    while (at := at + draw.expovariate(rate)) < seconds:
        found.append(at)
    return found


class Load:
    """Short requests on one connection, prefetches on another."""

    def __init__(self, uri: str) -> None:
        self._backend, self._ahead = EngineBackend(uri), EngineBackend(uri)
        self._prose, self._ids = Prose(7), random.Random("prefetched")

    async def close(self) -> None:
        await self._backend.close()
        await self._ahead.close()

    async def chunk_s(self) -> dict[str, float]:
        """The time of a prefetch's chunks: the mean, and the last, which attends to the most."""
        means, lasts = [], []
        for _ in range(5):
            prompt = self._prompt()
            await self._backend.flush_cache()
            whole = await self._backend.commit_prefix((prompt,))
            means.append(whole.prefill_s / (whole.computed_tokens / CHUNK))
            await self._backend.flush_cache()
            most = TokenRun(prompt.ids[:-CHUNK], "")
            await self._backend.commit_prefix((most,))
            lasts.append((await self._backend.commit_prefix((prompt,))).prefill_s)
        return {"mean": float(np.median(means)), "last": float(np.median(lasts))}

    def _prompt(self) -> TokenRun:
        return TokenRun(tuple(self._ids.randrange(300, 4096) for _ in range(4096)), "")

    async def run(self, moments: list[float], is_prefetching: bool) -> dict[str, list[float]]:
        """Seconds to the first text, between texts, and to the end, for all requests."""
        await self._backend.flush_cache()
        prompts = [(TextRun(self._prose.text(36)),) for _ in moments]
        found: dict[str, list[float]] = {"first": [], "between": [], "whole": []}
        before = await self._backend.stats()
        ahead = asyncio.create_task(self._prefetch()) if is_prefetching else None
        begun = time.perf_counter()
        works = []
        for moment, prompt in zip(moments, prompts, strict=True):
            await asyncio.sleep(max(0.0, begun + moment - time.perf_counter()))
            works.append(asyncio.create_task(self._one(prompt, found)))
        await asyncio.gather(*works)
        if ahead is not None:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)
        after = await self._backend.stats()
        found["prefetched_tokens"] = [after.prefetched_tokens - before.prefetched_tokens]
        return found

    async def _one(self, prompt: Any, found: dict[str, list[float]]) -> None:
        times = [time.perf_counter()]
        sampling = Sampling(max_tokens=16, temperature=0.0, ignore_eos=True)
        await self._backend.generate(
            prompt, sampling, lambda text: times.append(time.perf_counter())
        )
        found["first"].append(times[1] - times[0])
        found["between"] += np.diff(times[1:]).tolist()
        found["whole"].append(time.perf_counter() - times[0])

    async def _prefetch(self) -> None:
        while True:
            await asyncio.gather(*(self._ahead.prefetch((self._prompt(),)) for _ in range(2)))


async def others(uri: str, rate: float, seconds: float, reps: int) -> dict[str, Any]:
    load = Load(uri)
    chunk = await load.chunk_s()
    print(f"  a chunk: {1e3 * chunk['mean']:.0f} ms, a prompt's last {1e3 * chunk['last']:.0f}")
    runs: dict[str, list[dict[str, list[float]]]] = {"without": [], "with": []}
    await load.run(arrivals(99, rate, 3), True)
    for rep in range(reps):
        for name in list(runs)[:: 1 if rep % 2 else -1]:
            runs[name].append(await load.run(arrivals(rep, rate, seconds), name == "with"))
    await load.close()
    found: dict[str, Any] = {"chunk_s": chunk, "rate": rate, "seconds": seconds, "reps": reps}
    for what in ("first", "between", "whole"):
        found[what] = {name: tail([one[what] for one in each]) for name, each in runs.items()}
        found[what]["p99_growth_s"] = found[what]["with"]["p99"] - found[what]["without"]["p99"]
        print(f"  {what:8}" + "".join(
            f" p{p} {1e3 * found[what]['without'][f'p{p}']:.0f} -> "
            f"{1e3 * found[what]['with'][f'p{p}']:.0f} ms" for p in (50, 99)))  # fmt: skip
    found["prefetched_tokens"] = sum(one["prefetched_tokens"][0] for one in runs["with"])
    return found


def tail(runs: list[list[float]]) -> dict[str, Any]:
    """Percentiles of all runs together, and of each run."""
    together = np.concatenate(runs)
    return {
        "n": len(together), "p50": float(np.percentile(together, 50)),
        "p99": float(np.percentile(together, 99)),
        "p99_by_run": [float(np.percentile(run, 99)) for run in runs],
    }  # fmt: skip


def simulated(rates: tuple[float, ...] = (0.5, 1, 2, 4, 8)) -> list[dict[str, Any]]:
    draw = np.random.default_rng(0)
    prompts = [tuple(draw.integers(3, clock.VOCAB, 4096).tolist()) for _ in range(400)]
    rows = []
    for rate in rates:
        come = clock.poisson(1, n=600, rate=rate, n_tokens=48, max_tokens=16)
        alone, _ = clock.latencies(come, [])
        beside, n_tokens = clock.latencies(come, prompts)
        chunk_s = clock.STEP_S + clock.POSITION_S * CHUNK
        row: dict[str, Any] = {"rate": rate, "prefetched_tokens": n_tokens, "chunk_s": chunk_s}
        for what, times in alone.items():
            both = [float(np.percentile(each, 99)) for each in (times, beside[what])]
            row[what] = {"p99_without": both[0], "p99_with": both[1], "growth": both[1] - both[0]}
        print(f"  {rate} a second: p99 grows by " + ", ".join(
            f"{1e3 * row[what]['growth']:.0f} ms ({what})" for what in alone)
            + f"; a chunk is {1e3 * chunk_s:.0f} ms, {n_tokens} prefetched")  # fmt: skip
        rows.append(row)
    return rows


def plot(found: dict[str, Any], file: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
    for at, (name, colour) in enumerate((("without", "#888888"), ("with", "#2a6f97"))):
        rows = [row["first_token_s"][name] for row in found["called"]]
        places = np.arange(len(rows)) + 0.38 * at
        spread = [[r["median"] - r["low"] for r in rows], [r["high"] - r["median"] for r in rows]]
        left.bar(places, [r["median"] for r in rows], 0.36, yerr=spread, color=colour, label=name)
    left.set_xticks(np.arange(len(found["called"])) + 0.19,
                    [f"{row['gap_s']:.1f} s" for row in found["called"]])  # fmt: skip
    left.set_xlabel("host call before it")
    left.set_ylabel("first token of the called function, s")
    left.legend(title="prefetch", loc="upper left", ncols=2)
    left.set_ylim(top=1.3 * left.get_ylim()[1])
    others = found["others"]
    growths = [others[what]["p99_growth_s"] for what in ("first", "between", "whole")]
    right.bar(np.arange(3), growths, 0.5, color="#2a6f97")
    right.set_xticks(np.arange(3), ["first text", "between texts", "whole"])
    right.set_ylabel("growth of other requests' p99, s")
    for which, style in (("mean", "--"), ("last", "-")):
        chunk = others["chunk_s"][which]
        right.axhline(chunk, color="#bc4749", ls=style, label=f"a chunk ({which} of a prompt)")
    right.legend()
    right.set_ylim(top=1.35 * right.get_ylim()[1])
    figure.tight_layout()
    figure.savefig(file, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--reps", type=int, default=9)
    parser.add_argument("--rate", type=float, default=4.0, help="short requests a second")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    model = str(models.make("S", options.folder))
    with (
        EmbeddedEngine(model, ["--pool-tokens", "32768"]) as engine,
        connect(engine.uri) as endpoint,
    ):
        found: dict[str, Any] = {
            "command": "python -P benches/prefetch.py " + " ".join(sys.argv[1:]),
            "machine": machine(), "versions": {"torch": version("torch")},
            "threads": os.environ.get("OMP_NUM_THREADS"), "load_before": os.getloadavg(),
        }  # fmt: skip
        programs = compiled(review)
        print("the called function's first token")
        first = called(endpoint, programs, 0.0, options.reps)
        prefill_s = first["first_token_s"]["without"]["median"]
        gaps = (round(prefill_s / 2, 2), 2.0, round(2 * prefill_s, 2))
        found["called"] = [first, *(called(endpoint, programs, g, options.reps) for g in gaps)]
        print("an arm that is not taken")
        found["not_taken"] = called(endpoint, compiled(maybe_review), 0.2, options.reps)
        print("other requests")
        reps = max(3, options.reps // 2)
        found["others"] = asyncio.run(others(engine.uri, options.rate, options.seconds, reps))
    print("other requests, on a virtual clock")
    found["virtual"] = simulated()
    found["load_after"] = os.getloadavg()
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    if options.plot:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
