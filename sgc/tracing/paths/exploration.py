"""What exploring a program has found: the segments of its paths, the states in which paths merge,
and the arms that are left. `explore.py` has how runs take the paths.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from sgc.core.places import user_loc
from sgc.core.stops import INTERPRET
from sgc.core.symbols import Namer
from sgc.errors import TraceError
from sgc.ir.graph import Loc, Node, Ref
from sgc.tracing.paths.segments import (
    Goto,
    Segment,
    Unexplored,
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
    match,
    unsure_names,
)

# The cost of exploring, in steps of some 4 microseconds, fitted over random programs: one step
# compares a value where paths may merge. Values that grow in a loop cost steps rather than nodes.
REPEATED, BUILT, RUN = 25, 60, 700  # for a repeated node, a new node, a run
COMPARED = 4  # for comparing another state of the same shape
UNMERGED = 500  # nodes of one run, after which waiting pieces become code
APART = 3  # paths that differ in plain values and stay apart; one more, and the values are widened
OPENED_AFTER = 20_000  # steps, after which large forks are opened
PATIENCE = 30_000  # steps, after which even two such paths are widened


class PathEnd(BaseException):
    """Ends a run whose path has merged with another; the program's own handlers do not catch it."""


class MustExplore(BaseException):
    """Ends a straight-line trace: the program has decisions, or may have long loops."""


class NamesAsked(BaseException):
    """The program tests whether a variable is set, after paths merged that differ in this."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits on exploring a program: counts, which are the same on every machine and load.

    runs: of the program. nodes: of its graph. work: in steps; a million take some 5 to 7 s.
    """

    runs: int = 256
    nodes: int = 5_000
    work: int = 1_000_000


# Lines of Python that tracing may run, a million of which take some 8 to 20 s. A call, which can be
# interpreted instead, does not wait as long.
MAX_LINES, MAX_LINES_OF_CALL = 3_000_000, 600_000

# The steps of a trace without live objects, before one with live objects is tried, which takes less
# time if there is much data; only if that fails, the first goes on.
WORK_ALONE = 65_000
WORK_LIVE = 400_000  # one with live objects whose paths merge takes less
WORK_OF_CALL = 1_200_000  # of a program that is called; the corpus' programs take less


@dataclass(slots=True)
class Steps:
    """The steps of all runs of a trace together. most: their limit, if there is another way to
    trace the program."""

    most: int | None = None
    n: int = 0

    def refuse_more(self, program: str, where: str) -> None:
        """Stops a trace that has reached its limit."""
        if self.most is not None and self.n >= self.most:
            raise TraceError(f"{program} has more than {self.most} steps of tracing", where=where)


@dataclass(slots=True)
class Lines:
    """The lines of the program's Python that all its traces run. most: their limit."""

    most: int = MAX_LINES
    n: int = 0

    def over(self) -> TraceError | None:
        """Counts a line; returns the error if the limit is reached."""
        self.n += 1
        if self.n <= self.most:
            return None
        return TraceError(
            f"tracing takes more than {self.most} lines of Python",
            where=str(user_loc() or ""),
            hint="compute what depends on no reply once, outside of the program, or in a tool; or "
            + INTERPRET,
        )


@dataclass(slots=True)
class Report:
    """The outcome of exploring a program. work: in steps, as in Budget; pruned: tests whose outcome
    was known, with their lines; deopt: the limit that was reached, if any; unmerged: why merged
    paths did not fit together, if they did not.
    """

    n_runs: int = 1
    work: int = 0
    pruned: tuple[str, ...] = ()
    deopt: str = ""
    unmerged: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """What an exploration had found before a run, and the arm that the run takes."""

    arm: Segment
    namer: Namer
    left: tuple[Unexplored, ...]
    names: tuple[frozenset[str | None], ...]
    counts: tuple[int, ...]
    pruned: tuple[str, ...]
    n_segments: int
    n_redirected: int


class Exploration:
    """The segments and states that the runs of one program have found."""

    def __init__(
        self,
        budget: Budget,
        asked: Collection[str | None] = (),
        is_merging: bool = True,
        kept: Iterable[str] = (),
        is_nearest_first: bool = True,
        may_resume: bool = False,
        has_waiting: Callable[[], bool] = lambda: False,
        may_open: Callable[[], bool] = lambda: False,
    ) -> None:
        self.namer, self.is_nearest_first = Namer(), is_nearest_first
        self._may_resume, self._has_waiting = may_resume, has_waiting
        self._may_open = may_open  # whether exploring can start anew with large forks opened
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
        # The segments reachable from the entry; None: must be computed again.
        self.reached: dict[int, Segment] | None = {self.entry.number: self.entry}
        self.unreached: set[int] = set()  # segments unreachable when a state was widened
        self.n_runs = self.n_nodes = self.work = 0
        self.pruned: dict[str, None] = {}  # tests whose outcome was known
        self.run: list[Segment] = []  # the segments of the current run
        self.blamed: set[str] = set()  # symbols that stopped a trace
        self.hidden: Counter[str] = Counter()  # how often each line held what cannot be compared
        self._n_redirected = 0
        self._n_nodes_before = 0  # before the current run
        self.is_hasty = False  # whether exploring was ended so that waiting pieces become code

    # -- taking back ------------------------------------------------------------------------

    def mark(self, arm: Segment) -> Mark:
        """The state to go back to if the run that takes an arm cannot be used."""
        return Mark(
            arm, self.namer.copy(), tuple(self.left),
            (frozenset(self.kept), frozenset(self.asked), frozenset(self.unsure)),
            (self.n_runs, self.n_nodes, self.work), tuple(self.pruned),
            len(self.segments), self._n_redirected,
        )  # fmt: skip

    def take_back(self, mark: Mark) -> bool:
        """Drops what a run has added. Returns False if that is not possible, or if the run has
        redirected segments of other runs: then exploring must start anew."""
        if not self._may_resume or self._n_redirected > mark.n_redirected:
            return False
        for segment in self.segments[mark.n_segments :]:
            if segment.snapshot is not None:
                self._unpoint(segment, segment.snapshot)
        del self.segments[mark.n_segments :]
        self.unreached &= {*range(mark.n_segments)}
        arm = mark.arm
        arm.nodes, arm.published, arm.retired, arm.end = [], [], (), None
        self.namer, self.left, self.pruned = mark.namer, [*mark.left], dict.fromkeys(mark.pruned)
        kept, asked, unsure = mark.names
        self.kept, self.asked, self.unsure = {*kept}, {*asked}, {*unsure}  # type: ignore[arg-type]
        self.n_runs, self.n_nodes, self.work = mark.counts
        return True

    def _unpoint(self, segment: Segment, snapshot: Snapshot) -> None:
        for known in (
            self.points.get(snapshot.whole.shape, []),
            *(self.alike[snapshot.skeleton(view)] for view in views(snapshot)),
        ):
            known[:] = [each for each in known if each is not segment]

    # -- finding ----------------------------------------------------------------------------

    def begin(self, run: list[Segment]) -> None:
        """Begins a run. run: its segments."""
        self.run, self._n_nodes_before = run, self.n_nodes
        self.n_runs += 1
        self.work += RUN

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

    def lead(self, target: Segment, mapped: Mapped, loc: Loc | None) -> Goto:
        """The Goto to a segment, if needed through a bridge segment that makes the arguments."""
        nodes: list[Node] = []
        found: Mapped = {}
        for name, given in mapped.items():
            if isinstance(given, (Text, Items, Cast)):
                operand = operand_of(given, self.namer, loc, nodes)
                assert isinstance(operand, Ref)
                given = operand.name
            found[name] = given
        way = Goto(target, found, loc)
        if not nodes:
            return way
        bridge = self.segment()
        bridge.nodes, bridge.end = nodes, way
        self.n_nodes += len(nodes)
        return Goto(bridge)

    def redirect(self, narrow: Segment, wide: Segment, view: View | None, loc: Loc | None) -> bool:
        """Redirects a segment to a wider segment, if that one fits; returns whether it does."""
        assert narrow.snapshot is not None
        assert wide.snapshot is not None
        mapped = match(wide.snapshot, narrow.snapshot, view)
        if mapped is None or not self.is_joined(wide.snapshot, narrow.snapshot):
            return False
        way = self.lead(wide, mapped, loc)
        if way.mapped is None:  # the bridge takes all symbols of the narrow segment
            way.target.snapshot = narrow.snapshot
            slots = slots_of(narrow.snapshot)
            way = Goto(way.target, {slot.name: slot.name for slot in slots}, loc)
        narrow.instead, self.reached = way, None  # its successors may become unreachable
        self._n_redirected += 1
        self.points[narrow.snapshot.whole.shape].remove(narrow)
        return True

    def forget_unreached(self) -> None:
        """Removes unreachable segments from those that widening considers."""
        self.unreached = {*range(len(self.segments))} - reached_from(self.entry).keys()

    def remember_reached(self) -> dict[int, Segment]:
        """The reachable segments, which widening considers again: the run that has just ended may
        have merged into a segment that was unreachable before."""
        if self.reached is None:
            self.reached = reached_from(self.entry)
        self.unreached -= self.reached.keys()
        return self.reached

    @property
    def apart(self) -> int:
        """How many paths that differ in plain values may stay apart."""
        return APART if self.work < PATIENCE else 1

    def ask(self, names: Iterable[str | None]) -> None:
        """Lets paths merge from now on only if they agree on whether these variables are set."""
        self.asked.update(names)
        if self.asked & self.unsure:
            raise NamesAsked

    def is_joined(self, ours: Snapshot, theirs: Snapshot) -> bool:
        """Whether no variable keeps two states apart; notes the variables on which they differ."""
        unsure = unsure_names(ours, theirs)
        if unsure & self.asked:
            return False
        self.unsure |= unsure
        return True

    def forget(self) -> None:
        """Drops what was found, so that it is freed at once in spite of its cycles."""
        self.run = []
        for each in self.segments:
            each.nodes, each.published = [], []
            each.snapshot = each.end = each.widened = each.instead = None

    def needed(self) -> set[str]:
        """The labels of the widened leaves whose values stopped the run, or of all widened leaves
        if none of them is to blame.
        """
        blamed = {label for name, label in self._forgotten().items() if name in self.blamed}
        return (blamed - self.kept) or self.labels()

    def labels(self) -> set[str]:
        """The labels of all leaves that were widened in any run."""
        widened = (each.widened for each in self.segments if each.widened is not None)
        return {leaf.label for each in widened for _, _, leaf in each.leaves}

    def _forgotten(self) -> dict[str, str]:
        """The labels of leaves that were widened in the run, by the symbols that replace them."""
        widened = (segment.widened for segment in self.run if segment.widened is not None)
        return {symbol.name: leaf.label for each in widened for _, symbol, leaf in each.leaves}

    @property
    def takes_first(self) -> bool:
        """Whether a join takes the first children; the interpreter might take other children."""
        return any(node.op == "join_first" for each in self.segments for node in each.nodes)

    def spent(self) -> str:
        """The limit of the budget that was reached; empty if none was."""
        budget = self.budget
        if self.work > OPENED_AFTER and self._may_open():
            return f"more than {OPENED_AFTER} steps around a fork into many streams"
        n_added = self.n_nodes - self._n_nodes_before
        if n_added > UNMERGED and self._may_resume and self._has_waiting():
            self.is_hasty = True
            return f"more than {UNMERGED} nodes of one path"
        if self.n_runs >= budget.runs:
            return f"more than {budget.runs} paths through the program"
        if self.n_nodes > budget.nodes:
            return f"more than {budget.nodes} nodes"
        if self.work > budget.work:
            return f"more than {budget.work} steps of tracing"
        return ""
