"""The current state of programs' runs, for those who watch an engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sgc.runtime.engine.requests.request import State, Work

MOST_SHOWN = 16


@dataclass(frozen=True, slots=True)
class RunNow:
    """The unfinished requests of one run: how many run and wait, and the tokens that they have
    generated. remaining: of the run, as the latest request says; None: its client did not say.
    since_s: since the first request came."""

    running: int
    waiting: int
    generated_tokens: int
    remaining: int | None
    since_s: float


def runs_now(live: Iterable[Work], now: float) -> list[RunNow]:
    """The runs that unfinished requests belong to, the run with the least left first; runs that do
    not say come last. now: on the clock of `Work.times`."""
    found: dict[tuple[bytes, int], list[Work]] = {}
    for work in live:
        run = work.request.run
        if run is not None:
            found.setdefault((work.request.owner, run.id), []).append(work)
    runs = [_now(works, now) for works in found.values()]
    return sorted(runs, key=lambda run: (run.remaining is None, run.remaining or 0))


def _now(works: list[Work], now: float) -> RunNow:
    n_running = sum(work.state is State.RUNNING for work in works)
    last = works[-1].request.run
    assert last is not None
    return RunNow(
        running=n_running,
        waiting=len(works) - n_running,
        generated_tokens=sum(work.n_generated for work in works),
        remaining=last.remaining,
        since_s=now - min(work.times.submitted_at for work in works),
    )
