"""What a running request has of a model's recurrent layers (`scheduling/snapshots.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field

RUNNING = -1  # in place of a number of tokens, while a step changes the states


@dataclass(slots=True, eq=False)
class Recurrence:
    """Slots. own: the one its rows write. reads: the one its next row reads, which holds the states
    after `at` tokens: its own, or a snapshot. marks: numbers of tokens after which to keep a
    snapshot. kept: those that the step keeps, each with its slot."""

    own: int
    reads: int
    at: int
    marks: set[int] = field(default_factory=set)
    kept: list[tuple[int, int]] = field(default_factory=list)
