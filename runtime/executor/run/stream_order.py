"""The order in which a program of several blocks began its streams, and their call paths.

Which blocks run is known only as they run, so both are counted as nodes are submitted, which is
in the order of the program; when a node runs depends on its data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sgc.ir.graph import Node, Ref
from sgc.ir.types import Kind
from sgc.runtime.executor.run.record import StreamResult


class Births:
    """Numbers streams in order of creation, forks included."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}  # by the name of each of a stream's states
        self._n_streams = 0
        self._paths: dict[str, str] = {}  # of called functions, by their streams' first states
        self._n_calls: Counter[str] = Counter()
        self._published: dict[int, StreamResult] = {}

    def note(self, node: Node) -> None:
        """Takes note of a node that is submitted."""
        if node.op == "stream":
            self._note_call(node)
        states = [value for value in node.results if value.type.kind is Kind.STREAM]
        if not states:
            return
        operand = dict(node.fields).get("stream")
        for index, value in enumerate(states):
            if index == 0 and isinstance(operand, Ref):
                self._number[value.name] = self._number[operand.name]
            else:
                self._number[value.name] = self._n_streams
                self._n_streams += 1

    def _note_call(self, node: Node) -> None:
        caller, path = node.get("caller"), node.text("path")
        if isinstance(caller, Ref):
            above = self._paths[caller.name]
            path = f"{above}/{node.text('name')}.{self._n_calls[above]}"
            self._n_calls[above] += 1
        self._paths[node.results[0].name] = path

    def path_of(self, node: Node) -> str:
        """The path of a stream that begins."""
        return self._paths[node.results[0].name]

    @property
    def n_streams(self) -> int:
        """Streams begun so far."""
        return self._n_streams

    def number_of(self, node: Node) -> int:
        """Which stream a node is of."""
        state = node.get("stream")
        assert isinstance(state, Ref)
        return self._number[state.name]

    def publish(self, node: Node, result: StreamResult) -> None:
        self._published[self.number_of(node)] = result

    def streams(self) -> Iterator[tuple[int, StreamResult]]:
        """Those published with their numbers, in order of creation."""
        return ((number, self._published[number]) for number in sorted(self._published))
