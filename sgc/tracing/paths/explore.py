"""Finite-decision replay: runs a program once for every path through it, and merges the paths.

A run answers the program's tests from a list of answers. After the list ends, it takes the first
arm of each new test and leaves the other for a later run. When a run reaches a statement that
another run has reached in an equal state, it ends: the paths merge. So the arms of an `if` join
after it, the turns of a loop become a loop, and twenty tests in a row cost twenty-one runs. A
repeated run must build the same nodes, which is checked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from sgc.core.symbols import Namer, Symbol
from sgc.errors import TraceError
from sgc.ir.graph import Loc, Node, Ref
from sgc.tracing.paths.segments import (
    Branch,
    Goto,
    Segment,
    Stop,
    Unexplored,
    Widened,
    leave,
    reached_from,
    slots_of,
    views,
)
from sgc.tracing.snapshots.leaves import Cast, Items, Text, operand_of
from sgc.tracing.snapshots.snapshot import (
    Mapped,
    Shape,
    Snapshot,
    View,
    Widening,
    match,
    unsure_names,
    widen,
)

SPENT_EVERY = 16  # tests of one run between two checks of the budget
# The cost of exploring, in steps of some 4 microseconds, fitted over random programs: one step is
# comparing a value where paths may merge. Values that grow in a loop cost steps rather than nodes.
REPEATED, BUILT, RUN = 25, 60, 700  # for a repeated node, a new node, a run
COMPARED = 4  # for comparing another state of the same shape
APART = 3  # paths that differ in plain values stay apart; with one more, the values are widened
PATIENCE = 30_000  # steps, after which two such paths are widened


class PathEnd(BaseException):
    """Ends a run whose path has merged with another; passes the program's own handlers."""


class HasDecisions(BaseException):
    """Ends a straight-line trace: the program has decisions."""


class NamesAsked(BaseException):
    """The program tests whether a variable is set after paths merged that differ in that."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits on exploring a program: counts, which are the same on every machine and load.

    runs: of the program. nodes: of its graph. work: in steps; a million take some 5 to 7 s.
    """

    runs: int = 256
    nodes: int = 5_000
    work: int = 1_000_000


@dataclass(slots=True)
class Report:
    """The outcome of exploring a program. work: in steps, as of Budget; pruned: tests whose outcome
    was known, with their lines; deopt: the limit that was reached, if one was; unmerged: why merged
    paths did not fit together, if they did not.
    """

    n_runs: int = 1
    work: int = 0
    pruned: tuple[str, ...] = ()
    deopt: str = ""
    unmerged: str = ""


class Exploration:
    """The segments and states that the runs of one program have found."""

    def __init__(
        self,
        budget: Budget,
        asked: Collection[str | None] = (),
        is_merging: bool = True,
        kept: Iterable[str] = (),
        is_nearest_first: bool = True,
    ) -> None:
        self.namer, self._is_nearest_first = Namer(), is_nearest_first
        self.is_merging = is_merging
        self.kept = set(kept)  # the labels of leaves that are not widened
        self.asked = set(asked)  # variables: paths that set one never merge with paths that do not
        self.unsure: set[str | None] = set()  # variables that only some of merged paths set
        self.budget = budget
        self.entry = Segment(0)
        self.segments = [self.entry]
        self.points: dict[Shape, list[Segment]] = {}
        self.alike: defaultdict[Shape, list[Segment]] = defaultdict(list)  # by skeleton
        self.left: list[Unexplored] = []
        # The segments that the entry leads to; None: to be found anew.
        self._reached: dict[int, Segment] | None = {self.entry.number: self.entry}
        self.n_runs = self.n_nodes = self.work = 0
        self.pruned: dict[str, None] = {}  # tests whose outcome was known
        self.path: Path | None = None  # of the current run
        self.blamed: set[str] = set()  # symbols that stopped a trace
        self.hidden: Counter[str] = Counter()  # how often each line held what cannot be compared

    def segment(self, snapshot: Snapshot | None = None) -> Segment:
        self.segments.append(Segment(len(self.segments), snapshot=snapshot))
        return self.segments[-1]

    def point(self, segment: Segment) -> None:
        """Registers a segment that other paths may merge into."""
        assert segment.snapshot is not None
        self.points.setdefault(segment.snapshot.whole.shape, []).append(segment)
        for view in views(segment.snapshot):
            self.alike[segment.snapshot.skeleton(view)].append(segment)

    def keep(self, label: str) -> None:
        """Excludes a leaf from widening from now on."""
        self.kept.add(label)

    def lead(self, target: Segment, mapped: Mapped, is_back: bool, loc: Loc | None) -> Goto:
        """The Goto to a segment; through a bridge segment that makes its arguments, if needed."""
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
        """Redirects a segment to a wider one, if that fits; returns whether it does."""
        assert narrow.snapshot is not None
        assert wide.snapshot is not None
        mapped = match(wide.snapshot, narrow.snapshot, view)
        if mapped is None or not self.is_joined(wide.snapshot, narrow.snapshot):
            return False
        way = self.lead(wide, mapped, False, loc)
        if way.mapped is None:  # the bridge takes all symbols of the narrow segment
            way.target.snapshot = narrow.snapshot
            slots = slots_of(narrow.snapshot)
            way = Goto(way.target, {slot.name: slot.name for slot in slots}, False, loc)
        narrow.instead, self._reached = way, None  # what follows it may be reached no more
        self.points[narrow.snapshot.whole.shape].remove(narrow)
        return True

    def forget_unreached(self) -> None:
        """Removes unreachable segments from those that widening considers."""
        reached = reached_from(self.entry)
        for known in self.alike.values():
            known[:] = [each for each in known if each.number in reached]

    @property
    def apart(self) -> int:
        """How many paths that differ in plain values stay apart."""
        return APART if self.work < PATIENCE else 1

    def ask(self, names: Iterable[str | None]) -> None:
        """From now on paths merge only if they agree on whether these variables are set."""
        self.asked.update(names)
        if self.asked & self.unsure:
            raise NamesAsked

    def is_joined(self, ours: Snapshot, theirs: Snapshot) -> bool:
        """Whether no variable keeps two states apart; if so, they count as merged."""
        unsure = unsure_names(ours, theirs)
        if unsure & self.asked:
            return False
        self.unsure |= unsure
        return True

    def run(self, once: Callable[[Path], None]) -> str:
        """Runs the program until every arm is explored; else returns the limit that was reached."""
        path = Path(self, (), (), self.entry)
        while True:
            self.path = path
            self.n_runs += 1
            self.work += RUN
            once(path)
            item = self._next(path)
            if item is None:
                return ""
            spent = self.spent()
            if spent:
                self.left.append(item)
                return spent
            path = Path(self, item.segments, item.answers, item.arm)

    def _next(self, path: Path) -> Unexplored | None:
        """The next reachable arm to explore after a run: a wider segment may have made others
        unreachable. If the nearest to the entry comes first, what is around an inner loop is
        widened before the loop is explored, and not once more for each wider state.
        """
        if self._reached is None:
            self._reached = reached_from(self.entry)
        else:  # a run only adds what follows its own segments
            reached_from(*path.built, known=self._reached)
        reached = [n for n, each in enumerate(self.left) if each.arm.number in self._reached]
        if not reached:
            self.left.clear()
            return None
        nearest = min(reached, key=lambda n: self.left[n].n_nodes)
        return self.left.pop(nearest if self._is_nearest_first else reached[-1])

    def needed(self) -> set[str]:
        """The labels of widened leaves whose values stopped the run; of all widened leaves, if none
        of them is to blame.
        """
        blamed = {label for name, label in self._forgotten().items() if name in self.blamed}
        return (blamed - self.kept) or self.labels()

    def labels(self) -> set[str]:
        """The labels of all leaves that were widened in any run."""
        widened = (each.widened for each in self.segments if each.widened is not None)
        return {leaf.label for each in widened for _, _, leaf in each.leaves}

    def _forgotten(self) -> dict[str, str]:
        """The labels of leaves that were widened in the run, by the symbols that replace them."""
        segments = () if self.path is None else self.path.segments
        widened = (segment.widened for segment in segments if segment.widened is not None)
        return {symbol.name: leaf.label for each in widened for _, symbol, leaf in each.leaves}

    def spent(self) -> str:
        """The limit of the budget that is reached; empty if none is."""
        budget = self.budget
        if self.n_runs >= budget.runs:
            return f"more than {budget.runs} paths through the program"
        if self.n_nodes > budget.nodes:
            return f"more than {budget.nodes} nodes"
        if self.work > budget.work:
            return f"more than {budget.work} steps of tracing"
        return ""


class Path:
    """One run: the segments that it repeats, and the one that it builds."""

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
        self._n_nodes = self.n_answered = 0
        self._n_before = len(segments)
        self.segments = [*segments, arm]
        self.is_publishing = False
        self._may_be_cut = True  # where the budget is spent

    @classmethod
    def beside(cls, path: Path, first: Unexplored, item: Unexplored) -> Path:
        """A path to an arm, taken where another path is: just behind its last test, whose other arm
        is `first`. It repeats what follows that test.
        """
        found = cls(path.exploration, item.segments, item.answers, item.arm)
        found._n_nodes, found.n_answered = first.n_nodes, len(first.answers)
        found._may_be_cut = False
        return found

    @property
    def is_fresh(self) -> bool:
        """Whether the run is past the part that it repeats."""
        return self.n_answered == len(self._answers)

    @property
    def answers(self) -> tuple[bool, ...]:
        """The answers given so far."""
        return self._answers[: self.n_answered]

    @property
    def built(self) -> list[Segment]:
        """The segments that the run has built, or begun to."""
        return self.segments[self._n_before :]

    @property
    def current(self) -> Segment:
        return self.segments[-1]

    def retired(self) -> set[int]:
        """The streams that are published already."""
        return {number for segment in self.segments for number in segment.retired}

    # -- nodes ----------------------------------------------------------------------------

    def repeat(self) -> Node:
        """The next of the nodes that this run repeats."""
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
        """Adds a new node; nodes that publish dead streams are not repeated by later runs."""
        self.exploration.n_nodes += 1
        self.exploration.work += BUILT
        nodes = self.current.published if self.is_publishing else self.current.nodes
        nodes.append(node)

    # -- decisions ------------------------------------------------------------------------

    def answer(self, test: Symbol, loc: Loc | None) -> bool | None:
        """The outcome of a test on this path; None if the budget is spent."""
        if not self.is_fresh:
            self.n_answered += 1
            return self._answers[self.n_answered - 1]
        explored = self.exploration
        then, orelse = explored.segment(), explored.segment()
        self.current.end = Branch(test, then, orelse, loc)
        before, n_nodes = tuple(self.segments), sum([len(each.nodes) for each in self.segments])
        explored.left.append(Unexplored(before, (*self._answers, False), orelse, n_nodes))
        is_asked = self._may_be_cut and len(self._answers) % SPENT_EVERY == SPENT_EVERY - 1
        if is_asked and explored.spent():
            explored.left.append(Unexplored(before, (*self._answers, True), then, n_nodes))
            return None  # else a loop that does not merge would run for ever
        self._answers = (*self._answers, True)
        self.n_answered += 1
        self.segments.append(then)
        return True

    # -- merging --------------------------------------------------------------------------

    def reach(self, snapshot: Snapshot, loc: Loc | None) -> bool:
        """Called when the run reaches a statement; returns whether its path merges with another."""
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
        """Segments that differ from a state only in leaves, the latest first."""
        known = reversed(self.exploration.alike.get(snapshot.skeleton(view), ()))
        found = [segment for segment in known if segment.instead is None]
        self.exploration.work += COMPARED * len(found)
        return found

    def _wide(self, snapshot: Snapshot) -> Iterator[tuple[Segment, View]]:
        """Such segments that are widened already, with the view."""
        for view in views(snapshot):
            for segment in self._alike(snapshot, view):
                if segment.widened is not None and segment.widened.leaves:
                    yield segment, view

    def widening(self, snapshot: Snapshot) -> tuple[Segment, Widening, View | None] | None:
        """A segment that this run can merge with by widening, the widening, and its view."""
        for segment in reversed(self.exploration.points.get(snapshot.whole.shape, [])):
            assert segment.snapshot is not None
            self.exploration.work += COMPARED
            if segment.instead is not None:
                continue
            if match(segment.snapshot, snapshot) is not None:
                if self.exploration.is_joined(segment.snapshot, snapshot):
                    return None  # they merge as they are; else each turn of a loop would be widened
                continue
            widening = widen(segment.snapshot, snapshot)
            if widening is not None and self.exploration.is_joined(segment.snapshot, snapshot):
                return segment, widening, None
        return self._leaves_widening(snapshot)

    def _leaves_widening(self, snapshot: Snapshot) -> tuple[Segment, Widening, View] | None:
        """The latest segment that differs only in leaves, if there are too many of them."""
        for segment, view in self._wide(snapshot):
            assert segment.snapshot is not None
            if match(segment.snapshot, snapshot, view) is not None:
                return None
        for view in views(snapshot):
            alike = [each for each in self._alike(snapshot, view) if each.is_near(snapshot, view)]
            for segment in alike if len(alike) >= self.exploration.apart else ():
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
        """Begins a wider segment, to which narrow ones are redirected from now on.

        A narrow segment that does not fit the wider one after all stays.
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
        """Records the streams that the nodes just added publish."""
        self.current.retired += dead

    def stop(self) -> None:
        """Ends the current segment: its last node ends the program."""
        self.current.end = Stop()

    def leave(self, reason: str, loc: Loc | None) -> None:
        """Ends the current segment: the interpreter goes on."""
        leave(self.current, reason, loc)
