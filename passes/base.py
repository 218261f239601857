"""A pass: a pure function from graph to graph, and what it promises to preserve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sgc.ir.graph import Graph


class Preserves(Enum):
    """What a pass leaves equal, from most to least."""

    REQUESTS = "requests"  # the same request bytes; only metadata, hints or time change
    RESULTS = "results"  # fewer, merged or reordered requests; same texts and variables
    TEXT = "text"  # generations may be split or fused, with an exact fallback
    NOTHING = "nothing"  # the prompt changes


@dataclass(frozen=True, slots=True)
class Pass:
    """A named rewrite. `run` returns the same object if nothing changed.

    explain: returns lines on what the pass did and where, from the program before and after
    (without called programs); without it, the receipt names the source lines whose nodes changed.
    whole: whether `run` gets a program together with the programs it calls, not each separately.
    """

    name: str
    preserves: Preserves
    run: Callable[[Graph], Graph]
    doc: str
    explain: Callable[[Graph, Graph], tuple[str, ...]] | None = None
    whole: bool = False
