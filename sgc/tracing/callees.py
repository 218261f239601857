"""The functions that a program maps, each traced by itself, and what is known of them.

They are found while the program is traced: when the trace reaches a function that is not traced
yet, the trace ends, the function is traced, and the trace starts anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.ir.graph import Graph, Lit, Node
from sgc.ir.limits import MAX_CALLED, MAX_NESTING
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type
from sgc.lang.definition import Definition
from sgc.tracing.kinds.row_types import joined_item
from sgc.tracing.watch.guards import plain


class Unmet(BaseException):
    """Ends a trace that maps a function not traced yet; with a name, a trace that reads a variable
    that none of the function's traced paths sets.
    """

    def __init__(self, wanted: Wanted, name: str = "") -> None:
        super().__init__(wanted.function.name)
        self.wanted, self.name = wanted, name


@dataclass(frozen=True, slots=True)
class Wanted:
    """A function as it is mapped. types: the types of arguments known only at run time, the item
    included; bound: arguments known now; heal, max_turns: inherited from the caller; schemas: the
    schemas of arguments that are checked at run time.
    """

    function: Definition
    types: Mapping[str, Type]
    bound: Mapping[str, Any]
    heal: bool | None
    max_turns: int | None
    schemas: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        bound = tuple((name, plain(value)) for name, value in self.bound.items())
        # Not the id of the `Function`: `f.bind(…)` in a program makes a new object each time.
        return id(self.function.python), tuple(self.types.items()), bound, self.heal, self.max_turns


@dataclass(slots=True)
class Gathers:
    """The types of the main stream's variables and of return values, found by a trace's runs."""

    names: dict[str, set[Type]] = field(default_factory=dict)
    returns: set[Type] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that was traced to be mapped. number: its index among the called programs;
    can_fail: whether a call may raise; others: the type of further names that it may set, on paths
    left to the interpreter or with names known only at run time; media: its images.
    """

    wanted: Wanted
    number: int
    names: Mapping[str, Type]
    returns: Type
    can_fail: bool
    others: Type | None
    media: tuple[str, ...]


class Callees:
    """The called programs of one trace. trace: traces a program, returns its graph and gathers."""

    def __init__(self, root: Definition, trace: Callable[[Wanted], tuple[Graph, Gathers]]) -> None:
        self._trace = trace
        self._found: dict[tuple[object, ...], Callee] = {}
        self._going_on = [root]
        self.graphs: list[Graph] = []

    def find(self, wanted: Wanted) -> Callee | None:
        """The callee for a function, if it is traced; stops the trace if it cannot be."""
        found = self._found.get(wanted.key)
        if found is None:
            self._refuse_endless(wanted.function)
        return found

    def add(self, wanted: Wanted) -> None:
        """Traces a function, and first those that it maps itself."""
        self._going_on.append(wanted.function)
        try:
            graph, gathers = self._trace(wanted)
        finally:
            self._going_on.pop()
        names = {name: joined_type(found) for name, found in gathers.names.items()}
        can_fail = any(node.op in ("fail", "unset") for node in graph.nodes()) or any(
            callee.can_fail and any(_runs(node, callee.number) for node in graph.nodes())
            for callee in self._found.values()
        )
        is_cut = any(node.op == "deopt" for node in graph.nodes())
        others = (
            types.JSON if any(map(_names_late, graph.nodes())) else types.TEXT if is_cut else None
        )
        returns = joined_type(gathers.returns)
        callee = Callee(wanted, len(self.graphs), names, returns, can_fail, others, _media(graph))
        self._found[wanted.key] = callee
        self.graphs.append(replace(graph, guards=(), called=()))

    def meet(self, unmet: Unmet) -> None:
        """Traces the function for which a trace ended, so that the trace can start anew."""
        if not unmet.name:
            self.add(unmet.wanted)
            return
        callee = self._found[unmet.wanted.key]
        assert callee.others is not None
        names = {**callee.names, unmet.name: callee.others}
        self._found[unmet.wanted.key] = replace(callee, names=names)

    def number(self, number: int) -> Callee:
        """The called program with this number."""
        return next(each for each in self._found.values() if each.number == number)

    def _refuse_endless(self, function: Definition) -> None:
        name = function.name
        if any(each.python is function.python for each in self._going_on):
            stop(
                f"sgc.map calls {name} inside of {name}: the depth of these calls is known only at "
                "run time",
                hint="write a loop, or another function for the level below; or " + INTERPRET,
            )
        if len(self._going_on) > MAX_NESTING:
            stop(f"maps are nested deeper than {MAX_NESTING}")
        if len(self.graphs) >= MAX_CALLED:
            stop(
                f"sgc.map calls more than {MAX_CALLED} functions",
                hint="define what is mapped outside of the program, once; or " + INTERPRET,
            )


def _media(graph: Graph) -> tuple[str, ...]:
    return tuple(p.value.name for p in graph.params if p.value.type.kind is Kind.MEDIA)


def _names_late(node: Node) -> bool:
    """Whether a stream has variables whose names are known only at run time."""
    return node.op == "publish" and node.get("named") is not None


def _runs(node: Node, number: int) -> bool:
    return node.op == "map" and node.get("program") == Lit(number)


def joined_type(found: set[Type]) -> Type:
    """The type of the items of a list of values of these types."""
    if len(found) == 1:
        return next(iter(found))
    is_text = bool(found) and all(type_.kind in TEXTUAL for type_ in found)
    return types.TEXT if is_text else joined_item(sorted(found, key=repr))


def narrowed(graph: Graph) -> Graph:
    """The program without the results of its maps that nothing reads."""
    called = tuple(map(narrowed, graph.called))
    read = {name for node in graph.nodes() for name in node.refs()}
    blocks = tuple(
        replace(block, nodes=tuple(_narrowed(node, read) for node in block.nodes))
        for block in graph.blocks
    )
    is_same = blocks == graph.blocks and called == graph.called
    return graph if is_same else replace(graph, blocks=blocks, called=called)


def _narrowed(node: Node, read: set[str]) -> Node:
    if node.op != "map":
        return node
    names = node.get("names")
    assert isinstance(names, tuple)
    *_, returns, texts = kept = [value.name in read for value in node.results]
    fields = dict(node.fields) | {"returns": Lit(returns), "texts": Lit(texts)}
    fields["names"] = tuple(name for name, is_kept in zip(names, kept, strict=False) if is_kept)
    for name in ("names", "returns", "texts"):
        if fields[name] in ((), Lit(False)):
            del fields[name]
    results = tuple(value for value, is_kept in zip(node.results, kept, strict=True) if is_kept)
    order = [name for name, _ in node.fields if name in fields]
    return replace(node, results=results, fields=tuple((name, fields[name]) for name in order))
