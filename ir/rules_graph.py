"""The verifier's rules about the graph as a whole: names, streams, dominance, blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from sgc.ir import analysis
from sgc.ir.analysis import Definition, Place, Tree
from sgc.ir.breach import Breach, breach_at, breach_of_pair
from sgc.ir.graph import Graph, Lit, Node, Ref, Value
from sgc.ir.literals import label, value_ref
from sgc.ir.types import Type

if TYPE_CHECKING:
    import networkx as nx


class Context:
    """A graph with what several rules look up in it, each computed at most once."""

    def __init__(self, graph: Graph, called: tuple[Graph, ...] = ()) -> None:
        self.graph = graph
        self.called = called  # the programs that it may run
        self._options: dict[int, frozenset[str]] = {}

    @cached_property
    def nodes(self) -> list[tuple[Place, Node]]:
        return list(analysis.places(self.graph))

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        return analysis.definitions(self.graph)

    @cached_property
    def flow(self) -> nx.DiGraph[int]:
        return analysis.flow_graph(self.graph)

    @property
    def is_straight(self) -> bool:
        """One block: most programs, and no reason to load networkx."""
        return len(self.graph.blocks) == 1

    @cached_property
    def dominators(self) -> Tree:
        """The tree of immediate dominators of the blocks that are reached, by number."""
        children: dict[str, list[str]] = {}
        if self.is_straight:
            return Tree(children, ("0",))
        import networkx as nx

        for block, above in nx.immediate_dominators(self.flow, 0).items():
            if above is not None and block != above:
                children.setdefault(str(above), []).append(str(block))
        return Tree(children, ("0",))

    @cached_property
    def reached(self) -> dict[int, set[int]]:
        """The blocks that can run after each block, itself only if it is in a loop."""
        return {0: set()} if self.is_straight else _transitive(self.flow)

    @cached_property
    def reaching(self) -> dict[int, set[int]]:
        """The blocks that can run before each block, itself only if it is in a loop."""
        return {0: set()} if self.is_straight else _transitive(self.flow.reverse())

    @cached_property
    def params(self) -> dict[object, tuple[Value, ...]]:
        """The parameters of each block, by its name."""
        return {block.name: block.params for block in self.graph.blocks}

    @cached_property
    def used_up(self) -> set[str]:
        """The states that are used up, in the block that defines them or as what they become."""
        found: set[str] = set()
        becomes: dict[str, list[str]] = {}
        for _, node in self.nodes:
            if node.op != "jump":
                found.update(analysis.consumed(node))
                continue
            for name, param in _handed_on(self, node):
                becomes.setdefault(param, []).append(name)
        queue = list(found)
        while queue:
            for name in becomes.get(queue.pop(), ()):
                if name not in found:
                    found.add(name)
                    queue.append(name)
        return found

    @cached_property
    def loops(self) -> set[int]:
        """The blocks that can run more than once."""
        return {block for block, after in self.reached.items() if block in after}

    def options(self, type_: Type) -> frozenset[str]:
        """The options of a choice as a set; values of a type share it."""
        key = id(type_.options)  # hashing them would cost as much as searching them
        if key not in self._options:
            self._options[key] = frozenset(type_.options)
        return self._options[key]

    def breach(self, rule: str, message: str, place: Place) -> Breach:
        return breach_at(rule, message, self.graph, place)


def _transitive(flow: nx.DiGraph[int]) -> dict[int, set[int]]:
    import networkx as nx

    after = {}
    for block in flow:
        first = set(flow.successors(block))
        after[block] = first.union(*(nx.descendants(flow, below) for below in first))
    return after


Rule = Callable[[str, Context], Iterator[Breach]]


def check_names(rule: str, context: Context) -> Iterator[Breach]:
    first: dict[str, Place] = {}
    for definition in analysis.all_definitions(context.graph):
        name, place = definition.value.name, definition.place
        if name in first:
            message = f"{value_ref(name)} is defined twice; every value has a name of its own"
            yield breach_of_pair(rule, message, first[name], place, "definition")
        first.setdefault(name, place)
    for name, count in Counter(block.name for block in context.graph.blocks).items():
        if count > 1:
            yield Breach(
                rule, f"{label(name)} labels {count} blocks; every block has its own label"
            )


def check_linear_streams(rule: str, context: Context) -> Iterator[Breach]:
    uses: dict[str, dict[int, Place]] = {}  # by name, then by block
    for place, node in context.nodes:
        for name in _used_up(context, node):
            definition = context.definitions.get(name)
            if definition is not None and not definition.value.type.is_stream:
                continue  # other values may be handed on as often as one likes
            earlier = uses.setdefault(name, {})
            first = _use_on_same_path(context, name, earlier, place.block)
            ref = value_ref(name)
            if first is not None:
                message = f"{ref} is used twice; a stream may be used once; fork it first"
                yield breach_of_pair(rule, message, first, place, "use")
                continue
            earlier[place.block] = place
            if _can_repeat(context, name, place):
                message = f"{ref} is used by every turn of a loop; make it a block's parameter"
                yield context.breach(rule, message, place)


def _used_up(context: Context, node: Node) -> list[str]:
    """The states a node uses up; a jump those that are used up as the parameter they become."""
    if node.op != "jump":
        return analysis.consumed(node)
    return [name for name, param in _handed_on(context, node) if param in context.used_up]


def _handed_on(context: Context, jump: Node) -> Iterator[tuple[str, str]]:
    """The values that a jump hands on, with the parameters that they become."""
    target, args = jump.get("target"), jump.get("args")
    params = context.params.get(target.value if isinstance(target, Lit) else None, ())
    for arg, param in zip(args if isinstance(args, tuple) else (), params, strict=False):
        if isinstance(arg, Ref):
            yield arg.name, param.name


def _use_on_same_path(
    context: Context, name: str, uses: dict[int, Place], block: int
) -> Place | None:
    """A use that can run before or after the block; arms of a branch exclude each other, and
    what passes the definition again is another state.
    """
    if block in uses or not uses:
        return uses.get(block)
    for other in sorted(uses.keys() & (context.reached[block] | context.reaching[block])):
        if _is_between(context, name, block, other) or _is_between(context, name, other, block):
            return uses[other]
    return None


def _is_between(context: Context, name: str, start: int, end: int) -> bool:
    """Whether a way leads from one block to the other without passing the definition."""
    definition = context.definitions.get(name)
    if end not in context.reached[start]:
        return False
    if definition is None or definition.place.block < 0:
        return True
    import networkx as nx

    kept = context.flow.subgraph(set(context.flow) - {definition.place.block})
    after = [block for block in context.flow.successors(start) if block in kept]
    return end in kept and any(nx.has_path(kept, block, end) for block in after)


def _can_repeat(context: Context, name: str, use: Place) -> bool:
    """Whether a loop passes the use again without passing the definition."""
    definition = context.definitions.get(name)
    if definition is None or definition.place.block == use.block or use.block not in context.loops:
        return False
    import networkx as nx

    others = context.flow.subgraph(set(context.flow) - {definition.place.block})
    return any(nx.has_path(others, after, use.block) for after in others.successors(use.block))


def check_dominance(rule: str, context: Context) -> Iterator[Breach]:
    for place, node in context.nodes:
        for name in dict.fromkeys(node.refs()):
            definition = context.definitions.get(name)
            if definition is None:
                yield context.breach(rule, f"{value_ref(name)} is not defined", place)
            elif not _is_before(context, definition.place, place):
                yield context.breach(
                    rule, _too_early(context, name, definition.place, place), place
                )


def _is_before(context: Context, definition: Place, use: Place) -> bool:
    if definition.block == use.block:
        return definition.index < use.index
    if definition.block == -1:
        return True
    return context.dominators.is_at_or_above(str(definition.block), str(use.block))


def _too_early(context: Context, name: str, definition: Place, use: Place) -> str:
    if definition.block == use.block:
        return f"{value_ref(name)} is used before it is defined"
    block = context.graph.blocks[definition.block].name
    return (
        f"{value_ref(name)} is defined in {label(block)}, which not every path to this node passes"
    )


def check_blocks(rule: str, context: Context) -> Iterator[Breach]:
    blocks = context.graph.blocks
    if not blocks:
        yield Breach(rule, "the program has no block; it needs at least `return`")
    elif blocks[0].params:
        yield Breach(
            rule, f"the entry block {label(blocks[0].name)} has parameters; use the program's"
        )
    for block in blocks:
        if not block.nodes:
            yield Breach(
                rule, f"{label(block.name)} is empty; end it with a terminator such as `return`"
            )
    for place, node in context.nodes:
        is_last = place.index == len(blocks[place.block].nodes) - 1
        if is_last and not node.is_terminator:
            message = "the block does not end with a terminator such as `return`"
            yield context.breach(rule, message, place)
        elif node.is_terminator and not is_last:
            message = f"{node.op} ends a block, but more nodes follow"
            yield context.breach(rule, message, place)


_END_OF_SPAN = {
    "span": "end", "append_span": "end", "share": "end", "separate_reasoning": "stream",
}  # fmt: skip


def check_spans(rule: str, context: Context) -> Iterator[Breach]:
    spans = [(place, node) for place, node in context.nodes if node.op in _END_OF_SPAN]
    tree = analysis.prompt_tree(context.graph) if spans else Tree({}, ())
    joined = {param.name for block in context.graph.blocks for param in block.params}
    for place, node in spans:
        fields = dict(node.fields)
        start, end = fields.get("start"), fields.get(_END_OF_SPAN[node.op])
        if not isinstance(start, Ref) or not isinstance(end, Ref):
            continue
        # Where ways have joined, what a state continues is not written down.
        is_joined = bool(joined) and end.name in tree and tree.path(end.name)[0] in joined
        is_known = start.name in tree and end.name in tree and not is_joined
        if is_known and not tree.is_at_or_above(start.name, end.name):
            states = f"{value_ref(end.name)} does not continue {value_ref(start.name)}"
            message = f"{states}; a span lies in one stream"
            yield context.breach(rule, message, place)
