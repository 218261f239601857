"""Segments: the parts of an exploration, each a row of nodes and what follows the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sgc.core.symbols import Symbol
from sgc.ir.graph import Lit, Loc, Node, make_node
from sgc.tracing.kinds.row_types import joined
from sgc.tracing.snapshots.leaves import Leaf
from sgc.tracing.snapshots.snapshot import Mapped, Snapshot, Unsure, View


@dataclass(frozen=True, slots=True)
class Widened:
    """What was widened at a statement, so that a run's path merges with another.

    names: each variable's stream number, the symbol that replaces it, and the variable. leaves:
    each leaf's number, the symbol that replaces it, and the leaf.
    """

    n_events: int  # the number of lines run before
    names: tuple[tuple[int, Symbol, Unsure], ...]
    leaves: tuple[tuple[int, Symbol, Leaf], ...]
    facts: Mapping[Any, bool]
    retired: frozenset[int]  # streams published before

    def given(self) -> Mapped:
        """The values of its symbols in the run that was widened."""
        found: Mapped = {symbol.name: unsure.given for _, symbol, unsure in self.names}
        return found | {symbol.name: leaf.given(symbol.type) for _, symbol, leaf in self.leaves}


@dataclass(slots=True)
class Segment:
    """Nodes in a row. end: what follows them; published: nodes that publish unreachable streams."""

    number: int
    nodes: list[Node] = field(default_factory=list)
    published: list[Node] = field(default_factory=list)
    retired: tuple[int, ...] = ()
    snapshot: Snapshot | None = None
    end: Goto | Branch | Stop | None = None
    widened: Widened | None = None  # what was widened at the segment's beginning
    instead: Goto | None = None  # the wider segment that has replaced this one

    def is_near(self, snapshot: Snapshot, view: View) -> bool:
        """Whether the types of its leaves and of another state's can be joined."""
        assert self.snapshot is not None
        pairs = zip(self.snapshot.view(view), snapshot.view(view), strict=True)
        return all(
            None in (mine.type, other.type) or joined(mine.type, other.type) is not None
            for (_, mine), (_, other) in pairs
        )

    @property
    def way(self) -> Goto | Branch | Stop | None:
        """What follows, with replaced segments resolved."""
        return self.end.resolved() if isinstance(self.end, Goto) else self.end


@dataclass(frozen=True, slots=True)
class Goto:
    """Continues with a segment. mapped: arguments for its symbols, names and literals only; None:
    the symbols keep their names.
    """

    target: Segment
    mapped: Mapped | None = None
    loc: Loc | None = None

    def leads_to(self) -> Segment:
        """The segment that the Goto leads to after all replacements."""
        target = self.target
        while target.instead is not None:
            target = target.instead.target
        return target

    def resolved(self) -> Goto:
        """The Goto to that segment, with the arguments for that segment."""
        way = self
        while way.target.instead is not None:
            following, before = way.target.instead, way.mapped or {}
            assert following.mapped is not None
            mapped = {
                name: before.get(given, given) if isinstance(given, str) else given
                for name, given in following.mapped.items()
            }
            way = Goto(following.target, mapped, way.loc)
        return way


@dataclass(frozen=True, slots=True)
class Branch:
    test: Symbol
    then: Segment
    orelse: Segment
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Stop:
    """The segment's last node is a terminator."""


@dataclass(frozen=True, slots=True)
class Unexplored:
    """An arm that no run has taken yet: the segments and answers that lead to it, and the number of
    nodes in these segments."""

    segments: tuple[Segment, ...]
    answers: tuple[bool, ...]
    arm: Segment
    n_nodes: int


def views(snapshot: Snapshot) -> tuple[View, ...]:
    """The views in which a state may be widened."""
    if not snapshot.leaves:
        return ()
    has_lists = any(leaf.is_list for leaf in snapshot.leaves)
    return (View.ITEMS, View.LISTS) if has_lists else (View.ITEMS,)


def slots_of(snapshot: Snapshot) -> list[Symbol]:
    """The symbols that a state holds."""
    parts = (part for names in snapshot.names for part in names.values())
    return [slot for part in (snapshot.whole, *parts) for slot in part.slots]


def targets(segment: Segment) -> tuple[Segment, ...]:
    """The segments that may follow a segment."""
    end = segment.end
    if isinstance(end, Branch):
        return end.then, end.orelse
    return (end.leads_to(),) if isinstance(end, Goto) else ()


def reached_from(*begin: Segment, known: dict[int, Segment] | None = None) -> dict[int, Segment]:
    """The segments reachable from the given segments, by number. known: a dict to which they are
    added; it must already have all segments reachable from its own."""
    reached = {} if known is None else known
    queue = list(begin)
    reached.update((each.number, each) for each in begin)
    while queue:
        for target in targets(queue.pop()):
            if target.number not in reached:
                reached[target.number] = target
                queue.append(target)
    return reached


MAX_REASON = 300


def leave(segment: Segment, reason: str, loc: Loc | None) -> None:
    """Ends a segment with a node at which the interpreter continues."""
    node = make_node("deopt", (), loc, reason=Lit(reason[:MAX_REASON]))
    (segment.published or segment.nodes).append(node)
    segment.end = Stop()
