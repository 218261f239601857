"""Finite-decision replay: a program is run once for every path it can go, and the paths merged.

A run answers the program's tests from a list of answers; where the list ends it goes on by
itself, taking the first arm of each new test and leaving the other for a later run. Where a run
comes to a statement that another has come to in an equal state, it ends: both go on as one. So
the arms of an `if` join after it, the turns of a loop become a loop, and twenty tests in a row
cost twenty runs. Repeating a run must build the same nodes, which is checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from sgc.core.symbols import Namer, Symbol
from sgc.errors import TraceError
from sgc.ir.graph import Loc, Node, Ref
from sgc.tracing.paths.leaves import Cast, Items, Text, operand_of
from sgc.tracing.paths.segments import (
    Branch,
    Goto,
    Segment,
    Stop,
    Unexplored,
    Widened,
    reached_from,
    slots_of,
    views,
)
from sgc.tracing.paths.snapshot import (
    Mapped,
    Shape,
    Snapshot,
    View,
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
APART = 3  # ways that differ in plain values stay apart; one more, and the values are widened


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


class Exploration:
    """All that the runs of one program have found."""

    def __init__(
        self,
        budget: Budget,
        asked: Collection[str | None] = (),
        is_merging: bool = True,
        kept: Iterable[str] = (),
    ) -> None:
        self.namer = Namer()
        self.is_merging = is_merging
        self.kept = set(kept)  # leaves that are not widened, by their labels
        self.asked = set(asked)  # variables that keep apart the paths that set them and do not
        self.unsure: set[str | None] = set()  # those of which paths were joined that differ so
        self.budget = budget
        self.entry = Segment(0)
        self.segments = [self.entry]
        self.points: dict[Shape, list[Segment]] = {}
        self.alike: defaultdict[Shape, list[Segment]] = defaultdict(list)  # by their skeletons
        self.left: list[Unexplored] = []
        self.n_runs = 0
        self.n_nodes = 0
        self.work = 0
        self.pruned: dict[str, None] = {}  # tests whose outcome was known
        self.path: Path | None = None  # of the run that is going on
        self.blamed: set[str] = set()  # symbols that a trace was stopped for

    def segment(self, snapshot: Snapshot | None = None) -> Segment:
        self.segments.append(Segment(len(self.segments), snapshot=snapshot))
        return self.segments[-1]

    def point(self, segment: Segment) -> None:
        """Takes note of a segment that others may go on with."""
        assert segment.snapshot is not None
        self.points.setdefault(segment.snapshot.whole.shape, []).append(segment)
        for view in views(segment.snapshot):
            self.alike[segment.snapshot.skeleton(view)].append(segment)

    def keep(self, label: str) -> None:
        """From now on a leaf is not widened."""
        self.kept.add(label)

    def lead(self, target: Segment, mapped: Mapped, is_back: bool, loc: Loc | None) -> Goto:
        """The way to a segment; through one that puts texts together, where it is given such."""
        nodes: list[Node] = []
        found: Mapped = {}
        for name, given in mapped.items():
            if isinstance(given, (Text, Items, Cast)):
                operand = operand_of(given, self.namer, loc, nodes)
                assert isinstance(operand, Ref)
                given = operand.name
            found[name] = given
        way = Goto(target, found, is_back, loc)
        if not nodes:
            return way
        bridge = self.segment()
        bridge.nodes, bridge.end = nodes, way
        self.n_nodes += len(nodes)
        return Goto(bridge)

    def redirect(self, narrow: Segment, wide: Segment, view: View | None, loc: Loc | None) -> bool:
        """From now on a wider segment is gone to instead, if it fits."""
        assert narrow.snapshot is not None
        assert wide.snapshot is not None
        mapped = match(wide.snapshot, narrow.snapshot, view)
        if mapped is None or not self.is_joined(wide.snapshot, narrow.snapshot):
            return False
        way = self.lead(wide, mapped, False, loc)
        if way.mapped is None:  # the bridge is gone to with all that the narrow one was given
            way.target.snapshot = narrow.snapshot
            slots = slots_of(narrow.snapshot)
            way = Goto(way.target, {slot.name: slot.name for slot in slots}, False, loc)
        narrow.instead = way
        self.points[narrow.snapshot.whole.shape].remove(narrow)
        return True

    def forget_unreached(self) -> None:
        """Widening looks at segments that something leads to alone."""
        reached = reached_from(self.entry)
        for known in self.alike.values():
            known[:] = [each for each in known if each.number in reached]

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
            self.path = path
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

    def needed(self) -> set[str]:
        """The labels of the leaves that the run was made to forget, and stopped for; of all that it
        was made to forget, where none of them is to blame.
        """
        blamed = {label for name, label in self._forgotten().items() if name in self.blamed}
        return (blamed - self.kept) or self.labels()

    def labels(self) -> set[str]:
        """The labels of all leaves that any run was made to forget."""
        widened = (each.widened for each in self.segments if each.widened is not None)
        return {leaf.label for each in widened for _, _, leaf in each.leaves}

    def _forgotten(self) -> dict[str, str]:
        """The leaves that the run was made to forget, by the symbols that stand for them."""
        segments = () if self.path is None else self.path.segments
        widened = (segment.widened for segment in segments if segment.widened is not None)
        return {symbol.name: leaf.label for each in widened for _, symbol, leaf in each.leaves}

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
            for segment in (*segments, arm)
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
        for segment, view in self._wide(snapshot):
            assert segment.snapshot is not None
            mapped = match(segment.snapshot, snapshot, view)
            if mapped is not None and self.exploration.is_joined(segment.snapshot, snapshot):
                is_back = segment in self.segments
                self.current.end = self.exploration.lead(segment, mapped, is_back, loc)
                return True
        following = self.exploration.segment(snapshot)
        self.current.end = Goto(following)
        self.segments.append(following)
        self.exploration.point(following)
        return False

    def _alike(self, snapshot: Snapshot, view: View) -> list[Segment]:
        """Segments that differ from a state in leaves, the last first."""
        known = reversed(self.exploration.alike.get(snapshot.skeleton(view), ()))
        found = [segment for segment in known if segment.instead is None]
        self.exploration.work += COMPARED * len(found)
        return found

    def _wide(self, snapshot: Snapshot) -> Iterator[tuple[Segment, View]]:
        """Those of them that are widened already."""
        for view in views(snapshot):
            for segment in self._alike(snapshot, view):
                if segment.widened is not None and segment.widened.leaves:
                    yield segment, view

    def widening(self, snapshot: Snapshot) -> tuple[Segment, Widening, View | None] | None:
        """A segment that this run could go on for too, how, and in which view of them."""
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
                return segment, widening, None
        return self._leaves_widening(snapshot)

    def _leaves_widening(self, snapshot: Snapshot) -> tuple[Segment, Widening, View] | None:
        """Where too many ways differ in leaves alone, the last of them."""
        for segment, view in self._wide(snapshot):
            assert segment.snapshot is not None
            if match(segment.snapshot, snapshot, view) is not None:
                return None
        for view in views(snapshot):
            alike = self._alike(snapshot, view)
            for segment in alike if len(alike) >= APART else ():
                assert segment.snapshot is not None
                widening = widen(segment.snapshot, snapshot, view, self.exploration.kept)
                if widening is not None and self.exploration.is_joined(segment.snapshot, snapshot):
                    return segment, widening, view
        return None

    def replace(
        self,
        narrow: Segment,
        snapshot: Snapshot,
        view: View | None,
        widened: Widened,
        loc: Loc | None,
    ) -> None:
        """Begins a wider segment, which is gone to instead of narrow ones from now on.

        Where what is wider here does not fit a narrow one after all, both stay.
        """
        explored = self.exploration
        following = explored.segment(snapshot)
        following.widened = widened
        is_back = narrow in self.segments
        self.current.end = explored.lead(following, widened.given(), is_back, loc)
        self.segments.append(following)
        explored.redirect(narrow, following, view, loc)
        if view is not None:
            for other in self._alike(snapshot, view):
                explored.redirect(other, following, view, loc)
            explored.forget_unreached()
        explored.point(following)

    def retire(self, dead: tuple[int, ...]) -> None:
        """Takes note of streams that the nodes just added publish."""
        self.current.retired += dead

    def stop(self) -> None:
        """The last node ends the program."""
        self.current.end = Stop()
