"""The place in a program that a request comes from, for backends that depend on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

from sgc.ir.graph import Node
from sgc.runtime.executor.interface.backend import Backend


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a request in a program, as a run's log names it.

    row: the key of the row; path: the stream's; ordinal: of the draw or commit among the stream's
    draws; number: of the request among the draw's requests; name, line: the variable and the line
    in the program.
    """

    row: str = ""
    path: str = ""
    ordinal: int = 0
    name: str = ""
    line: str = ""
    number: int = 0


class OfRun(Protocol):
    """A backend that reads the program of a request: each node gets a backend of its own."""

    def in_run(self, run: Any, node: Node, path: str, ordinal: int) -> Backend:
        """Returns the backend for one node of a run, an `Instance`."""
        ...


def of_run(backend: Backend) -> OfRun | None:
    """Returns the backend if it reads the program; None for wrappers around such a backend."""
    return cast(OfRun, backend) if hasattr(type(backend), "in_run") else None


class Placed(Protocol):
    """A source of backends: a run sends the requests of each draw to a backend of its own."""

    def at(self, place: Place) -> Backend:
        """Returns the backend for one draw."""


def as_placed(backend: Backend) -> Placed | None:
    """Returns the backend if it is such a source, or wraps one.

    It uses no `isinstance`, which checks all members of a protocol each time: every run calls this.
    """
    return cast(Placed, backend) if hasattr(backend, "at") else None
