"""The streams of one run: their order, their call paths, and their results.

Which blocks run is decided at run time, so streams are numbered when their nodes are submitted,
which is in the order of the program. Nodes run in another order, as their operands come.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from sgc.ir.graph import Node, Ref
from sgc.ir.types import Kind
from sgc.runtime.executor.run.record import StreamResult

Number = tuple[int, int]
WHOLE = -1  # an open fork itself, in the place of a child


class StreamOrder:
    """Numbers streams in order of creation, forks included."""

    def __init__(self) -> None:
        # By the name of each of a stream's states; with a child's place in an open fork, else 0.
        self._number: dict[str, Number] = {}
        self._n_children = Counter[int]()  # of open forks
        self._n_streams = 0
        self._paths: dict[str, str] = {}  # of called functions, by their streams' first states
        self._n_calls = defaultdict[str, int](int)

    def note(self, node: Node) -> None:
        """Notes a node that is submitted."""
        if node.op == "stream":
            self._note_call(node)
        states = [value for value in node.results if value.type.kind is Kind.STREAM]
        if not states:
            return
        operand, is_open = dict(node.fields).get("stream"), node.op == "open_fork"
        for index, value in enumerate(states):
            if index == 0 and isinstance(operand, Ref):
                self._number[value.name] = self._number[operand.name]
            elif node.op == "child":
                fork, _ = self._number[states[0].name]
                self._number[value.name] = (fork, self._n_children[fork])
                self._n_children[fork] += 1
            else:
                self._number[value.name] = (self._n_streams, WHOLE if is_open else 0)
                self._n_streams += 1

    def _note_call(self, node: Node) -> None:
        caller, path = node.get("caller"), node.text("path")
        if isinstance(caller, Ref):
            above = self._paths[caller.name]
            path = f"{above}/{node.text('name')}.{self._n_calls[above]}"
            self._n_calls[above] += 1
        self._paths[node.results[0].name] = path

    def path_of(self, node: Node) -> str:
        """Returns the path of a stream that begins."""
        return self._paths[node.results[0].name]

    @property
    def n_streams(self) -> int:
        """Streams begun so far; an open fork counts as one."""
        return self._n_streams

    def number_of(self, node: Node) -> Number:
        """Returns the number of the stream that a node belongs to."""
        state = node.get("stream")
        assert isinstance(state, Ref)
        return self._number[state.name]

    def number_of_fork(self, node: Node) -> int:
        """Returns the number of an open fork."""
        return self._number[node.results[1].name][0]


class Streams:
    """The streams of one run, and the results of those that are published."""

    def __init__(self) -> None:
        self._order: StreamOrder | None = None  # of a program of several blocks
        self._n_begun = 0
        self._n_published = 0  # publish nodes so far, in the order of the program
        self._index: dict[int, int] = {}  # by the ids of publish nodes that have not run
        self._results: dict[Number, StreamResult] = {}
        self._sizes: dict[int, int] = {}  # of open forks, by their numbers

    def count_by_blocks(self) -> None:
        """Numbers streams by their states, for a program of several blocks."""
        self._order = StreamOrder()

    def note(self, node: Node) -> None:
        """Notes a node that is submitted."""
        if self._order is not None:
            self._order.note(node)
        elif node.op == "publish":
            self._index[id(node)] = self._n_published
            self._n_published += 1
        elif node.op == "stream":
            self._n_begun += 1
        elif node.op in ("fork", "open_fork"):
            self._n_begun += len(node.results) - 1

    @property
    def n_begun(self) -> int:
        """Streams begun by the nodes submitted so far."""
        return self._n_begun if self._order is None else self._order.n_streams

    def path_of(self, node: Node) -> str:
        """Returns the path of a stream that begins, relative to its program."""
        return node.text("path") if self._order is None else self._order.path_of(node)

    def publish(self, node: Node, result: StreamResult) -> None:
        order = self._order
        number = (self._index.pop(id(node)), 0) if order is None else order.number_of(node)
        self._results[number] = result

    def open_fork(self, node: Node, n: int) -> None:
        """Notes a fork of `n` children."""
        assert self._order is not None
        self._sizes[self._order.number_of_fork(node)] = n

    def published(self) -> Iterator[tuple[Number, StreamResult]]:
        """Returns the results with the numbers of their streams, in the order of the program.

        A published fork gives its result to the children that have none of their own."""
        found = dict(self._results)
        for fork, n in self._sizes.items():
            result = found.pop((fork, WHOLE), None)
            if result is None:
                continue
            for child in range(n):
                found.setdefault((fork, child), replace(result, path=f"{result.path}.{child}"))
        return ((number, found[number]) for number in sorted(found))
