"""The place in a program that a request comes from, for backends that depend on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

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
    """A backend that reads the program which makes a request: each node has its own."""

    def in_run(self, run: Any, node: Node, path: str, ordinal: int) -> Backend:
        """Returns the backend for one node of a run, an `Instance`."""
        ...


def of_run(backend: Backend) -> OfRun | None:
    """Returns the backend if it reads the program itself; a wrapper of it does not count."""
    return cast(OfRun, backend) if hasattr(type(backend), "in_run") else None


class Placed(Protocol):
    """A source of backends, one for each draw: a run sends its requests to those."""

    def at(self, place: Place) -> Backend:
        """Returns the backend for one draw."""


def as_placed(backend: Backend) -> Placed | None:
    """Returns the backend if it is such a source, or wraps one.

    Each run comes here, and `isinstance` with a protocol looks through all of its members anew.
    """
    return cast(Placed, backend) if hasattr(backend, "at") else None
