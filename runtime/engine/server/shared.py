"""The state that all sessions of a server share, and the limit on sessions.

An idle client does not keep others out: when the limit is reached, the session that has been silent
for longest is ended. Its client opens another when it needs one.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.preparing.bounds import ServerLimits
from sgc.runtime.engine.server.lanes import Lane
from sgc.runtime.engine.server.ledger import Observer
from sgc.runtime.engine.server.pace import Pace
from sgc.runtime.engine.server.tally import Tally
from sgc.runtime.engine.text.tokenizer import Tokenizer
from sgc.runtime.engine.worker.link import WorkerLink

LARGE_CHARS = 256 * 1024  # longer texts are tokenized on a thread of their own
SWEEPS = 20  # in the time a session may be silent


class Open(Protocol):
    """An open session (`session.py`)."""

    silent_since: float

    @property
    def owner(self) -> object: ...

    @property
    def is_silent(self) -> bool: ...

    def end_silent(self, reason: str) -> None: ...

    def fail_all(self, reason: str) -> None: ...


LEAVING = "the engine is stopping; ask another, or try again later"


@dataclass(slots=True)
class Shared:
    """is_leaving: the engine is about to stop, which health checks are told. is_draining: it takes
    no new requests."""

    tokenizer: Tokenizer
    link: WorkerLink
    limits: ServerLimits
    n_active: int = 0
    is_leaving: bool = False
    is_draining: bool = False
    observers: list[Observer] = field(default_factory=list)  # observers of how requests end
    keeps_prompts: bool = False  # for them
    pace: Pace = field(default_factory=Pace)
    preparing_chars: int = 0
    sessions: set[Open] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=itertools.count)  # of sessions
    tally: Tally = field(default_factory=Tally)
    _lane: Lane = field(default_factory=lambda: Lane("tokenize"))
    _large_lane: Lane = field(default_factory=lambda: Lane("tokenize-large"))

    async def stats(self) -> pb.Stats:
        """The step process's statistics and ours, after the current step; raises `WorkerDied`."""
        stats = await self.link.stats()
        self.tally.write(stats)
        stats.in_flight_requests, stats.sessions = self.n_active, len(self.sessions)
        return stats

    def lane_for(self, n_chars: int) -> Lane:
        """The lane on which `n_chars` characters are tokenized."""
        return self._large_lane if n_chars > LARGE_CHARS else self._lane

    def close(self) -> None:
        """Drops texts that wait to be tokenized."""
        for lane in (self._lane, self._large_lane):
            lane.close()

    def has_room(self, domain: bytes = b"") -> bool:
        """Whether a session may be opened; ends a silent one to make room if needed.

        domain: of the client's token. All clients of one token share a lower limit.
        """
        limits = self.limits
        own = [session for session in self.sessions if domain and session.owner == domain]
        if len(own) >= limits.max_sessions_of_token:
            return _end_one_of(own)
        return len(self.sessions) < limits.max_sessions or _end_one_of(self.sessions)

    async def end_silent(self) -> None:
        """Ends sessions that have been silent for too long, until cancelled."""
        idle_s = self.limits.max_silence_s
        while True:
            await asyncio.sleep(idle_s / SWEEPS)
            since = time.monotonic() - idle_s
            for session in list(self.sessions):
                if session.is_silent and session.silent_since < since:
                    session.end_silent(f"the stream was idle for {idle_s:g} s; open another")


def _end_one_of(sessions: Iterable[Open]) -> bool:
    """Ends the session that has been silent for longest; returns whether there was one."""
    silent = [session for session in sessions if session.is_silent]
    if not silent:
        return False
    longest = min(silent, key=lambda session: session.silent_since)
    longest.end_silent("the stream was idle and its slot was needed; open another")
    return True
