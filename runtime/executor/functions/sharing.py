"""Which of a run's values share a mutable object, such as a list or dict.

A run never mutates its values: code that changes a value returns a new one. If another value holds
the same object, so that in Python it would change too, the run stops with an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum, auto
from fractions import Fraction
from functools import cached_property
from re import Match, Pattern
from typing import Any

from sgc.errors import ProgramError
from sgc.ir.analysis.dependencies import places, uses
from sgc.ir.graph import Graph, Loc, Node
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.functions.once import made_once
from sgc.runtime.executor.functions.unseen import changed_by, unseen_changes
from sgc.runtime.executor.interface.records import held_parts, record_of

_FIXED = (
    str, int, float, bool, type(None), bytes, complex, range, Decimal, Fraction, date, time,
    timedelta, Pattern, Match,
)  # fmt: skip


class Several(list[Any]):
    """The values that code returns for several variables; only nodes that take items out see it."""


class Holding(Enum):
    """Whether a function's result has all that is in its arguments, or they all that is in it."""

    UNKNOWN = auto()
    RESULT = auto()
    ARGUMENTS = auto()


class Sharing:
    """The mutable objects that several values of a run hold."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._shared: dict[int, Any] = {}  # keeps the objects alive, so that ids stay unique
        self._displays: dict[int, Any] = {}
        self._changed: dict[int, Any] = {}  # the parts of values that code replaced by others

    @cached_property
    def _used_once(self) -> frozenset[_Key]:
        """Computed when the first list or dict is made, as most runs make none."""
        return used_once(self._graph)

    def note_display(self, node: Node, value: Any) -> None:
        """Notes a list or dict that a node made, if one other node alone gets it."""
        if key_of(node) in self._used_once and id(value) not in self._shared:
            self._displays[id(value)] = value

    def note(
        self,
        result: Any,
        args: Iterable[Any],
        originals: Mapping[int, Any] | None = None,
        node: Node | None = None,
        holding: Holding = Holding.UNKNOWN,
    ) -> None:
        """Notes what the result of a function shares with its arguments.

        originals: if the function was given copies, the original of each container in them; node:
        the node that made the result; holding: whether result or arguments surely hold the other,
        so that these need not be traversed: they may have grown in many turns of a loop.
        """
        args = list(args)
        if any(isinstance(each, Several) for each in args):
            holding = Holding.UNKNOWN  # an item taken out of it shares nothing with others
        if holding is Holding.RESULT:
            given = changeable(args)
            found = given | _itself([result])
        else:
            found = changeable([result])
            if not found:
                return
            given = found | _itself(args) if holding is Holding.ARGUMENTS else changeable(args)
        self._note_shared(found, given, originals)
        if node is not None and id(result) in found:
            self.note_display(node, result)

    def _note_shared(
        self, found: dict[int, Any], among: dict[int, Any], originals: Mapping[int, Any] | None
    ) -> None:
        given = among.keys()
        copied = {id((originals or {})[key]) for key in found.keys() & (originals or {}).keys()}
        if not self._changed.keys().isdisjoint(found.keys() & given | copied):
            raise refused(next(iter(found.values())))  # a later node has run first
        displays = self._displays.keys() & given
        shared = found.keys() & (given - displays)
        self._shared.update((key, found[key]) for key in shared)
        for key in found.keys() & (originals or {}).keys():
            original = (originals or {})[key]
            if id(original) not in displays:
                self._shared |= {key: found[key], id(original): original}
        for key in displays:
            del self._displays[key]  # from now on the result may hold it

    def note_among(self, results: Iterable[Any]) -> None:
        """Notes what several results of one piece of code share with each other."""
        seen: dict[int, Any] = {}
        for result in results:
            found = changeable([result])
            self._shared.update((key, found[key]) for key in found.keys() & seen.keys())
            seen |= found

    def has(self, value: Any, mutable: Mapping[int, Any] | None = None) -> bool:
        """Whether a value that code may mutate shares an object with another value.

        mutable: the objects that it may mutate, by id; None: all in the value.
        """
        found = changeable([value]) if mutable is None else mutable
        return not self._shared.keys().isdisjoint(found)

    def is_unseen(self, node: Node, index: int) -> bool:
        """Whether no value used after a node can show that the node changes this argument."""
        return (key_of(node), index) in unseen(self._graph)

    def note_changed(self, value: Any, mutable: Mapping[int, Any] | None = None) -> None:
        """Notes that code has replaced a value by another, in which parts changed. mutable: the
        value and these parts, by id; None: all in the value."""
        found = changeable([value]) if mutable is None else mutable
        if len(found) > 1:
            self._changed |= found


def refused(value: Any) -> ProgramError:
    """The error of a run that changes a value that others hold."""
    return ProgramError(
        f"a {type(value).__name__} is changed that another value holds too, or a part of",
        hint="change a copy of it, copy.deepcopy(x); or run it with --interpret",
    )


_FIXED_OR_SEVERAL = (*_FIXED, Several)


def _itself(values: Iterable[Any]) -> dict[int, Any]:
    """The values that are themselves mutable objects, without their contents, by id."""
    return {id(value): value for value in values if _is_changeable(value)}


def _is_changeable(value: Any) -> bool:
    """Whether a value is itself a mutable object."""
    record = record_of(type(value))
    if record is not None:
        return not (record.is_tuple or record.is_frozen or record.is_enum)
    return not isinstance(value, (*_FIXED_OR_SEVERAL, tuple, frozenset))


def changeable(values: Iterable[Any]) -> dict[int, Any]:
    """The mutable objects in some values, by id."""
    found: dict[int, Any] = {}
    queue = list(values)
    while queue:
        value = queue.pop()
        if isinstance(value, _FIXED_OR_SEVERAL) or id(value) in found:
            continue
        if _is_changeable(value):
            found[id(value)] = value
        record = record_of(type(value))
        if record is not None:
            queue += held_parts(record, value)
        elif isinstance(value, Mapping):
            queue += value.values()
        elif isinstance(value, Iterable):
            queue += value
    return found


@made_once
def used_once(graph: Graph) -> frozenset[_Key]:
    """The nodes whose value only one function gets, itself or in a list or record, once for each
    time that it is made.
    """
    found: set[int] = set()
    for each in (graph, *graph.called):
        used = uses(each)
        for place, node in reversed([*places(each)]):
            users = [user for value in node.results for user in used.get(value.name, ())]
            if node.op not in _MAKING or len(users) != 1 or users[0].block != place.block:
                continue
            user = each.blocks[place.block].nodes[users[0].index]
            is_inner = user.op in _DISPLAYS
            if id(user) in found or not (is_inner or Flag.TERMINATOR in user.flags):
                found.add(id(node))
    nodes = [node for each in (graph, *graph.called) for _, node in places(each) if node.results]
    others = {key_of(node) for node in nodes if id(node) not in found}
    return frozenset(key_of(node) for node in nodes if id(node) in found) - others


@made_once
def unseen(graph: Graph) -> frozenset[tuple[_Key, int]]:
    """The changes of arguments that nothing can see, by the keys of their nodes."""
    nodes = [node for each in (graph, *graph.called) for _, node in places(each) if node.results]
    found = frozenset[tuple[int, int]]().union(*map(unseen_changes, (graph, *graph.called)))
    times = Counter(map(key_of, nodes))
    return frozenset(
        (key_of(node), index)
        for node in nodes
        if times[key_of(node)] == 1
        for index, _ in changed_by(node)
        if (id(node), index) in found
    )


_Key = tuple[str, Loc | None]


def key_of(node: Node) -> _Key:
    """What a node and its copies in a loop's turns have in common (`run/blocks.py`)."""
    return node.results[0].name.partition("#")[0], node.loc


_DISPLAYS = frozenset({"list", "record"})
_MAKING = _DISPLAYS | {"compute", "evaluate"}
