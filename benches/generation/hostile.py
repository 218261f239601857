"""What hostile constraints do to a server: to themselves, and to the requests beside them.

    python -P benches/generation/hostile.py [--n 10000] [--phases 6] [--out FILE.json]

A client in a process of its own sends hostile regexes, schemas and grammars (`corpus/hostile.py`),
one after another, each with max_tokens=4; another keeps 4 ordinary requests of 32 tokens in flight.
Phases with and without the flood alternate, with equally many ordinary requests; the remaining
hostile requests are then sent under the same load. All this is repeated with 16 hostile requests at
once. The slowest hostile requests are sent once more, with nothing else running. The exit status is
1 if the step process died, or a request had no reply or an internal error.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count, cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from generation import serving
from generation.corpus import hostile
from generation.serving import bars

from sgc.errors import BackendError, SgcError
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.backends.engine.ends import InvalidRequest
from sgc.runtime.executor.interface.backend import Prompt, Sampling, TextRun

SEED = 11
MAX_TOKENS = 4
TIMEOUT_S = 60.0
N_ORDINARY_AT_ONCE, N_ORDINARY_TOKENS = 4, 32
N_SLOWEST = 20
FAILURES = ("preparing the request failed", "a step failed")
WIDTHS = (1, 16)
ASKED_S, ASKED_RATIO = 1.0, 1.5
QUIET = "ordinary requests alone"


@dataclass(frozen=True, slots=True)
class Item:
    """A hostile constraint. field: its name in `Sampling`."""

    kind: str
    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply. index: of the item; outcome: text, refused, or the kind of failure."""

    index: int
    kind: str
    seconds: float
    outcome: str
    said: str
    n_chars: int

    @property
    def is_answered(self) -> bool:
        return self.outcome in ("text", "refused")


def items(n: int, seed: int) -> Iterator[Item]:
    """n hostile items: regexes, schemas and grammars in turn."""
    share = -(-n // 3)
    schemas = hostile.hostile_schemas(share, seed)
    sources = (
        _items("regex", hostile.PATTERNS, hostile.hostile_patterns(share, seed)),
        _items("json_schema", hostile.SCHEMAS, map(json.dumps, schemas)),
        _items("ebnf", hostile.GRAMMARS, hostile.hostile_grammars(share, seed)),
    )  # fmt: skip
    return islice((each for triple in zip(*sources, strict=True) for each in triple), n)


def _items(field: str, kinds: Sequence[Callable[..., Any]], texts: Iterator[str]) -> Iterator[Item]:
    for index, text in enumerate(texts):
        yield Item(kinds[index % len(kinds)].__name__, field, text)


async def ask(backend: EngineBackend, index: int, item: Item) -> Answer:
    """Sends one item and waits for its reply."""
    asked = Sampling(MAX_TOKENS, seed=index, **{item.field: item.text})  # type: ignore[arg-type]
    started_s = time.perf_counter()
    try:
        found = await asyncio.wait_for(backend.generate((TextRun("Say:"),), asked), TIMEOUT_S)
        outcome, said = "text", found.text
    except TimeoutError:
        outcome, said = "no answer", f"in {TIMEOUT_S:g} s"
    except SgcError as error:
        outcome, said = _kind(error), str(error)
    return Answer(
        index, item.kind, time.perf_counter() - started_s, outcome, said[:160], len(item.text)
    )


def _kind(error: SgcError) -> str:
    """The kind of an error: a refusal, or a fault of our own."""
    if str(error).startswith(FAILURES):
        return "internal error"
    is_refused = type(error) in (BackendError, InvalidRequest)
    return "refused" if is_refused else type(error).__name__


class Flood:
    """A client that sends hostile requests, in a process of its own."""

    def __init__(self, uri: str, n: int, seed: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_flood, args=(uri, n, seed, theirs), daemon=True)
        self._process.start()
        self._pipe.recv()  # waits until all items are made

    def begin(self, width: int, n: int | None = None) -> None:
        """Starts sending. width: requests in flight; n: their number, None to send until `end`."""
        self._pipe.send((width, n))

    async def end(self, waits: bool = False) -> list[Answer]:
        """Returns the replies since `begin`. waits: first waits until all n are sent."""
        if not waits:
            self._pipe.send(None)
        found: list[Answer] = await asyncio.to_thread(self._pipe.recv)
        return found

    def close(self) -> None:
        self._pipe.close()
        self._process.join(10)


def _flood(uri: str, n: int, seed: int, pipe: Connection) -> None:
    todo = cycle(enumerate(list(items(n, seed))))  # n is too large for the server to cache them
    pipe.send("ready")

    async def run(width: int, n_asked: int | None) -> list[Answer]:
        found: list[Answer] = []
        turns = count() if n_asked is None else iter(range(n_asked))

        async def lane(backend: EngineBackend) -> None:
            for _ in turns:
                if pipe.poll():
                    return
                found.append(await ask(backend, *next(todo)))

        async with EngineBackend(uri) as backend:
            await asyncio.gather(*(lane(backend) for _ in range(width)))
        return found

    with asyncio.Runner() as runner:
        while True:
            try:
                begin = pipe.recv()
            except EOFError:
                return
            if begin is not None:
                pipe.send(runner.run(run(*begin)))


class Ordinary:
    """The other client: 4 requests at a time, with new prompts of about 30 tokens."""

    def __init__(self, backend: EngineBackend) -> None:
        self._backend = backend
        self._n_asked = 0

    async def run(self, n: int) -> list[float]:
        """Makes n requests; returns the seconds of each."""
        left, found = iter(range(n)), list[float]()

        async def lane() -> None:
            for _ in left:
                found.append(await self._one())

        await asyncio.gather(*(lane() for _ in range(N_ORDINARY_AT_ONCE)))
        return found

    async def until(self, done: asyncio.Future[Any]) -> None:
        """Makes requests until `done`."""
        while not done.done():
            await self.run(4 * N_ORDINARY_AT_ONCE)

    async def _one(self) -> float:
        self._n_asked += 1
        prompt: Prompt = (
            TextRun(f"Request {self._n_asked}: tell me of the number {self._n_asked**3}, and why."),
        )
        asked = Sampling(N_ORDINARY_TOKENS, ignore_eos=True, seed=self._n_asked)
        started_s = time.perf_counter()
        await self._backend.generate(prompt, asked)
        return time.perf_counter() - started_s


@dataclass(slots=True)
class Measured:
    """One width of the flood: latencies of ordinary requests by phase, and hostile replies."""

    quiet: list[list[float]]
    flooded: list[list[float]]
    answers: list[Answer]


async def measure(
    ordinary: Ordinary, flood: Flood, width: int, phases: int, n: int, n_hostile: int
) -> Measured:
    """Alternates phases with n ordinary requests each; ends when n_hostile have been sent."""
    found = Measured([], [], [])
    for phase in range(phases):
        for is_flooded in (False, True) if phase % 2 == 0 else (True, False):
            if not is_flooded:
                found.quiet.append(await ordinary.run(n))
                continue
            flood.begin(width)
            found.flooded.append(await ordinary.run(n))
            found.answers += await flood.end()
    if len(found.answers) < n_hostile:
        flood.begin(width, n_hostile - len(found.answers))
        rest = asyncio.ensure_future(flood.end(waits=True))
        await ordinary.until(rest)
        found.answers += await rest
    return found


def latency(found: Measured) -> dict[str, Any]:
    """Percentiles of the ordinary requests, and ratios with the flood to without, by phase."""
    quiet, flooded = np.concatenate(found.quiet), np.concatenate(found.flooded)
    ratios = [
        float(np.quantile(b, 0.99) / np.quantile(a, 0.99))
        for a, b in zip(found.quiet, found.flooded, strict=True)
    ]
    return {
        "requests": len(quiet),
        **{
            f"p{percent}_ms": {
                "quiet": _ms(np.quantile(quiet, percent / 100)),
                "flooded": _ms(np.quantile(flooded, percent / 100)),
            }
            for percent in (50, 90, 99)
        },
        "p99_ratio": round(float(np.quantile(flooded, 0.99) / np.quantile(quiet, 0.99)), 3),
        "p99_ratio_by_phase": [round(each, 3) for each in ratios],
        "p99_ratio_median": round(statistics.median(ratios), 3),
        "p50_ratio": round(float(np.median(flooded) / np.median(quiet)), 3),
    }


def of_answers(answers: Sequence[Answer]) -> dict[str, Any]:
    """The outcomes and times of the hostile requests."""
    seconds = np.array([each.seconds for each in answers])
    return {
        "requests": len(answers),
        "outcomes": dict(Counter(each.outcome for each in answers)),
        "unanswered": [asdict(each) for each in answers if not each.is_answered][:50],
        "p50_ms": _ms(np.median(seconds)),
        "p99_ms": _ms(np.quantile(seconds, 0.99)),
        "longest_s": round(float(seconds.max()), 3),
        "over_1_s": int((seconds >= ASKED_S).sum()),
        "requests_a_second_alone_in_the_queue": round(len(seconds) / float(seconds.sum()), 1),
    }


async def slowest_alone(
    backend: EngineBackend, answers: Sequence[Answer], n: int
) -> list[dict[str, Any]]:
    """Sends the slowest requests again, with nothing else running."""
    slowest = sorted(answers, key=lambda each: -each.seconds)[:N_SLOWEST]
    all_items = list(items(n, SEED + 1))
    rows = []
    for each in slowest:
        again = await ask(backend, each.index, all_items[each.index])
        rows.append({**asdict(each), "alone_s": round(again.seconds, 3)})
    return rows


def _ms(seconds: Any) -> float:
    return round(1000 * float(seconds), 2)


async def run(engine: EmbeddedEngine, options: Any) -> dict[str, Any]:
    """Measures both floods on one server."""
    pid = serving.worker_pid(engine)
    assert engine.pid is not None
    memory = [_memory(engine.pid, pid, "started")]
    found: dict[str, Any] = {}
    answers: list[Answer] = []
    async with EngineBackend(engine.uri) as backend:
        ordinary = Ordinary(backend)
        await ordinary.run(100)
        memory.append(_memory(engine.pid, pid, "after 100 ordinary requests"))
        for width in WIDTHS:
            flood = Flood(engine.uri, options.n, SEED + width)
            measured = await measure(
                ordinary, flood, width, options.phases, options.ordinary, options.n
            )
            flood.close()
            answers += measured.answers
            found[f"flood of {width}"] = {
                "latency": latency(measured), "hostile": of_answers(measured.answers),
            }  # fmt: skip
            memory.append(_memory(engine.pid, pid, f"after {len(answers)} hostile requests"))
            tell(f"flood of {width}", found[f"flood of {width}"])
            if width == 1:
                found["slowest"] = await slowest_alone(backend, measured.answers, options.n)
        stats = await backend.stats()
        found["is_same_process"] = serving.worker_pid(engine) == pid
        found["requests_left"] = stats.running_requests + stats.waiting_requests
    found["hostile_requests"] = len(answers)
    found["memory"] = memory
    return found


def _memory(server: int, worker: int, when: str) -> dict[str, Any]:
    return {
        "when": when,
        "worker_mb": round(serving.rss_mb(worker)),
        "server_mb": round(serving.rss_mb(server)),
    }


def tell(name: str, found: dict[str, Any]) -> None:
    ordinary, of = found["latency"], found["hostile"]
    p99 = ordinary["p99_ms"]
    print(
        f"{name}: {of['requests']} hostile, {of['outcomes']}, p50 {of['p50_ms']} ms, p99 "
        f"{of['p99_ms']} ms, longest {of['longest_s']} s, {of['over_1_s']} over 1 s\n"
        f"  ordinary p99 {p99['quiet']} -> {p99['flooded']} ms, {ordinary['p99_ratio']} times "
        f"(by phase {ordinary['p99_ratio_by_phase']}); p50 {ordinary['p50_ratio']} times",
        flush=True,
    )


def draw(path: Path, found: dict[str, Any]) -> None:
    """Plots the ordinary requests' percentiles, with and without each flood."""
    floods = [name for name in found if name.startswith("flood")]
    groups = [f"{name}: {p[:-3]}" for name in floods for p in ("p50_ms", "p90_ms", "p99_ms")]
    series = {
        label: [
            found[name]["latency"][p][key]
            for name in floods for p in ("p50_ms", "p90_ms", "p99_ms")
        ]
        for label, key in ((QUIET, "quiet"), ("beside hostile constraints", "flooded"))
    }  # fmt: skip
    bars.draw(
        path, "Ordinary requests of 32 tokens beside hostile constraints", groups, series, "ms"
    )


def main() -> None:
    options = serving.common_arguments(
        __doc__, model="default", n=10_000, phases=6, ordinary=1000
    ).parse_args()
    with serving.engine(options.model, options) as engine:
        found = asyncio.run(run(engine, options))
    for row in found["slowest"]:
        print(
            f"{row['seconds']:7.3f} s (alone {row['alone_s']:.3f})  {row['kind']:24} "
            f"{row['n_chars']:6} characters  {row['outcome']}: {row['said'][:80]!r}"
        )
    for row in found["memory"]:
        print(f"{row['when']}: worker {row['worker_mb']} MB, server {row['server_mb']} MB")
    if options.out:
        serving.save(options.out, serving.report("hostile", options, **found))
        draw(options.out.with_suffix(".png"), found)
    floods = [of for name, of in found.items() if name.startswith("flood")]
    is_answered = not any(of["hostile"]["unanswered"] for of in floods)
    sys.exit(not (is_answered and found["is_same_process"]))


if __name__ == "__main__":
    main()
