"""What actors are sent: plain data, since neither programs nor tools are sent as code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class EngineAsked:
    """The engine of an actor: the running one at `uri`, else one of its own. settings: the options
    of `sgc serve`, with underscores. `repr` does not show the token."""

    uri: str | None = None
    token: str | None = field(default=None, repr=False)
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


def settings_of(settings: Mapping[str, Any], num_cpus: float) -> dict[str, Any]:
    """An engine's settings, with as many threads as Ray sets CPUs aside for it."""
    return {"threads": max(1, int(num_cpus)) if num_cpus else None, **settings}


@dataclass(frozen=True, slots=True)
class RowsAsked:
    """The rows of a program. program: its `.sgir` file; options: of the runs, with a seed; key: the
    column of keys; keep: columns that results keep; tools: modules, and `module:name`."""

    program: bytes = field(repr=False)
    options: Mapping[str, Any]
    engine: EngineAsked
    key: str
    order: str = "plan"
    keep: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    max_concurrency: int = 1024
    max_errors: int | None = None
