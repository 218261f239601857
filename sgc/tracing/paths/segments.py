"""The parts of an exploration: nodes in a row, and how they go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sgc.core.symbols import Symbol
from sgc.ir.graph import Loc, Node
from sgc.tracing.paths.leaves import Leaf
from sgc.tracing.paths.snapshot import Mapped, Snapshot, Unsure, View


@dataclass(frozen=True, slots=True)
class Widened:
    """What a run was made to forget at a statement, so that it goes on for another too.

    names: variables with the number of their stream, and the symbols that stand for them. leaves:
    their numbers, the symbols that stand for them, and what they were.
    """

    n_events: int  # lines before
    names: tuple[tuple[int, Symbol, Unsure], ...]
    leaves: tuple[tuple[int, Symbol, Leaf], ...]
    facts: Mapping[Any, bool]
    retired: frozenset[int]  # streams that were published before

    def given(self) -> Mapped:
        """What its symbols are to the run that it was made of."""
        found: Mapped = {symbol.name: unsure.given for _, symbol, unsure in self.names}
        return found | {symbol.name: leaf.given(symbol.type) for _, symbol, leaf in self.leaves}


@dataclass(slots=True)
class Segment:
    """Nodes in a row. end: how it goes on; published: streams that nothing reaches any more."""

    number: int
    nodes: list[Node] = field(default_factory=list)
    published: list[Node] = field(default_factory=list)
    retired: tuple[int, ...] = ()
    snapshot: Snapshot | None = None
    end: Goto | Branch | Stop | None = None
    widened: Widened | None = None  # what the run was made to forget before it
    instead: Goto | None = None  # where all who come here go, since a wider one was begun

    @property
    def way(self) -> Goto | Branch | Stop | None:
        """How it goes on; past segments that others are gone to instead of."""
        return self.end.resolved() if isinstance(self.end, Goto) else self.end


@dataclass(frozen=True, slots=True)
class Goto:
    """Goes on with a segment. mapped: what stands for its symbols, names and literals alone; None:
    they themselves.
    """

    target: Segment
    mapped: Mapped | None = None
    is_back: bool = False
    loc: Loc | None = None

    def resolved(self) -> Goto:
        """Where it leads in the end."""
        way = self
        while way.target.instead is not None:
            following, before = way.target.instead, way.mapped or {}
            assert following.mapped is not None
            mapped = {
                name: before.get(given, given) if isinstance(given, str) else given
                for name, given in following.mapped.items()
            }
            way = Goto(following.target, mapped, way.is_back, way.loc)
        return way


@dataclass(frozen=True, slots=True)
class Branch:
    test: Symbol
    then: Segment
    orelse: Segment
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Stop:
    """The last node is a terminator."""


@dataclass(frozen=True, slots=True)
class Unexplored:
    """An arm that no run has taken yet: the segments and answers that lead to it."""

    segments: tuple[Segment, ...]
    answers: tuple[bool, ...]
    arm: Segment


def views(snapshot: Snapshot) -> tuple[View, ...]:
    """In which a state may be widened."""
    if not snapshot.leaves:
        return ()
    has_lists = any(leaf.is_list for leaf in snapshot.leaves)
    return (View.ITEMS, View.LISTS) if has_lists else (View.ITEMS,)


def slots_of(snapshot: Snapshot) -> list[Symbol]:
    """The symbols that a state holds."""
    parts = (part for names in snapshot.names for part in names.values())
    return [slot for part in (snapshot.whole, *parts) for slot in part.slots]


def targets(segment: Segment) -> tuple[Segment, ...]:
    """The segments that one goes on with."""
    way = segment.way
    if isinstance(way, Branch):
        return way.then, way.orelse
    return (way.target,) if isinstance(way, Goto) else ()


def reached_from(entry: Segment) -> dict[int, Segment]:
    """The segments that a run can come to, by number."""
    reached, queue = {entry.number: entry}, [entry]
    while queue:
        for target in targets(queue.pop()):
            if target.number not in reached:
                reached[target.number] = target
                queue.append(target)
    return reached
