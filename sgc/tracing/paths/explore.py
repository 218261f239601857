"""Finite-decision replay: a program is run once for every path it can go, and the paths merged.

A run answers the program's tests from a list of answers; where the list ends it goes on by
itself, taking the first arm of each new test and leaving the other for a later run. Where a run
comes to a statement that another has come to in an equal state, it ends: both go on as one. So
the arms of an `if` join after it, the turns of a loop become a loop, and twenty tests in a row
cost twenty runs. Repeating a run must build the same nodes, which is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sgc.core.symbols import Namer, Symbol
from sgc.errors import TraceError
from sgc.ir.graph import Loc, Node
from sgc.tracing.paths.snapshot import (
    Mapped,
    Shape,
    Snapshot,
    Unsure,
    Widening,
    match,
    unsure_names,
    widen,
)

SPENT_EVERY = 16  # tests of one run
# What exploring costs, in values that are compared where paths may merge, of some 4 microseconds
# each: fitted over random programs. What grows in a loop makes values many, and nodes few.
REPEATED, BUILT, RUN = 25, 60, 700  # a node that a run repeats, one that it builds, a run
COMPARED = 4  # another state of the same shape


class PathEnd(BaseException):
    """Ends a run that another goes on for; past the program's own handlers."""


class HasDecisions(BaseException):
    """The program is no straight line."""


class NamesAsked(BaseException):
    """The program asks whether a variable is set where paths were joined that differ in it."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What exploring a program may cost: counts, which are the same on every machine and load.

    runs: of the program. nodes: of its graph. work: steps, of which half a million take some two
    seconds.
    """

    runs: int = 256
    nodes: int = 5_000
    work: int = 500_000


@dataclass(slots=True)
class Report:
    """What exploring a program found. work: as Budget counts it; pruned: tests whose outcome was
    known, with their lines; deopt: the budget that was spent, if one was; unmerged: why paths that
    were merged did not fit together, if so.
    """

    n_runs: int = 1
    work: int = 0
    pruned: tuple[str, ...] = ()
    deopt: str = ""
    unmerged: str = ""


@dataclass(frozen=True, slots=True)
class Widened:
    """What a run was made to forget at a statement, so that it goes on for another too.

    names: variables with the number of their stream, and the symbols that stand for them.
    """

    n_events: int  # lines before
    names: tuple[tuple[int, Symbol, Unsure], ...]
    facts: Mapping[Any, bool]


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
    """Goes on with a segment. mapped: what stands for its symbols; None: they themselves."""

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
                name: None if given is None else before.get(given, given)
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


class Exploration:
    """All that the runs of one program have found."""

    def __init__(
        self, budget: Budget, asked: Collection[str | None] = (), is_merging: bool = True
    ) -> None:
        self.namer = Namer()
        self.is_merging = is_merging
        self.asked = set(asked)  # variables that keep apart the paths that set them and do not
        self.unsure: set[str | None] = set()  # those of which paths were joined that differ so
        self.budget = budget
        self.entry = Segment(0)
        self.segments = [self.entry]
        self.points: dict[Shape, list[Segment]] = {}
        self.left: list[Unexplored] = []
        self.n_runs = 0
        self.n_nodes = 0
        self.work = 0
        self.pruned: dict[str, None] = {}  # tests whose outcome was known

    def segment(self, snapshot: Snapshot | None = None) -> Segment:
        self.segments.append(Segment(len(self.segments), snapshot=snapshot))
        return self.segments[-1]

    def ask(self, names: Iterable[str | None]) -> None:
        """From now on paths are joined only where they agree on whether these are set."""
        self.asked.update(names)
        if self.asked & self.unsure:
            raise NamesAsked

    def is_joined(self, ours: Snapshot, theirs: Snapshot) -> bool:
        """Whether no variable keeps the two apart; if so, they are taken to be joined."""
        unsure = unsure_names(ours, theirs)
        if unsure & self.asked:
            return False
        self.unsure |= unsure
        return True

    def run(self, once: Callable[[Path], None]) -> str:
        """Runs the program until every arm is explored; else gives the budget that was spent."""
        path = Path(self, (), (), self.entry)
        while True:
            self.n_runs += 1
            self.work += RUN
            once(path)
            item = self._next()
            if item is None:
                return ""
            spent = self.spent()
            if spent:
                self.left.append(item)
                return spent
            path = Path(self, item.segments, item.answers, item.arm)

    def _next(self) -> Unexplored | None:
        """An arm that something leads to: where a wider segment was begun, others may not be."""
        reached = reached_from(self.entry)
        for n in range(len(self.left) - 1, -1, -1):
            if self.left[n].arm.number in reached:
                return self.left.pop(n)
        self.left.clear()
        return None

    def spent(self) -> str:
        """What of the budget is used up, if it is."""
        budget = self.budget
        if self.n_runs >= budget.runs:
            return f"more than {budget.runs} paths through the program"
        if self.n_nodes > budget.nodes:
            return f"more than {budget.nodes} nodes"
        if self.work > budget.work:
            return f"more than {budget.work} steps of tracing"
        return ""


class Path:
    """One run: what it repeats, and the segment it goes on with."""

    def __init__(
        self,
        exploration: Exploration,
        segments: tuple[Segment, ...],
        answers: tuple[bool, ...],
        arm: Segment,
    ) -> None:
        self.exploration = exploration
        self._repeated = [node for segment in segments for node in segment.nodes]
        self.widened = {
            segment.widened.n_events: segment.widened
            for segment in segments
            if segment.widened is not None
        }
        self._answers = answers
        self._n_nodes = 0
        self.n_answered = 0
        self.segments = [*segments, arm]
        self.is_publishing = False

    @property
    def is_fresh(self) -> bool:
        """Whether it is past what other runs have done."""
        return self.n_answered == len(self._answers)

    @property
    def answers(self) -> tuple[bool, ...]:
        """Those given so far."""
        return self._answers[: self.n_answered]

    @property
    def current(self) -> Segment:
        return self.segments[-1]

    def retired(self) -> set[int]:
        """Streams that are published already."""
        return {number for segment in self.segments for number in segment.retired}

    # -- nodes ----------------------------------------------------------------------------

    def repeat(self) -> Node:
        """The next node of the run that this one repeats."""
        if self._n_nodes >= len(self._repeated):
            raise TraceError(
                "the program does something else when it is traced again",
                hint="it depends on time, randomness or state outside; pass such values as "
                "arguments",
            )
        self._n_nodes += 1
        self.exploration.work += REPEATED
        return self._repeated[self._n_nodes - 1]

    def add(self, node: Node) -> None:
        """A new node; of those that a run adds by itself, no run that repeats it knows."""
        self.exploration.n_nodes += 1
        self.exploration.work += BUILT
        nodes = self.current.published if self.is_publishing else self.current.nodes
        nodes.append(node)

    # -- decisions ------------------------------------------------------------------------

    def answer(self, test: Symbol, loc: Loc | None) -> bool | None:
        """Which path the run takes at a test; None where the budget allows none."""
        if not self.is_fresh:
            self.n_answered += 1
            return self._answers[self.n_answered - 1]
        explored = self.exploration
        then, orelse = explored.segment(), explored.segment()
        self.current.end = Branch(test, then, orelse, loc)
        before = tuple(self.segments)
        explored.left.append(Unexplored(before, (*self._answers, False), orelse))
        if len(self._answers) % SPENT_EVERY == SPENT_EVERY - 1 and explored.spent():
            explored.left.append(Unexplored(before, (*self._answers, True), then))
            return None  # else a loop that is no loop in the graph would go on for ever
        self._answers = (*self._answers, True)
        self.n_answered += 1
        self.segments.append(then)
        return True

    # -- merging --------------------------------------------------------------------------

    def reach(self, snapshot: Snapshot, loc: Loc | None) -> bool:
        """Comes to a statement; whether another run goes on from here in this one's place."""
        self.exploration.work += len(snapshot.whole.shape)
        known = self.exploration.points.setdefault(snapshot.whole.shape, [])
        for segment in reversed(known):
            assert segment.snapshot is not None
            self.exploration.work += COMPARED
            mapped = match(segment.snapshot, snapshot)
            if mapped is not None and self.exploration.is_joined(segment.snapshot, snapshot):
                is_back = segment in self.segments
                self.current.end = Goto(segment, mapped, is_back, loc)
                return True
        following = self.exploration.segment(snapshot)
        self.current.end = Goto(following)
        self.segments.append(following)
        known.append(following)
        return False

    def widening(self, snapshot: Snapshot) -> tuple[Segment, Widening] | None:
        """A segment that this run could go on for too, and how."""
        for segment in reversed(self.exploration.points.get(snapshot.whole.shape, [])):
            assert segment.snapshot is not None
            self.exploration.work += COMPARED
            if segment.instead is not None:
                continue
            if match(segment.snapshot, snapshot) is not None:
                if self.exploration.is_joined(segment.snapshot, snapshot):
                    return None  # else each turn of a loop would begin a wider one
                continue
            widening = widen(segment.snapshot, snapshot)
            if widening is not None and self.exploration.is_joined(segment.snapshot, snapshot):
                return segment, widening
        return None

    def replace(
        self, narrow: Segment, snapshot: Snapshot, widened: Widened, loc: Loc | None
    ) -> None:
        """Begins a wider segment, which is gone to instead of a narrow one from now on.

        Where what is wider here does not fit the narrow one after all, both stay.
        """
        known = self.exploration.points.setdefault(snapshot.whole.shape, [])
        assert narrow.snapshot is not None
        mapped = match(snapshot, narrow.snapshot)
        following = self.exploration.segment(snapshot)
        following.widened = widened
        if mapped is not None:
            narrow.instead = Goto(following, mapped, False, loc)
            known.remove(narrow)
        given: Mapped = {symbol.name: unsure.given for _, symbol, unsure in widened.names}
        self.current.end = Goto(following, given, narrow in self.segments, loc)
        self.segments.append(following)
        known.append(following)

    def retire(self, dead: tuple[int, ...]) -> None:
        """Takes note of streams that the nodes just added publish."""
        self.current.retired += dead

    def stop(self) -> None:
        """The last node ends the program."""
        self.current.end = Stop()


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
