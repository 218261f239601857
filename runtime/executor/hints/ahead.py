"""The hints on its run that a request carries to an engine: which run, and how much is left.

It is a hint for the engine's policy `program`. The hint is not part of the request: requests are
equal with and without it, and a backend that schedules nothing never reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from sgc.ir.analysis.remaining import Remaining, remaining
from sgc.ir.graph import Graph, Lit, Node
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.functions.once import made_once
from sgc.runtime.executor.run.map_places import number_of
from sgc.runtime.executor.run.options import DEFAULT_MAX_TOKENS

_SHARE = 0.5  # of max_tokens, that a generation is assumed to take until some have ended


@dataclass(frozen=True, slots=True)
class Told:
    """number: of the run. remaining: tokens that the longest path from the request's beginning to
    the program's end generates; None: the program's graph is not known."""

    number: int
    remaining: int | None


_told: ContextVar[Callable[[], Told] | None] = ContextVar("sgc_ahead", default=None)


def tell(told: Callable[[], Told]) -> None:
    """Sets the hint for the requests that this task makes; it is found when a backend asks."""
    _told.set(told)


def told() -> Told | None:
    """The hint of the request that is made now."""
    found = _told.get()
    return None if found is None else found()


class Ahead:
    """Estimates how much is left of a program's runs, which share it. called: the estimates of the
    programs that it calls, by number.

    Generations are assumed to take a share of their max_tokens. The tokens that they took are
    averaged, and the longest paths are found anew whenever the number of ended generations has
    doubled. Runs on several threads share it: at worst a mean misses one.
    """

    def __init__(self, graph: Graph, called: Sequence[Ahead], share: float = _SHARE) -> None:
        self.called = called
        self._share = share
        self._graph = graph
        self._means: dict[str, float] = {}
        self._n_seen, self._n_next = 0, 1
        self._found: Remaining | None = None

    @property
    def whole(self) -> float:
        return self._paths().whole

    def after(self, node: Node) -> float:
        """The tokens on the longest path after a node."""
        return self._paths().after.get(_name(node), 0.0)

    def of(self, node: Node) -> float:
        return self._tokens(node) + self.after(node)

    def saw(self, node: Node, n_tokens: int) -> None:
        """Records the tokens of a generation."""
        name = _name(node)
        mean = self._means.get(name, float(n_tokens))
        self._means[name] = mean + (n_tokens - mean) / 16
        self._n_seen += 1
        if self._n_seen >= self._n_next:
            self._n_next = 2 * self._n_seen
            self._found = None

    def _paths(self) -> Remaining:
        found = self._found
        if found is None:
            found = self._found = remaining(self._graph, self._tokens)
        return found

    def _tokens(self, node: Node) -> float:
        if Flag.CALLS in node.flags:
            return self.called[number_of(node, "program")].whole
        if Flag.ASKS not in node.flags:
            return 0.0
        if Flag.GENERATES not in node.flags:
            return 1.0
        return self._means.get(_name(node), self._share * _most(node))


@made_once
def ahead_of(graph: Graph) -> Ahead:
    """The `Ahead` that all runs of a graph in this process share."""
    return _ahead(graph, _SHARE)


def longest_path(graph: Graph) -> float:
    """Tokens that a run generates one after another, if each generation takes all that it may and a
    map has one item."""
    return _ahead(graph, 1.0).whole


def _ahead(graph: Graph, share: float) -> Ahead:
    called: list[Ahead] = []
    for each in graph.called:  # which calls only earlier ones
        called.append(Ahead(each, called, share))
    return Ahead(graph, called, share)


def _name(node: Node) -> str:
    return node.results[0].name if node.results else ""


def _most(node: Node) -> int:
    most = node.get("max_tokens")
    is_known = isinstance(most, Lit) and isinstance(most.value, int)
    return most.value if is_known else DEFAULT_MAX_TOKENS  # type: ignore[union-attr,return-value]
