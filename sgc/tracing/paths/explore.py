"""Finite-decision replay: runs a program once for every path through it, and merges the paths.

A run answers the program's tests from a list of answers. After the list ends, the run takes the
first arm of each new test and leaves the other for a later run. When a run reaches a statement that
another run has reached in an equal state, it ends: the paths merge. So the arms of an `if` join
after it, the turns of a loop become a loop, and twenty tests in a row cost twenty-one runs. Each
run checks that the part that it repeats builds the same nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sgc.core.symbols import Symbol
from sgc.errors import TraceError
from sgc.ir.graph import Loc, Node
from sgc.tracing.paths.apart import is_endless
from sgc.tracing.paths.exploration import BUILT, COMPARED, REPEATED, Exploration, Mark
from sgc.tracing.paths.segments import (
    Branch,
    Goto,
    Segment,
    Stop,
    Unexplored,
    Widened,
    leave,
    reached_from,
    views,
)
from sgc.tracing.snapshots.snapshot import (
    Snapshot,
    View,
    Widening,
    match,
    widen,
)

SPENT_EVERY = 16  # tests of one run between two checks of the budget
LOOKED_EACH = 100_000  # steps between two looks at whether exploring would ever end


def explore(exploration: Exploration, once: Callable[[Path, Mark], bool]) -> str:
    """Runs the program until every arm is explored; returns the limit that was reached, if any.

    once: makes a run and returns whether it stands; if not, the run was taken back to the mark
    before it and must be made again.
    """
    taken, looked_at = Unexplored((), (), exploration.entry, 0), LOOKED_EACH
    while True:
        mark = exploration.mark(taken.arm)
        path = Path(exploration, taken.segments, taken.answers, taken.arm)
        exploration.begin(path.segments)
        if not once(path, mark):
            continue
        item = _next(exploration, path)
        if item is None:
            return ""
        spent = exploration.spent()
        if not spent and exploration.work > looked_at + LOOKED_EACH:
            looked_at = exploration.work
            if is_endless(exploration):
                spent = f"more than {looked_at // LOOKED_EACH * LOOKED_EACH} steps of tracing"
        if spent:
            exploration.left.append(item)
            return spent
        taken = item


def _next(exploration: Exploration, path: Path) -> Unexplored | None:
    """The next arm to explore after a run; a wider segment may have made other arms unreachable. If
    the arm nearest to the entry comes first, the states around an inner loop are widened before the
    loop is explored, so that it is not explored again for each wider state.
    """
    if exploration.reached is not None:  # a run adds only successors of its own segments
        reached_from(*path.built, known=exploration.reached)
    left, known = exploration.left, exploration.remember_reached()
    reached = [n for n, each in enumerate(left) if each.arm.number in known]
    if not reached:
        left.clear()
        return None
    nearest = min(reached, key=lambda n: left[n].n_nodes)
    return left.pop(nearest if exploration.is_nearest_first else reached[-1])


class Path:
    """One run: the segments that it repeats, and the segment that it builds."""

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
        self._may_be_cut = True  # whether the run may end when the budget is spent
        self._n_made = 0  # nodes and answers of this run
        self._visits: dict[object, tuple[int, int]] = {}

    @classmethod
    def beside(cls, path: Path, first: Unexplored, item: Unexplored) -> Path:
        """A path to an arm, begun where another path is: just after the last test of that path,
        whose other arm is `first`. The new path repeats what follows the test.
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
        """The segments that the run has built or begun to build."""
        return self.segments[self._n_before :]

    @property
    def current(self) -> Segment:
        return self.segments[-1]

    def retired(self) -> set[int]:
        """The streams that are published already."""
        return {number for segment in self.segments for number in segment.retired}

    # -- nodes ----------------------------------------------------------------------------

    def repeat(self) -> Node:
        """The next node that this run repeats."""
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
        if not self.is_publishing:
            self._n_made += 1
        nodes = self.current.published if self.is_publishing else self.current.nodes
        nodes.append(node)

    # -- decisions ------------------------------------------------------------------------

    def answer(self, test: Symbol, loc: Loc | None) -> bool | None:
        """The outcome of a test on this path; None if the budget is spent."""
        if not self.is_fresh:
            self.n_answered += 1
            return self._answers[self.n_answered - 1]
        self._n_made += 1
        explored = self.exploration
        then, orelse = explored.segment(), explored.segment()
        self.current.end = Branch(test, then, orelse, loc)
        before, n_nodes = tuple(self.segments), sum([len(each.nodes) for each in self.segments])
        explored.left.append(Unexplored(before, (*self._answers, False), orelse, n_nodes))
        is_asked = self._may_be_cut and len(self._answers) % SPENT_EVERY == SPENT_EVERY - 1
        if is_asked and explored.spent():
            explored.left.append(Unexplored(before, (*self._answers, True), then, n_nodes))
            return None  # otherwise a loop that does not merge would run forever
        self._answers = (*self._answers, True)
        self.n_answered += 1
        self.segments.append(then)
        return True

    # -- merging --------------------------------------------------------------------------

    def n_visits(self, place: object) -> int:
        """How often the run has come to a place without a node or test in between, this time
        included: such turns of a loop are the same on every path that comes here."""
        n_made, n_visits = self._visits.get(place, (self._n_made, 0))
        n_visits = n_visits + 1 if n_made == self._n_made else 1
        self._visits[place] = self._n_made, n_visits
        return n_visits

    def cut(self) -> bool:
        """Ends the run at a statement if the work is spent; what follows is left."""
        explored = self.exploration
        if explored.work <= explored.budget.work or not self._may_be_cut:
            return False
        following = explored.segment()
        self.current.end = Goto(following)
        n_nodes = sum([len(each.nodes) for each in self.segments])
        explored.left.append(Unexplored(tuple(self.segments), self.answers, following, n_nodes))
        return True

    def reach(self, snapshot: Snapshot, loc: Loc | None) -> bool:
        """Called when the run reaches a statement; returns whether its path merges with another."""
        self.exploration.work += len(snapshot.whole.shape)
        known = self.exploration.points.setdefault(snapshot.whole.shape, [])
        for segment in reversed(known):
            assert segment.snapshot is not None
            self.exploration.work += COMPARED
            mapped = match(segment.snapshot, snapshot)
            if mapped is not None and self.exploration.is_joined(segment.snapshot, snapshot):
                self.current.end = Goto(segment, mapped, loc)
                return True
        for segment, view in self._wide(snapshot):
            assert segment.snapshot is not None
            mapped = match(segment.snapshot, snapshot, view)
            if mapped is not None and self.exploration.is_joined(segment.snapshot, snapshot):
                self.current.end = self.exploration.lead(segment, mapped, loc)
                return True
        following = self.exploration.segment(snapshot)
        self.current.end = Goto(following)
        self.segments.append(following)
        self.exploration.point(following)
        return False

    def _alike(self, snapshot: Snapshot, view: View) -> list[Segment]:
        """Segments that differ from a state only in leaves, the latest first."""
        known = reversed(self.exploration.alike.get(snapshot.skeleton(view), ()))
        unreached = self.exploration.unreached
        found = [each for each in known if each.instead is None and each.number not in unreached]
        self.exploration.work += COMPARED * len(found)
        return found

    def _wide(self, snapshot: Snapshot) -> Iterator[tuple[Segment, View]]:
        """The widened segments that differ from a state only in leaves, with the view."""
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
                    return None  # the paths merge unwidened; else each turn would be widened
                continue
            widening = widen(segment.snapshot, snapshot)
            if widening is not None and self.exploration.is_joined(segment.snapshot, snapshot):
                return segment, widening, None
        return self._leaves_widening(snapshot)

    def _leaves_widening(self, snapshot: Snapshot) -> tuple[Segment, Widening, View] | None:
        """The latest segment that differs only in leaves, if there are too many such segments."""
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
        """Begins a wider segment, to which narrow segments are redirected.

        A narrow segment that does not fit the wider segment after all stays.
        """
        explored = self.exploration
        following = explored.segment(snapshot)
        following.widened = widened
        self.current.end = explored.lead(following, widened.given(), loc)
        self.segments.append(following)
        explored.redirect(narrow, following, view, loc)
        if view is not None:
            for other in self._alike(snapshot, view):
                explored.redirect(other, following, view, loc)
            explored.forget_unreached()
        explored.point(following)

    def retire(self, dead: tuple[int, ...]) -> None:
        """Records the streams that the last added nodes publish."""
        self.current.retired += dead

    def stop(self) -> None:
        """Ends the current segment: its last node ends the program."""
        self.current.end = Stop()

    def leave(self, reason: str, loc: Loc | None) -> None:
        """Ends the current segment: the interpreter goes on."""
        leave(self.current, reason, loc)
