"""A running request's states of the model's recurrent layers (`scheduling/snapshots.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field

RUNNING = -1  # instead of a number of tokens, while a step changes the states


@dataclass(slots=True, eq=False)
class Recurrence:
    """Slots. own: the slot that its rows write. reads: the slot that its next row reads, its own or
    a snapshot, with the states after `at` tokens. marks: numbers of tokens after which to keep a
    snapshot. kept: the marks that the step keeps, each with its slot."""

    own: int
    reads: int
    at: int
    marks: set[int] = field(default_factory=set)
    kept: list[tuple[int, int]] = field(default_factory=list)
