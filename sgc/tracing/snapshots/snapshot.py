"""Snapshots: everything that the rest of a run depends on, at the beginning of a statement.

Two runs at the same place whose snapshots have the same shape continue alike; if they hold
different abstract values, the block where they merge takes a parameter. A snapshot has the live
variables of every running function of the user's, the streams that these variables reach, and the
loops that the functions are in. A run with something that cannot be inspected does not merge; not
merging is always correct.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import pairwise
from typing import Any, NamedTuple

from sgc.core.symbols import Symbol
from sgc.ir.graph import Loc
from sgc.ir.types import Type
from sgc.tracing.kinds.held import Shared
from sgc.tracing.kinds.row_types import joined
from sgc.tracing.kinds.text_types import Known
from sgc.tracing.snapshots.leaves import Given, Leaf, bind, is_alike, named_in, symbols_of

Shape = tuple[object, ...]
_LONE_SHAPES: set[Shape] = {("%",)}


class View(Enum):
    """How lists may be widened: item by item, or each as a whole of any length."""

    ITEMS = auto()
    LISTS = auto()


@dataclass(frozen=True, slots=True)
class Part:
    """A value: its shape, and the symbols in it in order."""

    shape: Shape
    slots: tuple[Symbol, ...]

    @property
    def lone_type(self) -> Type | None:
        """The type of the part, if it is a single abstract value."""
        is_lone = len(self.slots) == 1 and self.shape in _LONE_SHAPES
        return self.slots[0].type if is_lone else None


class Variable(NamedTuple):
    """A variable in a snapshot; without a name, the beginning of a function's frame."""

    start: int
    function: str
    name: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """names: for each stream reached, its variables that are single abstract values; own: the names
    set on it; kept: objects compared by id, kept alive so that no id is reused; starts: symbols
    that cannot become parameters, since what began there is still open; known: what is known of
    symbols beyond their types; leaves: the values of `whole` that may be widened; loc: where it is;
    variables: those of the frames, each with its function and where it begins in the whole.
    """

    whole: Part
    names: tuple[Mapping[str | None, Part], ...]
    own: tuple[tuple[str | None, ...], ...]
    facts: Mapping[Any, bool]
    dead: tuple[int, ...]  # the numbers of streams that nothing reaches any more
    kept: tuple[Any, ...] = ()
    starts: frozenset[str] = frozenset()
    known: Mapping[str, Known] = field(default_factory=dict)
    leaves: tuple[Leaf, ...] = ()
    loc: Loc | None = None
    variables: tuple[Variable, ...] = ()
    shared: Shared = field(default_factory=dict)  # the objects that symbols hold copies of
    inside: Mapping[int, frozenset[object]] = field(default_factory=dict)  # objects also elsewhere
    # Caches of `view` and `fixed`: a snapshot is compared with many others.
    _seen: dict[View, list[tuple[int, Leaf]]] = field(default_factory=dict, compare=False)
    _fixed: dict[View, list[Symbol]] = field(default_factory=dict, compare=False)

    def view(self, view: View) -> list[tuple[int, Leaf]]:
        """The leaves that a view may widen, with their numbers."""
        if view not in self._seen:
            self._seen[view] = self._look(view)
        return self._seen[view]

    def _look(self, view: View) -> list[tuple[int, Leaf]]:
        found, end = [], 0
        for number, leaf in enumerate(self.leaves):
            is_whole = leaf.is_list and (leaf.data is not None or leaf.symbol is not None)
            if view is View.ITEMS:
                if not leaf.is_list:
                    found.append((number, leaf))
            elif leaf.tokens[0] >= end and (is_whole or not leaf.is_list):
                found.append((number, leaf))
                end = leaf.tokens[1]
        return found

    def skeleton(self, view: View) -> Shape:
        """The shape without the leaves' values: states with the same skeleton may be widened."""
        leaves = [leaf for _, leaf in self.view(view)]
        ends = [(0, 0), *(leaf.tokens for leaf in leaves), (len(self.whole.shape), 0)]
        between = (self.whole.shape[end:start] for (_, end), (start, _) in pairwise(ends))
        return (view, tuple(leaf.is_list for leaf in leaves), *between)

    def fixed(self, view: View) -> list[Symbol]:
        """The symbols of `whole` that are in no leaf."""
        if view not in self._fixed:
            ends = [(0, 0), *(leaf.slots for _, leaf in self.view(view))]
            starts = [*(first for first, _ in ends[1:]), len(self.whole.slots)]
            between = zip(ends, starts, strict=True)
            self._fixed[view] = [
                each for (_, end), start in between for each in self.whole.slots[end:start]
            ]
        return self._fixed[view]


@dataclass(frozen=True, slots=True)
class Unsure:
    """A stream's variable that becomes a parameter at a statement.

    number: the stream's number in the snapshot. given: the variable's symbol; None if it is not
    set. is_own: whether the variable is set on the stream itself.
    """

    number: int
    name: str | None
    type: Type
    given: str | None
    is_own: bool
    known: Known | None  # what is known of its value, if it is set


@dataclass(frozen=True, slots=True)
class Widening:
    """How a run's state is widened to include another's: the variables that may have other values
    or be not set, the leaves that differ, by number, with their wider types and whether the program
    may change them, and the facts that hold in both.
    """

    names: tuple[Unsure, ...]
    leaves: tuple[tuple[int, Type, bool], ...]
    facts: Mapping[Any, bool]


# From a symbol's name to its value in another run: a symbol's name there, or the value of a leaf;
# None: it is not set there.
Mapped = dict[str, Given | None]


def match(ours: Snapshot, theirs: Snapshot, view: View | None = None) -> Mapped | None:
    """How `theirs` fits a block that was traced from `ours`; None if it does not.

    view: the view in which they have the same skeleton; None: they have the same shape. A name that
    only `ours` has becomes *not set*. `theirs` must have all facts of `ours`.
    """
    found: Mapped = {}
    if not _pair_wholes(ours, theirs, found, view):
        return None
    for mine, other in zip(ours.names, theirs.names, strict=True):
        if not _match_names(mine, other, found):
            return None
    if any(found.get(start, start) != start for start in ours.starts):
        return None  # a parameter would replace the symbol where something open began
    if not _knows(ours, theirs, found) or not _holds(ours, theirs, found, view):
        return None
    for n, (mine_own, other_own) in enumerate(zip(ours.own, theirs.own, strict=True)):
        if not set(other_own) <= set(mine_own):
            return None
        if (set(mine_own) - set(other_own)) & theirs.names[n].keys():
            return None  # in `theirs`, the name is the trunk's, not this stream's own
    for fact, is_true in ours.facts.items():
        if theirs.facts.get(_moved(fact, found)) is not is_true:
            return None
    return found


def _pair_wholes(ours: Snapshot, theirs: Snapshot, found: Mapped, view: View | None) -> bool:
    if view is None:
        return ours.whole.shape == theirs.whole.shape and _pair(ours.whole, theirs.whole, found)
    return _pair_symbols(ours.fixed(view), theirs.fixed(view), found) and all(
        bind(mine, other, found)
        for (_, mine), (_, other) in zip(ours.view(view), theirs.view(view), strict=True)
    )


def _unlike(
    ours: Snapshot, theirs: Snapshot, found: Mapped, back: Mapped, view: View, kept: Collection[str]
) -> list[tuple[int, Type, bool]] | None:
    """The leaves in which two states differ, by number, with their joined types and whether both
    may be changed; None if the states differ elsewhere, or in leaves that must not be widened.
    """
    if not _pair_symbols(ours.fixed(view), theirs.fixed(view), found):
        return None
    if not _pair_symbols(theirs.fixed(view), ours.fixed(view), back):
        return None
    differing = []
    for (_, mine), (number, other) in zip(ours.view(view), theirs.view(view), strict=True):
        one, two = dict(found), dict(back)
        if is_alike(mine, other) and bind(mine, other, one) and bind(other, mine, two):
            found.update(one)
            back.update(two)
            continue
        type_ = joined(mine.type, other.type)
        if type_ is None or other.label in kept or not (mine.is_movable and other.is_movable):
            return None
        if _are_as_long(mine, other) and (mine.is_shared or other.is_shared):
            return None  # the list does not grow: it holds the same objects, which may change
        differing.append((number, type_, mine.is_own and other.is_own))
    return differing


def _are_as_long(mine: Leaf, other: Leaf) -> bool:
    both = mine.data, other.data
    return None not in both and len({len(each.items) for each in both if each is not None}) == 1


def widen(
    ours: Snapshot, theirs: Snapshot, view: View | None = None, kept: Collection[str] = ()
) -> Widening | None:
    """How to widen the state `theirs` so that it includes `ours`; None if that is not possible.

    view: the view in which they have the same skeleton; None: they have the same shape. kept: the
    labels of leaves that must not be widened.
    """
    found: Mapped = {}
    back: Mapped = {}
    leaves: list[tuple[int, Type, bool]] = []
    if view is not None:
        differing = _unlike(ours, theirs, found, back, view, kept)
        if differing is None:
            return None
        leaves = differing
    elif (
        ours.whole.shape != theirs.whole.shape
        or not _pair(ours.whole, theirs.whole, found)
        or not _pair(theirs.whole, ours.whole, back)
    ):
        return None
    if not _knows(ours, theirs, found):
        return None
    unsure: list[Unsure] = []
    for number, (mine, other) in enumerate(zip(ours.names, theirs.names, strict=True)):
        own, other_own = set(ours.own[number]), set(theirs.own[number])
        for name in dict.fromkeys((*other, *mine)):
            part, there = mine.get(name), other.get(name)
            if part is not None and there is not None:
                if part.shape != there.shape or (name in own) != (name in other_own):
                    return None
                if part.lone_type != there.lone_type:
                    return None
                is_lone = there.lone_type is not None  # then the variable becomes a parameter
                if not is_lone and not (_pair(part, there, found) and _pair(there, part, back)):
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
    if not _holds_all(ours, theirs, found, view, leaves):
        return None
    known_facts = {(_moved(fact, found), is_true) for fact, is_true in ours.facts.items()}
    if view is None:
        staying = {slot.name for slot in theirs.whole.slots}
    else:
        widened = {number for number, _, _ in leaves}
        kept_leaves = (leaf for number, leaf in theirs.view(view) if number not in widened)
        staying = {slot.name for slot in theirs.fixed(view)} | symbols_of(kept_leaves)
    facts = {
        fact: is_true
        for fact, is_true in theirs.facts.items()
        if (fact, is_true) in known_facts and _names_of(fact) <= staying
    }
    return Widening(tuple(unsure), tuple(leaves), facts)


def _known_to_all(runs: Iterable[tuple[Snapshot, Part | None]]) -> Known | None:
    """What is known of a variable in all runs that have set it."""
    found = {run.known.get(part.slots[0].name) for run, part in runs if part is not None}
    return found.pop() if len(found) == 1 else None


def unsure_names(ours: Snapshot, theirs: Snapshot) -> set[str | None]:
    """The variables that are set in only one of two states."""
    pairs = zip(ours.names, theirs.names, strict=True)
    return {name for mine, other in pairs for name in mine.keys() ^ other.keys()}


def _holds(ours: Snapshot, theirs: Snapshot, found: Mapped, view: View | None) -> bool:
    """Whether the values that replace symbols of `ours` hold copies only of the same objects."""
    views = zip(ours.view(view), theirs.view(view), strict=True) if view and theirs.inside else ()
    return all(
        theirs.shared.get(each, _NONE) <= ours.shared.get(name, _NONE)
        for name, given in (found if theirs.shared else {}).items()
        for each in named_in(given)
    ) and all(
        theirs.inside.get(number, _NONE) <= ours.shared.get(leaf.symbol.name, _NONE)
        for (_, leaf), (number, _) in views
        if leaf.symbol is not None
    )


def _holds_all(
    ours: Snapshot,
    theirs: Snapshot,
    found: Mapped,
    view: View | None,
    leaves: Sequence[tuple[int, Type, bool]],
) -> bool:
    """Whether the values of `theirs` hold copies of all objects that the values of `ours` do."""
    if not ours.shared and not ours.inside:
        return True
    pairs = [(name, {*named_in(given)}) for name, given in found.items()]
    for mine, other in zip(ours.names, theirs.names, strict=True):
        pairs += [
            (slot.name, {each.name for each in other[name].slots})
            for name, part in mine.items()
            if name in other
            for slot in part.slots
        ]
    numbers = {number for number, _, _ in leaves}
    views = zip(ours.view(view), theirs.view(view), strict=True) if view is not None else ()
    for (own, leaf), (number, there) in views:
        if number in numbers:
            pairs += [(name, symbols_of([there])) for name in symbols_of([leaf])]
            copied = (theirs.shared.get(name, _NONE) for name in symbols_of([there]))
            if not ours.inside.get(own, _NONE) <= theirs.inside.get(number, _NONE).union(*copied):
                return False
    return all(
        ours.shared.get(name, _NONE) <= _NONE.union(*(theirs.shared.get(n, _NONE) for n in names))
        for name, names in pairs
    )


_NONE: frozenset[object] = frozenset()


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
    return _pair_symbols(part.slots, other.slots, found)


def _pair_symbols(ours: Iterable[Symbol], theirs: Iterable[Symbol], found: Mapped) -> bool:
    return all(
        mine.type == other.type and found.setdefault(mine.name, other.name) == other.name
        for mine, other in zip(ours, theirs, strict=True)
    )


def _knows(ours: Snapshot, theirs: Snapshot, found: Mapped) -> bool:
    """Whether what is known of symbols of `ours` is also known of the values that replace them."""
    for name, known in ours.known.items():
        given = found.get(name)  # None also for a name that is not set, and so is not read
        if given is None:
            continue
        if not isinstance(given, str) or theirs.known.get(given) != known:
            return False
    return True


def _moved(fact: Any, found: Mapped) -> object:
    """A fact of `ours` with the other run's names."""
    fn, args = fact
    return fn, tuple(("ref", _shown(found.get(a[1], a[1]))) if a[0] == "ref" else a for a in args)


def _shown(given: Given | None) -> object:
    return given if isinstance(given, str) else repr(given)  # only values with names have facts
