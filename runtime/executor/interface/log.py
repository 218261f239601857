"""A run's log as the run sees it; `log/run_log.py` keeps one in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sgc.runtime.executor.interface.capabilities import Capabilities

Json = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """The program of a log. fingerprint: of its source; options: those that are not defaults."""

    program: str
    fingerprint: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)


class Log(Protocol):
    """Records of a run by kind and place.

    on_unknown: what to do about a call with an effect whose outcome is not in the log.
    is_replay: a request that is not in the log is an error.
    """

    path: str
    on_unknown: str
    is_replay: bool

    def begin(
        self, header: Header, row: str, arguments: Mapping[str, Any], capabilities: Capabilities
    ) -> None:
        """Begins a row; raises an error if the log has another program, model or options."""
        ...

    def find(self, *key: Any) -> Json | None:
        """The last record of a kind and place; None if there is none."""
        ...

    def find_same(self, key: Key, fingerprint: str, what: str, where: str) -> Json | None:
        """The record at a place; raises NonDeterministicProgram if its request is another one."""
        ...

    def append(self, record: Json) -> None:
        """Adds a record, which survives a crash of the process once this returns."""
        ...

    async def append_durably(self, record: Json) -> None:
        """Adds a record, which survives a crash of the machine once this returns."""
        ...

    def wall_s(self, monotonic_s: float) -> float:
        """Converts a time of the monotonic clock to the log's: seconds since 1970."""
        ...
