"""The places of a run's maps among its streams and tool calls, and the paths of their calls.

Places are noted when nodes are submitted, in the order of the program; calls end in any order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sgc.ir.analysis.host_calls import has_effect
from sgc.ir.graph import Graph, Lit, Node, Ref
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.run.record import StreamResult
from sgc.runtime.executor.run.stream_order import Number
from sgc.runtime.executor.run.tool_order import ToolMark


@dataclass(frozen=True, slots=True)
class MapPlace:
    """The place of a map. ordinal: among the maps of its caller; number: among those of its run;
    streams: how many began before it; tools: its place among tool calls.
    """

    ordinal: int
    number: int
    streams: int
    tools: ToolMark


def call_path(caller: str, program: str, ordinal: int, index: int) -> str:
    """Returns the path of one call: the ordinal-th map of its caller, the index-th item."""
    return f"{caller}/{program}:{ordinal}.{index}"


@dataclass(frozen=True, slots=True)
class Called:
    """The programs that a run's maps call. has_effects: whether calls of each may have effects."""

    graphs: tuple[Graph, ...] = ()
    has_effects: tuple[bool, ...] = ()

    @staticmethod
    def of(graph: Graph) -> Called:
        found: list[bool] = []  # a called program calls only earlier ones
        for each in graph.called:
            found.append(any(_has_effect(node, found) for node in each.nodes()))
        return Called(graph.called, tuple(found))


def _has_effect(node: Node, below: list[bool]) -> bool:
    if Flag.CALLS in node.flags:
        return below[number_of(node, "program")]
    return has_effect(node)


def number_of(node: Node, name: str) -> int:
    """The value of a field that is a literal number."""
    operand = node.get(name)
    assert isinstance(operand, Lit)
    assert isinstance(operand.value, int)
    return operand.value


class Maps:
    """The maps of one run."""

    def __init__(self) -> None:
        self.streams: dict[MapPlace, tuple[StreamResult, ...]] = {}  # of the maps that have ended
        self._n_maps = 0
        self._of_caller: Counter[str] = Counter()
        self._places: dict[int, MapPlace] = {}  # of maps that have not begun, by their nodes' ids

    def note(self, node: Node, place: MapPlace) -> None:
        """Notes a map that is submitted."""
        self._places[id(node)] = place

    def place(self, ordinal: int, n_streams: int, tools: ToolMark) -> MapPlace:
        """The place of the run's next map."""
        self._n_maps += 1
        return MapPlace(ordinal, self._n_maps, n_streams, tools)

    def begin(self, node: Node) -> MapPlace:
        """The place of a map that begins."""
        return self._places.pop(id(node))

    def ordinal_of(self, node: Node) -> int:
        """Returns a submitted map's ordinal among its caller's maps; called once for each map."""
        caller, given = node.get("caller"), node.get("ordinal")
        if isinstance(given, Lit) and isinstance(given.value, int):
            return given.value
        assert isinstance(caller, Ref)
        self._of_caller[caller.name] += 1
        return self._of_caller[caller.name] - 1

    def among(self, own: list[tuple[Number, StreamResult]]) -> tuple[StreamResult, ...]:
        """Merges a run's own streams, given with their numbers, with those of its maps, in order of
        creation.
        """
        if not self.streams:
            return tuple(each for _, each in own)
        places = sorted(self.streams, key=lambda place: place.number)
        found = [((place.streams, 0, place.number), self.streams[place]) for place in places]
        found += [((number, 1, child), (each,)) for (number, child), each in own]
        return tuple(each for _, some in sorted(found, key=lambda item: item[0]) for each in some)
