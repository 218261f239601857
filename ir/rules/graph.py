"""The verifier's rules about the graph as a whole: names, streams, dominance, blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property

from sgc.ir.analysis import dependencies as analysis
from sgc.ir.analysis import flow
from sgc.ir.analysis.dependencies import Definition, Place, Tree
from sgc.ir.graph import Graph, Lit, Node, Ref, Value
from sgc.ir.limits import MAX_BLOCKS
from sgc.ir.rules.violation import Breach, breach_at, breach_of_pair
from sgc.ir.text.literals import shown_label, shown_value
from sgc.ir.types import Type


class Context:
    """A graph with the analyses that several rules need, each computed at most once."""

    def __init__(self, graph: Graph, called: tuple[Graph, ...] = ()) -> None:
        self.graph = graph
        self.called = called  # the programs that the graph may run
        self._options: dict[int, frozenset[str]] = {}

    @cached_property
    def nodes(self) -> list[tuple[Place, Node]]:
        return list(analysis.places(self.graph))

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        return analysis.definitions(self.graph)

    @cached_property
    def following(self) -> flow.Following:
        """The successors of each block, by number."""
        return flow.following(self.graph)

    @cached_property
    def returns(self) -> list[tuple[str, str]]:
        """The edges by which a depth-first walk from the entry returns to a block that it is still
        visiting; every cycle has such an edge."""
        found = []
        is_open, is_seen = bytearray(len(self.following)), bytearray(len(self.following))
        stack = [(0, True)]
        while stack:
            block, begins = stack.pop()
            if not begins:
                is_open[block] = False
            elif not is_seen[block]:
                is_seen[block] = is_open[block] = True
                stack.append((block, False))
                stack += [(each, True) for each in self.following[block]]
                found += [
                    (str(block), str(each)) for each in self.following[block] if is_open[each]
                ]
        return found

    @cached_property
    def dominators(self) -> Tree:
        """The dominator tree of the reachable blocks, by number."""
        children: dict[str, list[str]] = {}
        for block, above in flow.dominators(self.following).items():
            children.setdefault(str(above), []).append(str(block))
        return Tree(children, ("0",))

    @cached_property
    def reached(self) -> list[int]:
        """The blocks that can run after each block, as bits; the block itself only if in a loop."""
        return flow.reached(self.following)

    @cached_property
    def params(self) -> dict[object, tuple[Value, ...]]:
        """The parameters of each block, by the block's name."""
        return {block.name: block.params for block in self.graph.blocks}

    @cached_property
    def used_up(self) -> set[str]:
        """The states that are consumed, under their own name or as a parameter of a later block."""
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

    def options(self, type_: Type) -> frozenset[str]:
        """The options of a choice as a set, shared by all values of a type."""
        key = id(type_.options)  # hashing the options would cost as much as searching them
        if key not in self._options:
            self._options[key] = frozenset(type_.options)
        return self._options[key]

    def breach(self, rule: str, message: str, place: Place) -> Breach:
        return breach_at(rule, message, self.graph, place)


Rule = Callable[[str, Context], Iterator[Breach]]


def of_each_node(messages: Callable[[Node, Context], Iterator[str]], *ops: str) -> Rule:
    """A rule about one node at a time; only about nodes of `ops`, if any are named."""

    def check(rule: str, context: Context) -> Iterator[Breach]:
        for place, node in context.nodes:
            if not ops or node.op in ops:
                for message in messages(node, context):
                    yield context.breach(rule, f"{node.op}: {message}", place)

    return check


def check_names(rule: str, context: Context) -> Iterator[Breach]:
    first: dict[str, Place] = {}
    for definition in analysis.all_definitions(context.graph):
        name, place = definition.value.name, definition.place
        if name in first:
            message = f"{shown_value(name)} is defined twice; every value has a name of its own"
            yield breach_of_pair(rule, message, first[name], place, "definition")
        first.setdefault(name, place)
    for name, count in Counter(block.name for block in context.graph.blocks).items():
        if count > 1:
            yield Breach(
                rule, f"{shown_label(name)} labels {count} blocks; every block has its own label"
            )


def check_linear_streams(rule: str, context: Context) -> Iterator[Breach]:
    uses: dict[str, list[Place]] = {}
    for place, node in context.nodes:
        for name in _used_up(context, node):
            definition = context.definitions.get(name)
            # A jump may pass other values any number of times.
            if definition is None or definition.value.type.is_stream:
                uses.setdefault(name, []).append(place)
    found = [each for name, places in uses.items() for each in _repeats(context, name, places)]
    for first, place, name in sorted(found, key=lambda each: (each[1].block, each[1].index)):
        ref = shown_value(name)
        if first is not None:
            message = f"{ref} is used twice; a stream may be used once; fork it first"
            yield breach_of_pair(rule, message, first, place, "use")
        else:
            message = f"{ref} is used by every turn of a loop; make it a block's parameter"
            yield context.breach(rule, message, place)


def _repeats(
    context: Context, name: str, uses: list[Place]
) -> Iterator[tuple[Place | None, Place, str]]:
    """The uses of a state that can run in the same run as an earlier use, or repeatedly (None).

    Arms of a branch exclude each other; a path that passes the definition again makes a new state.
    """
    definition = context.definitions.get(name)
    home = definition.place.block if definition is not None else -1
    if len(uses) == 1 and not _may_come_back(context, uses[0].block, home):
        return
    earlier: dict[int, Place] = {}
    after: dict[int, int] = {}  # what can run after a use, as bits
    used = used_after = 0
    for place in uses:
        block = place.block
        own = after[block] if block in after else _after(context, block, home)
        first = earlier.get(block)
        if first is None and (own & used or used_after >> block & 1):
            others = (n for n in sorted(earlier) if own >> n & 1 or after[n] >> block & 1)
            first = earlier[next(others)]
        if first is not None:
            yield first, place, name
            continue
        earlier[block], after[block] = place, own
        used, used_after = used | 1 << block, used_after | own
        if block != home and own >> block & 1:
            yield None, place, name


def _may_come_back(context: Context, block: int, home: int) -> bool:
    """Whether a path might lead from a block to itself without passing the block `home`.

    If `home` dominates the block, it dominates all blocks of such a path, and the path has an edge
    of `returns`.
    """
    tree, above = context.dominators, str(home)
    if home == block or not tree.is_at_or_above(above, str(block)):
        return home != block
    return any(
        above not in edge and all(tree.is_at_or_above(above, each) for each in edge)
        for edge in context.returns
    )


def _after(context: Context, block: int, home: int) -> int:
    """The blocks that can run after a block, as bits, on paths that do not pass `home`."""
    reached = context.reached
    if home < 0 or not reached[block] >> home & 1:
        return reached[block]
    following = context.following
    is_found = bytearray(len(following))
    is_found[home] = True  # so that the walk does not pass it
    queue = [block]
    found = 0
    while queue:
        for number in following[queue.pop()]:
            if not is_found[number]:
                is_found[number] = True
                found |= 1 << number
                queue.append(number)
    return found


def _used_up(context: Context, node: Node) -> list[str]:
    """The states that a node consumes; for a jump, the states whose parameter is consumed later."""
    if node.op != "jump":
        return analysis.consumed(node)
    return [name for name, param in _handed_on(context, node) if param in context.used_up]


def _handed_on(context: Context, jump: Node) -> Iterator[tuple[str, str]]:
    """The values that a jump passes, each with its parameter."""
    target, args = jump.get("target"), jump.get("args")
    params = context.params.get(target.value if isinstance(target, Lit) else None, ())
    for arg, param in zip(args if isinstance(args, tuple) else (), params, strict=False):
        if isinstance(arg, Ref):
            yield arg.name, param.name


def check_dominance(rule: str, context: Context) -> Iterator[Breach]:
    for place, node in context.nodes:
        for name in dict.fromkeys(node.refs()):
            definition = context.definitions.get(name)
            if definition is None:
                yield context.breach(rule, f"{shown_value(name)} is not defined", place)
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
        return f"{shown_value(name)} is used before it is defined"
    block = context.graph.blocks[definition.block].name
    place = f"{shown_value(name)} is defined in {shown_label(block)}"
    return f"{place}, which not every path to this node passes"


def check_count(rule: str, context: Context) -> Iterator[Breach]:
    found = len(context.graph.blocks)
    if found > MAX_BLOCKS:
        yield Breach(rule, f"the program has {found} blocks; there may be {MAX_BLOCKS}")


def check_blocks(rule: str, context: Context) -> Iterator[Breach]:
    blocks = context.graph.blocks
    if not blocks:
        yield Breach(rule, "the program has no block; it needs at least `return`")
    elif blocks[0].params:
        yield Breach(
            rule, f"the entry block {shown_label(blocks[0].name)} has parameters; use the program's"
        )
    for block in blocks:
        if not block.nodes:
            message = f"{shown_label(block.name)} is empty"
            yield Breach(rule, f"{message}; end it with a terminator such as `return`")
    for place, node in context.nodes:
        is_last = place.index == len(blocks[place.block].nodes) - 1
        if is_last and not node.is_terminator:
            message = "the block does not end with a terminator such as `return`"
            yield context.breach(rule, message, place)
        elif node.is_terminator and not is_last:
            message = f"{node.op} ends a block, but more nodes follow"
            yield context.breach(rule, message, place)


def check_spans(rule: str, context: Context) -> Iterator[Breach]:
    spans = [(place, node, span) for place, node in context.nodes if (span := node.spec.span)]
    tree = analysis.prompt_tree(context.graph) if spans else Tree({}, ())
    joined = {param.name for block in context.graph.blocks for param in block.params}
    for place, node, span in spans:
        start, end = map(dict(node.fields).get, span)
        if not isinstance(start, Ref) or not isinstance(end, Ref):
            continue
        # After paths have joined, the tree does not tell which state a state continues.
        is_joined = bool(joined) and end.name in tree and tree.root_of[end.name] in joined
        is_known = start.name in tree and end.name in tree and not is_joined
        if is_known and not tree.is_at_or_above(start.name, end.name):
            states = f"{shown_value(end.name)} does not continue {shown_value(start.name)}"
            message = f"{states}; a span lies in one stream"
            yield context.breach(rule, message, place)
