"""What a pass is: a pure function from graph to graph, and what it promises to keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sgc.ir.graph import Graph


class Preserves(Enum):
    """What is equal before and after a pass, from most to least."""

    REQUESTS = "requests"  # the same request bytes; only metadata, hints or time change
    RESULTS = "results"  # fewer, merged or reordered requests; same texts and variables
    TEXT = "text"  # generations may be split or fused, with an exact fallback
    NOTHING = "nothing"  # the prompt changes


@dataclass(frozen=True, slots=True)
class Pass:
    """A named rewrite. `run` gives the same object when nothing changed.

    explain: what it did where, a line each, from the program before and after (without those that
    it calls); without it the receipt names the source lines whose nodes changed. whole: it is given
    a program with those that it calls, and not each by itself.
    """

    name: str
    preserves: Preserves
    run: Callable[[Graph], Graph]
    doc: str
    explain: Callable[[Graph, Graph], tuple[str, ...]] | None = None
    whole: bool = False
