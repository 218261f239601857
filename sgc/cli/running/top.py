"""`sgc top`: shows what a running engine is doing, one line per interval.

All rates are computed here from the counters at two times; the engine keeps no window.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

import click

from sgc.errors import EngineUnavailable, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import SCHEMES, addresses_in, connect
from sgc.runtime.executor.run.loop import shared

WINDOW_S = 5.0  # of the recent hit rate


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An engine's statistics (`pb.Stats`), and when they came, in seconds of our clock."""

    at_s: float
    stats: Any


@dataclass(frozen=True, slots=True)
class ProgramNow:
    """What the unfinished requests of one run of a program do. remaining: tokens that its longest
    path still generates, if the client said so. since_s: the time since the first request."""

    running: int
    waiting: int
    generated_tokens: int
    remaining: int | None
    since_s: float


@dataclass(frozen=True, slots=True)
class Reading:
    """The values shown. Shares are from 0 to 1; None if there is no data yet."""

    running: int
    waiting: int
    parked: int
    hit_rate: float | None
    hit_rate_recent: float | None
    output_tokens_per_s: float
    prompt_tokens_per_s: float
    requests_per_s: float
    pool_used: float
    pool_cached: float
    step_s: float | None
    forward_s: float | None
    requests: int
    refused: int
    cancelled: int
    failed: int
    preemptions: int
    evicted_tokens: int
    prefetched_tokens_per_s: float
    waiting_prefetches: int
    programs: int
    first_programs: tuple[ProgramNow, ...] = ()


class History:
    """The snapshots of the last seconds; forgotten when the engine was restarted."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._kept: deque[Snapshot] = deque()

    def add(self, now: Snapshot) -> Reading | None:
        """The reading from the last snapshot to the new one; None for the first."""
        kept = self._kept
        if kept and now.stats.steps < kept[-1].stats.steps:
            kept.clear()
        before = kept[-1] if kept else None
        kept.append(now)
        while len(kept) > 2 and kept[1].at_s <= now.at_s - self._window_s:
            kept.popleft()
        return None if before is None else reading(kept[0], before, now)


def reading(oldest: Snapshot, before: Snapshot, now: Snapshot) -> Reading:
    """Rates since `before`, the recent hit rate since `oldest`."""
    stats = now.stats
    seconds = max(now.at_s - before.at_s, 1e-9)

    def grown(field: str, since: Snapshot = before) -> float:
        return float(getattr(stats, field) - getattr(since.stats, field))

    recent = grown("cached_tokens", oldest), grown("prompt_tokens", oldest)
    return Reading(
        running=stats.running_requests,
        waiting=stats.waiting_requests,
        parked=stats.parked_requests,
        hit_rate=_share(stats.cached_tokens, stats.prompt_tokens),
        hit_rate_recent=_share(*recent),
        output_tokens_per_s=grown("sampled_tokens") / seconds,
        prompt_tokens_per_s=grown("prompt_tokens") / seconds,
        requests_per_s=grown("finished_requests") / seconds,
        pool_used=_share(stats.pool_tokens - stats.free_tokens, stats.pool_tokens) or 0.0,
        pool_cached=_share(stats.cached_pool_tokens, stats.pool_tokens) or 0.0,
        step_s=_share(grown("busy_s"), grown("steps")),
        forward_s=_share(grown("forward_s"), grown("steps")),
        requests=stats.requests,
        refused=stats.refused_requests,
        cancelled=stats.cancelled_requests,
        failed=stats.failed_requests,
        preemptions=stats.preemptions,
        evicted_tokens=stats.evicted_tokens,
        prefetched_tokens_per_s=grown("prefetched_tokens") / seconds,
        waiting_prefetches=stats.waiting_prefetches,
        programs=stats.programs,
        first_programs=tuple(map(_program, stats.first_programs)),
    )


def _program(now: Any) -> ProgramNow:
    remaining = now.remaining if now.HasField("remaining") else None
    return ProgramNow(now.running, now.waiting, now.generated_tokens, remaining, now.since_s)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def line(now: Reading) -> str:
    """A reading as a line of text."""
    parts = [
        f"run {now.running}",
        f"wait {now.waiting}" + (f" ({now.parked} parked)" if now.parked else ""),
        *([f"programs {now.programs}"] if now.programs else []),
        f"hit {_percent(now.hit_rate)} ({WINDOW_S:g} s: {_percent(now.hit_rate_recent)})",
        f"{_number(now.output_tokens_per_s)} tok/s out",
        f"{_number(now.prompt_tokens_per_s)} tok/s in",
        *_ahead(now),
        f"pool {_percent(now.pool_used)} (cached {_percent(now.pool_cached)})",
        _step(now),
    ]
    lost = [(now.refused, "refused"), (now.cancelled, "cancelled"), (now.failed, "failed")]
    return "  ".join(parts + [f"{n} {word}" for n, word in lost if n])


def program_lines(now: Reading) -> list[str]:
    """A line for each run of a program, the run with the least left first."""
    shown = [f"  {_left(run):>12}  {run.running} running  {run.waiting} waiting  "
             f"{run.generated_tokens} generated  {run.since_s:.1f} s"
             for run in now.first_programs]  # fmt: skip
    n_more = now.programs - len(shown)
    return shown + ([f"  and {n_more} more"] if n_more else [])


def _left(run: ProgramNow) -> str:
    return "not told" if run.remaining is None else f"{run.remaining} left"


def _ahead(now: Reading) -> list[str]:
    """The prefetched tokens, if there are any."""
    if not now.prefetched_tokens_per_s and not now.waiting_prefetches:
        return []
    waiting = f" ({now.waiting_prefetches} waiting)" if now.waiting_prefetches else ""
    return [f"{_number(now.prefetched_tokens_per_s)} tok/s prefetched{waiting}"]


def _step(now: Reading) -> str:
    if now.step_s is None or now.forward_s is None:
        return "idle"
    return f"step {_milliseconds(now.step_s)} (model {_milliseconds(now.forward_s)})"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.{0 if seconds >= 0.01 else 1}f} ms"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _number(value: float) -> str:
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.1f}{unit}"
    return f"{value:.0f}"


def top(engine: str, interval: float, once: bool, with_programs: bool, as_json: bool) -> None:
    """Shows the engine's readings until interrupted; once: only one. with_programs: also a line for
    each run of a program."""
    if not engine.startswith(SCHEMES) or len(addresses_in(engine)) > 1:
        raise UsageError(
            f"sgc top cannot use {engine!r}",
            hint="use grpc://HOST:PORT, grpcs://HOST:PORT or unix:PATH of one `sgc serve`",
        )
    history = History()
    with connect(engine) as endpoint, _Screen(as_json, with_programs) as screen:
        due_s = time.monotonic()
        while True:
            found = history.add(_ask(endpoint))
            if found is not None:
                screen.show(found)
                if once:
                    return
            due_s = max(due_s + interval, time.monotonic())
            time.sleep(max(0.0, due_s - time.monotonic()))


def _ask(endpoint: Endpoint) -> Snapshot:
    backend: Any = endpoint.backend
    try:
        stats = shared.run(backend.stats())
    except EngineUnavailable as error:
        hint = "start one with `sgc serve`, or name another: --engine URI"
        raise EngineUnavailable(error.message, hint=hint) from error
    return Snapshot(time.monotonic(), stats)


class _Screen:
    """Shows one line, rewritten in place on a terminal; else, or with programs, a line for each
    reading, and the programs' lines below it. Ctrl-C ends it."""

    def __init__(self, as_json: bool, with_programs: bool = False) -> None:
        self._as_json, self._with_programs = as_json, with_programs
        self._in_place = not (as_json or with_programs) and sys.stdout.isatty()

    def show(self, now: Reading) -> None:
        if self._as_json:
            click.echo(json.dumps(asdict(now)))
        elif not self._in_place:
            more = program_lines(now) if self._with_programs else []
            click.echo("\n".join([line(now), *more]))
        else:
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"\r{line(now)[:width]}\x1b[K", nl=False)

    def __enter__(self) -> _Screen:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if self._in_place:
            click.echo()
        return kind is not None and issubclass(kind, KeyboardInterrupt)  # the way to end it
