"""Where in a program a request comes from, for backends to which that matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from sgc.ir.graph import Node
from sgc.runtime.executor.interface.backend import Backend


@dataclass(frozen=True, slots=True)
class Place:
    """A draw of a program, or a commit, and one of its requests, as a run's log names them.

    row: its key; path: of the stream; ordinal: among the stream's draws; number: among the draw's
    requests; name, line: of the program.
    """

    row: str = ""
    path: str = ""
    ordinal: int = 0
    name: str = ""
    line: str = ""
    number: int = 0


class OfRun(Protocol):
    """A backend that looks at the program that asks: a run has one of its own for each node."""

    def in_run(self, run: Any, node: Node, path: str, ordinal: int) -> Backend:
        """The backend as one node of a run, an `Instance`, sees it."""
        ...


def of_run(backend: Backend) -> OfRun | None:
    """The backend, if it is one by itself: what wraps one hands on its attributes."""
    return cast(OfRun, backend) if hasattr(type(backend), "in_run") else None


@runtime_checkable
class Placed(Protocol):
    """What has a backend for each draw: a run asks that one and not this."""

    def at(self, place: Place) -> Backend:
        """The backend as one draw sees it."""
