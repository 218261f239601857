"""Gives a compiled run the error and the order of effects that Python would give it.

Nodes run when their operands exist, so if two nodes fail, the later one may fail first, and an
effect may be ready before an earlier node fails. So an error waits until all earlier values exist,
and no later node starts; an effect waits in the same way. Generations are not waited for: as in
Python, a run waits for one where its text is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence

from sgc.ir.graph import Node
from sgc.ir.types import Kind


class ProgramOrder:
    """defined: the names of the values that exist."""

    def __init__(self, defined: Container[str]) -> None:
        self._defined = defined
        self._n_noted = 0
        self._noted: list[tuple[int, Sequence[Node]]] = []  # with the place of the first
        self._n_looked_at = 0  # of `noted`: most runs have no effects and no error
        self._places: dict[int, int] = {}  # of nodes, by their ids
        self._open: deque[tuple[int, Node]] = deque()  # nodes that define values, with their places
        self._failed: tuple[int, Node | None, BaseException] | None = None

    def note(self, nodes: Sequence[Node]) -> None:
        """Notes nodes that are submitted, in the order of the program."""
        self._noted.append((self._n_noted, nodes))
        self._n_noted += len(nodes)

    @property
    def has_failed(self) -> bool:
        return self._failed is not None

    def fail(self, node: Node | None, error: BaseException) -> None:
        """Notes the error of a node. None: of the terminator, which comes after all nodes."""
        place = self._place(node)
        if self._failed is None or place < self._failed[0]:
            self._failed = place, node, error

    def is_behind(self, node: Node) -> bool:
        """Whether a node comes after the error, so that it must not start."""
        return self._failed is not None and self._place(node) > self._failed[0]

    def due(self) -> tuple[Node | None, BaseException] | None:
        """The error, once all values before it exist."""
        if self._failed is None:
            return None
        place, node, error = self._failed
        return None if self._first_before(place) else (node, error)

    def missing(self, node: Node) -> str:
        """The first missing value before a node; empty if there is none."""
        return self._first_before(self._place(node))

    def _first_before(self, end: int) -> str:
        self._look()
        while self._open and self._open[0][1].results[0].name in self._defined:
            self._open.popleft()
        if not self._open or self._open[0][0] >= end:
            return ""
        return self._open[0][1].results[0].name

    def _place(self, node: Node | None) -> int:
        self._look()
        return self._n_noted if node is None else self._places[id(node)]

    def _look(self) -> None:
        for first, nodes in self._noted[self._n_looked_at :]:
            for place, node in enumerate(nodes, first):
                self._places[id(node)] = place
                if _gives_values(node):
                    self._open.append((place, node))
        self._n_looked_at = len(self._noted)


def _gives_values(node: Node) -> bool:
    kinds = [value.type.kind for value in node.results]
    return bool(kinds) and Kind.STREAM not in kinds
