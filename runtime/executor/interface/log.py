"""A run's log as the run sees it; `log/run_log.py` keeps one in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sgc.runtime.executor.interface.backend import Capabilities

Json = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """The program that a log is of. fingerprint: of its source; options: all but the defaults."""

    program: str
    fingerprint: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)


class Log(Protocol):
    """Records of a run by kind and place.

    on_unknown: what to do about a call with an effect whose outcome the log does not have.
    is_replay: a request that the log does not have is an error.
    """

    path: str
    on_unknown: str
    is_replay: bool

    def begin(
        self, header: Header, row: str, arguments: Mapping[str, Any], capabilities: Capabilities
    ) -> None:
        """Begins a row; raises an error where the log is of another program, model or options."""
        ...

    def find(self, *key: Any) -> Json | None:
        """The last record of a kind and place; None where there is none."""
        ...

    def find_same(self, key: Key, fingerprint: str, what: str, where: str) -> Json | None:
        """The record of a place; raises NonDeterministicProgram if it is of another request."""
        ...

    def append(self, record: Json) -> None:
        """Adds a record; when this returns, it outlives the process."""
        ...

    async def append_durably(self, record: Json) -> None:
        """Adds a record; when this returns, it also outlives the machine."""
        ...

    def wall_s(self, monotonic_s: float) -> float:
        """A time of the monotonic clock as the log writes it: seconds since 1970."""
        ...
