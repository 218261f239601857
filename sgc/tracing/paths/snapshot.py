"""What the rest of a run depends on, at the beginning of a statement, in a form to compare.

Two runs at the same place whose snapshots have the same shape go on alike; where they hold
different abstract values, the block that both go on with takes a parameter. Taken of the live
variables of every running function of the user's, the streams they reach, and the loops they are
in. What cannot be looked into makes a run go on alone, which is always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sgc.core.symbols import Symbol
from sgc.ir.types import Type
from sgc.tracing.values.text_types import Known

if TYPE_CHECKING:
    pass

Shape = tuple[object, ...]
_LONE_SHAPES: set[Shape] = {("%",)}


@dataclass(frozen=True, slots=True)
class Part:
    """A value: its shape, and the symbols in it in order."""

    shape: Shape
    slots: tuple[Symbol, ...]

    @property
    def lone_type(self) -> Type | None:
        """The type of what is one abstract value and nothing more."""
        is_lone = len(self.slots) == 1 and self.shape in _LONE_SHAPES
        return self.slots[0].type if is_lone else None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """names: of each stream reached, its variables that are one abstract value; own: those set
    on it; kept: what is known by its identity, so that nothing else comes to have it; starts:
    symbols that stay what they are, since what began there is still going on; known: what is
    known of symbols beyond their types.
    """

    whole: Part
    names: tuple[Mapping[str | None, Part], ...]
    own: tuple[tuple[str | None, ...], ...]
    facts: Mapping[Any, bool]
    dead: tuple[int, ...]  # streams nothing reaches any more, by number
    kept: tuple[Any, ...] = ()
    starts: frozenset[str] = frozenset()
    known: Mapping[str, Known] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unsure:
    """A variable that is a value of its own from a statement on.

    number: of the stream among those of the snapshot. given: the symbol that it was, None where
    it was not set. is_own: whether it is set on the stream itself.
    """

    number: int
    name: str | None
    type: Type
    given: str | None
    is_own: bool
    known: Known | None  # where it is set


@dataclass(frozen=True, slots=True)
class Widening:
    """What lets a run go on for another one too: its variables that may not be set, or may be
    other values than they are here, and the facts that both know.
    """

    names: tuple[Unsure, ...]
    facts: Mapping[Any, bool]


Mapped = dict[str, str | None]  # a symbol's name to that of another run; None: not set there


def match(ours: Snapshot, theirs: Snapshot) -> Mapped | None:
    """How `theirs` fits a block that was traced from `ours`; None if it does not.

    A name that ours has and theirs has not becomes *not set*. Facts that ours relies on must be
    known to theirs.
    """
    found: Mapped = {}
    if ours.whole.shape != theirs.whole.shape or not _pair(ours.whole, theirs.whole, found):
        return None
    for mine, other in zip(ours.names, theirs.names, strict=True):
        if not _match_names(mine, other, found):
            return None
    if any(found.get(start, start) != start for start in ours.starts):
        return None  # a parameter would stand for where it began too
    if not _knows(ours, theirs, found):
        return None
    for n, (mine_own, other_own) in enumerate(zip(ours.own, theirs.own, strict=True)):
        if not set(other_own) <= set(mine_own):
            return None
        if (set(mine_own) - set(other_own)) & theirs.names[n].keys():
            return None  # there it is the trunk's, and not shown as this stream's
    for fact, is_true in ours.facts.items():
        if theirs.facts.get(_moved(fact, found)) is not is_true:
            return None
    return found


def widen(ours: Snapshot, theirs: Snapshot) -> Widening | None:
    """How a run in the state `theirs` can go on for one in the state `ours` too, knowing less."""
    found: Mapped = {}
    back: Mapped = {}
    if ours.whole.shape != theirs.whole.shape or not _pair(ours.whole, theirs.whole, found):
        return None
    if not _pair(theirs.whole, ours.whole, back) or not _knows(ours, theirs, found):
        return None
    unsure: list[Unsure] = []
    for number, (mine, other) in enumerate(zip(ours.names, theirs.names, strict=True)):
        own, other_own = set(ours.own[number]), set(theirs.own[number])
        for name in dict.fromkeys((*other, *mine)):
            part, there = mine.get(name), other.get(name)
            if part is not None and there is not None:
                if part.shape != there.shape or (name in own) != (name in other_own):
                    return None
                if not _pair(part, there, found):
                    return None
                if there.lone_type is None and not _pair(there, part, back):
                    return None
            known = there or part
            assert known is not None
            type_ = known.lone_type
            if type_ is not None:
                given = None if there is None else there.slots[0].name
                is_own, both = name in own | other_own, ((ours, part), (theirs, there))
                unsure.append(Unsure(number, name, type_, given, is_own, _known_to_all(both)))
            elif part is None or there is None:
                return None
    known_facts = {(_moved(fact, found), is_true) for fact, is_true in ours.facts.items()}
    kept = {slot.name for slot in theirs.whole.slots}
    facts = {
        fact: is_true
        for fact, is_true in theirs.facts.items()
        if (fact, is_true) in known_facts and _names_of(fact) <= kept
    }
    return Widening(tuple(unsure), facts)


def _known_to_all(runs: Iterable[tuple[Snapshot, Part | None]]) -> Known | None:
    """What is known of a variable in all runs that have set it."""
    found = {run.known.get(part.slots[0].name) for run, part in runs if part is not None}
    return found.pop() if len(found) == 1 else None


def unsure_names(ours: Snapshot, theirs: Snapshot) -> set[str | None]:
    """Variables that are set in one of two runs that may go on as one, and not in the other."""
    pairs = zip(ours.names, theirs.names, strict=True)
    return {name for mine, other in pairs for name in mine.keys() ^ other.keys()}


def _names_of(fact: Any) -> set[str]:
    return {arg[1] for arg in fact[1] if arg[0] == "ref"}


def _match_names(
    mine: Mapping[str | None, Part], other: Mapping[str | None, Part], found: Mapped
) -> bool:
    if not other.keys() <= mine.keys():
        return False
    for name, part in mine.items():
        if name in other:
            if part.shape != other[name].shape or not _pair(part, other[name], found):
                return False
        elif part.lone_type is None or found.setdefault(part.slots[0].name, None) is not None:
            return False
    return True


def _pair(part: Part, other: Part, found: Mapped) -> bool:
    return all(
        mine.type == theirs.type and found.setdefault(mine.name, theirs.name) == theirs.name
        for mine, theirs in zip(part.slots, other.slots, strict=True)
    )


def _knows(ours: Snapshot, theirs: Snapshot, found: Mapped) -> bool:
    """Whether what ours relies on is known of the values that take their places."""
    for name, known in ours.known.items():
        given = found.get(name)  # None too where it is not set: then nothing will be read of it
        if given is not None and theirs.known.get(given) != known:
            return False
    return True


def _moved(fact: Any, found: Mapped) -> object:
    """A fact of ours in the names of the other run."""
    fn, args = fact
    return fn, tuple(("ref", found.get(a[1], a[1])) if a[0] == "ref" else a for a in args)
