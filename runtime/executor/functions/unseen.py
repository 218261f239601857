"""Which changes of a value no other value can show, although others hold parts of it.

`kept = ends[key]` is a part of `ends`. If code changes `ends` afterwards, `kept` would have to
change too: a run refuses that (`sharing.py`). If `kept` is not used any more, nothing shows the
change.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from sgc.ir.analysis.dependencies import successors
from sgc.ir.code import parse_code
from sgc.ir.graph import Block, Graph, Lit, Node, Ref, operand_refs
from sgc.ir.types import Kind, Type

_Vertex = str | int  # a value's name, or the id of a node
_Edges = defaultdict[_Vertex, set[_Vertex]]
_PLAIN = frozenset({Kind.TEXT, Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.CHOICE, Kind.MEDIA})


def unseen_changes(graph: Graph) -> frozenset[tuple[int, int]]:
    """The changes of arguments that nothing can see: ids of nodes, with the arguments' indices."""
    return _Aliases(graph).unseen()


class _Aliases:
    """Which values may hold mutable objects of which others: a node's results may hold those of its
    operands, and a block's parameter those of its arguments."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._given = {param.value.name for param in graph.params}
        self._types: dict[str, Type] = {
            param.value.name: param.value.type for param in graph.params
        }
        for block in graph.blocks:
            values = (*block.params, *(value for node in block.nodes for value in node.results))
            self._types.update((value.name, value.type) for value in values)
        self._into: _Edges = defaultdict(set)
        self._from: _Edges = defaultdict(set)
        params = {block.name: [param.name for param in block.params] for block in graph.blocks}
        for block in graph.blocks:
            for node in block.nodes:
                self._add(node, params)

    def _add(self, node: Node, params: dict[str, list[str]]) -> None:
        if node.op == "jump":
            args = node.get("args")
            assert isinstance(args, tuple)
            target = params[node.text("target")]
            for name, arg in zip(target, args, strict=True):
                self._flow(self._holding(operand_refs(arg)), [name])
            return
        sources = {*self._holding(node.refs())} - {*self._only_read(node)}
        if node.op == "append":  # of a value, its text
            sources = {name for name in sources if self._types[name].kind is Kind.STREAM}
        self._flow(sources, [id(node)])
        self._flow([id(node)], self._holding(value.name for value in node.results))

    def _only_read(self, node: Node) -> Iterator[str]:
        """The lists of texts and the like of which some code only reads items."""
        args = node.get("args") if node.op == "evaluate" else ()
        if not isinstance(args, tuple):
            return
        names = [name for each in args for name in operand_refs(each)]
        lists = {each for each in names if names.count(each) == 1 and self._is_plain_list(each)}
        entry = parse_code(node.text("code")).entry if lists else None
        if entry is None:
            return
        for param, arg in zip(entry.args.args, args, strict=False):
            if isinstance(arg, Ref) and arg.name in lists and _is_only_read(param.arg, entry):
                yield arg.name

    def _is_plain_list(self, name: str) -> bool:
        item = self._types[name].item
        return item is not None and not _may_hold(item)

    def _flow(self, sources: Iterable[_Vertex], targets: Iterable[_Vertex]) -> None:
        targets = [*targets]
        for source in sources:
            self._into[source].update(targets)
            for target in targets:
                self._from[target].add(source)

    def _holding(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if _may_hold(self._types[name])]

    def unseen(self) -> frozenset[tuple[int, int]]:
        return frozenset(
            (id(node), index)
            for node, live in self._live_after()
            for index, name in changed_by(node)
            if self._is_unseen(node, name, live)
        )

    def _is_unseen(self, node: Node, name: str, live: frozenset[str]) -> bool:
        """Whether no value that is used later holds the parts that the node changes. The node's
        replacement of the argument holds copies of these parts."""
        sources = self._reached([name], self._from, (id(node), name))
        if not self._given.isdisjoint(sources):
            return False  # others may hold an argument of the program
        return live.isdisjoint(self._reached(sources, self._into, (name, id(node))))

    def _reached(
        self, begin: Iterable[_Vertex], edges: _Edges, without: tuple[_Vertex, _Vertex]
    ) -> set[_Vertex]:
        found = {*begin}
        queue = [*found]
        while queue:
            one = queue.pop()
            following = edges.get(one, set()) - found
            if one == without[0]:
                following.discard(without[1])
            found |= following
            queue += following
        return found

    def _live_after(self) -> Iterator[tuple[Node, frozenset[str]]]:
        """The nodes that change arguments, with the values that are used after each."""
        live_in = self._live_in()
        for block in self._graph.blocks:
            live = self._live_out(block, live_in)
            for node in reversed(block.nodes):
                live = live.difference(value.name for value in node.results)
                if any(changed_by(node)):
                    yield node, frozenset(live)
                live |= {*self._holding(node.refs())}

    def _live_in(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {block.name: set() for block in self._graph.blocks}
        is_changed = True
        while is_changed:
            is_changed = False
            for block in reversed(self._graph.blocks):
                live = self._live_out(block, found)
                for node in reversed(block.nodes):
                    live = live.difference(value.name for value in node.results)
                    live |= {*self._holding(node.refs())}
                live -= {param.name for param in block.params}
                if live != found[block.name]:
                    found[block.name], is_changed = live, True
        return found

    def _live_out(self, block: Block, live_in: dict[str, set[str]]) -> set[str]:
        live: set[str] = set()
        return live.union(*(live_in[name] for name in successors(block.nodes[-1])))


def _may_hold(type_: Type) -> bool:
    """Whether a value of a type may be or hold a mutable object."""
    return type_.kind not in _PLAIN


def _is_only_read(name: str, entry: ast.FunctionDef) -> bool:
    """Whether a function only takes single items of a parameter, or goes over it."""
    found = {id(each) for each in ast.walk(entry) if isinstance(each, ast.Name) and each.id == name}
    for each in ast.walk(entry):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load):
            found -= set() if isinstance(each.slice, ast.Slice) else {id(each.value)}
        elif isinstance(each, (ast.For, ast.comprehension)):
            found.discard(id(each.iter))
    return not found


def changed_by(node: Node) -> Iterator[tuple[int, str]]:
    """The arguments that a node changes, by index, with their names."""
    fields = dict(node.fields) if node.op == "evaluate" else {}
    changed, args = fields.get("changed"), fields.get("args")
    if isinstance(changed, tuple) and isinstance(args, tuple):
        for each in changed:
            index = each.value if isinstance(each, Lit) else None
            arg = args[index] if isinstance(index, int) else None
            if isinstance(index, int) and isinstance(arg, Ref):
                yield index, arg.name
