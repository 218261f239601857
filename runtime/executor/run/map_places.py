"""Where the maps of one run stand: among its streams and its tools, and their paths.

All of it is noted as nodes are submitted, in the order of the program; the calls end in any order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sgc.ir.analysis.dependencies import consumed
from sgc.ir.graph import Graph, Lit, Node, Ref
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.run.record import StreamResult
from sgc.runtime.executor.tools.tools import PURE, ToolMark

if TYPE_CHECKING:
    from sgc.runtime.executor.instance import Instance


@dataclass(frozen=True, slots=True)
class MapPlace:
    """A map. ordinal: among those of its caller; number: among those of its run; streams: begun
    before it; tools: where it stands among calls of tools.
    """

    ordinal: int
    number: int
    streams: int
    tools: ToolMark


def call_path(caller: str, program: str, ordinal: int, index: int) -> str:
    """The path of one call of a map: of its caller's maps the ordinal-th, the index-th item."""
    return f"{caller}/{program}:{ordinal}.{index}"


@dataclass(frozen=True, slots=True)
class Called:
    """The programs that maps of a run call. has_effects: whether calls of one may have any."""

    graphs: tuple[Graph, ...] = ()
    has_effects: tuple[bool, ...] = ()

    @staticmethod
    def of(graph: Graph) -> Called:
        found: list[bool] = []  # each runs those before it alone
        for each in graph.called:
            found.append(any(_has_effect(node, found) for node in each.nodes()))
        return Called(graph.called, tuple(found))


def _has_effect(node: Node, below: list[bool]) -> bool:
    if Flag.CALLS in node.flags:
        return below[number_of(node, "program")]
    return Flag.HOST in node.flags and node.text("effect") != PURE


def number_of(node: Node, name: str) -> int:
    """The value of a field that is a literal number."""
    operand = node.get(name)
    assert isinstance(operand, Lit)
    assert isinstance(operand.value, int)
    return operand.value


class Maps:
    """The maps of one run."""

    def __init__(self) -> None:
        self.n_streams = 0  # begun so far, in a run of nodes in a row
        self.streams: dict[MapPlace, tuple[StreamResult, ...]] = {}  # of the maps that are over
        self.values: list[str] = []  # one that each map gives, once it is over
        self._n_maps = 0
        self._of_caller: Counter[str] = Counter()
        self._places: dict[int, MapPlace] = {}  # of maps that are not begun, by their nodes

    def note(self, run: Instance, node: Node) -> None:
        """Takes note of a node that is submitted and begins streams."""
        if Flag.CALLS not in node.flags:
            self.n_streams += len(node.results) - len(consumed(node))
        else:
            self.values += [value.name for value in node.results[:1]]
            has_effects = run.called.has_effects[number_of(node, "program")]
            self._places[id(node)] = self.place(run, self._ordinal(node), has_effects)

    def place(self, run: Instance, ordinal: int, has_effects: bool = False) -> MapPlace:
        """The next map's place. has_effects: its calls may have, which later ones wait for."""
        self._n_maps += 1
        return MapPlace(ordinal, self._n_maps, run.n_streams, run.tools.mark(has_effects))

    def begin(self, node: Node) -> MapPlace:
        """The place of a map that begins."""
        return self._places.pop(id(node))

    def _ordinal(self, node: Node) -> int:
        caller, given = node.get("caller"), node.get("ordinal")
        if isinstance(given, Lit) and isinstance(given.value, int):
            return given.value
        assert isinstance(caller, Ref)
        self._of_caller[caller.name] += 1
        return self._of_caller[caller.name] - 1

    def among(self, own: list[tuple[int, StreamResult]]) -> tuple[StreamResult, ...]:
        """A run's own streams, with their numbers, and those of its maps in order of creation."""
        if not self.streams:
            return tuple(each for _, each in own)
        places = sorted(self.streams, key=lambda place: place.number)
        found = [((place.streams, 0, place.number), self.streams[place]) for place in places]
        found += [((number, 1, 0), (each,)) for number, each in own]
        return tuple(each for _, some in sorted(found, key=lambda item: item[0]) for each in some)
