"""Makes the blocks of a graph from the segments that exploring a program has found.

Every segment with several predecessors first takes all its symbols as parameters. Parameters that
have the same value from every predecessor, and parameters that nothing reads, are then dropped (as
in Braun et al., "Simple and Efficient Construction of SSA Form", 2013). Segments in a row become
one block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sgc.core.symbols import Namer
from sgc.ir import types
from sgc.ir.analysis.flow import dominators
from sgc.ir.graph import Block, Lit, Loc, Node, Operand, Ref, Value, make_node
from sgc.tracing.kinds.row_types import plain
from sgc.tracing.paths.segments import Branch, Goto, Segment, reached_from, targets

Env = Mapping[str, str]  # from a symbol's name to the value that it has in this block


@dataclass(slots=True)
class _Box:
    """A block being made. args: the arguments of its final jump, by the target's symbols."""

    name: str = ""
    params: dict[str, Value] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    target: int | None = None
    args: dict[str, str | Lit | None] = field(default_factory=dict)
    loc: Loc | None = None


def assemble(entry: Segment, namer: Namer, callers: Mapping[str, str]) -> tuple[Block, ...]:
    """The blocks of a graph. callers: for each stream that a call begins, the caller's stream."""
    return _Assembly(entry, namer, callers).blocks()


class _Assembly:
    def __init__(self, entry: Segment, namer: Namer, callers: Mapping[str, str]) -> None:
        self._entry, self._namer, self._callers = entry, namer, callers
        self._reached = list(reached_from(entry).values())
        self._joins = self._find_joins()
        self._above = self._dominators()
        self._ends: dict[int, Env] = {}  # by segment: the names of values at its end
        self._boxes: dict[int, _Box] = {}
        self._symbols_of: dict[int, list[tuple[str, types.Type]]] = {}
        self._same: dict[str, str] = {}  # dropped parameters, with their only values

    def blocks(self) -> tuple[Block, ...]:
        self._fill(self._entry, {})
        self._before = {
            number: [box for box in self._boxes.values() if box.target == number]
            for number in self._joins
        }
        self._drop_trivial()
        for box in self._boxes.values():
            box.nodes = [renamed(node, self._resolved(node.refs())) for node in box.nodes]
        self._drop_unread()
        self._append_lone()
        self._name()
        return tuple(self._close(box) for box in self._boxes.values())

    def _find_joins(self) -> set[int]:
        """Segments with several predecessors, or with one that passes renamed values."""
        n_before: Counter[int] = Counter()
        for segment in self._reached:
            n_before.update(target.number for target in targets(segment))
            if isinstance(segment.way, Goto) and segment.way.mapped:
                n_before[segment.way.target.number] += 1
        return {number for number, n in n_before.items() if n > 1}

    def _dominators(self) -> dict[int, int]:
        """The immediate dominator of each segment."""
        flow: list[list[int]] = [[] for _ in range(1 + max(each.number for each in self._reached))]
        for segment in self._reached:
            flow[segment.number] = [target.number for target in targets(segment)]
        return dominators(flow, self._entry.number)

    # -- filling --------------------------------------------------------------------------

    def _fill(self, segment: Segment, env: Env) -> None:
        """Makes the block that a segment begins, and all blocks after it; without recursion, since
        chains of blocks are long.
        """
        waiting: list[tuple[Segment, Env]] = [(segment, env)]
        while waiting:
            segment, env = waiting.pop()
            if segment.number in self._boxes:
                continue
            box = _Box()
            self._boxes[segment.number] = box
            if segment.number in self._joins:
                # Only names from the dominator: a value in no snapshot, such as a call's caller,
                # must not keep a name from one of the paths.
                env = self._ends.get(self._above.get(segment.number, -1), {})
                env = self._take_params(segment, box, env)
            waiting += reversed(list(self._extend(box, segment, dict(env))))

    def _take_params(self, segment: Segment, box: _Box, env: Env) -> Env:
        found = dict(env)
        for name, type_ in self._symbols(segment):
            box.params[name] = Value(self._namer.fresh(name.partition(".")[0]), plain(type_))
            found[name] = box.params[name].name
        return found

    def _extend(
        self, box: _Box, segment: Segment, env: dict[str, str]
    ) -> Iterator[tuple[Segment, Env]]:
        """Adds a segment, and the segments that only it leads to; yields the segments of the next
        blocks, with their names for values."""
        while True:
            for node in (*segment.nodes, *segment.published):
                box.nodes.append(self._moved(node, env))
                for value in node.results:  # from here on the name means this value, also in loops
                    env.pop(value.name, None)
            end = segment.way
            if isinstance(end, Branch):
                test = Ref(env.get(end.test.name, end.test.name))
                names = {"then": str(end.then.number), "orelse": str(end.orelse.number)}
                fields: dict[str, Operand] = {key: Lit(name) for key, name in names.items()}
                box.nodes.append(make_node("branch", (), end.loc, test=test, **fields))
                self._ends[segment.number] = env
                yield end.then, env
                yield end.orelse, env
                return
            if not isinstance(end, Goto):
                return
            if end.target.number in self._joins:
                self._jump(box, end, env)
                self._ends[segment.number] = env
                yield end.target, env
                return
            segment = end.target

    def _symbols(self, segment: Segment) -> list[tuple[str, types.Type]]:
        """The symbols that a segment's state holds, each once."""
        if segment.number not in self._symbols_of:
            assert segment.snapshot is not None
            found = {slot.name: slot.type for slot in segment.snapshot.whole.slots}
            for names in segment.snapshot.names:
                for part in names.values():
                    found |= {slot.name: slot.type for slot in part.slots}
            self._symbols_of[segment.number] = list(found.items())
        return self._symbols_of[segment.number]

    def _jump(self, box: _Box, end: Goto, env: Env) -> None:
        box.target, box.loc = end.target.number, end.loc
        for name, _ in self._symbols(end.target):
            given = name if end.mapped is None else end.mapped.get(name, name)
            assert given is None or isinstance(given, (str, Lit))
            box.args[name] = env.get(given, given) if isinstance(given, str) else given

    def _moved(self, node: Node, env: Mapping[str, str]) -> Node:
        if node.op == "stream" and self._joins:
            caller = self._callers.get(node.results[0].name)
            if caller is not None:
                node = make_node(
                    "stream", node.results, node.loc,
                    name=node.get("name"), caller=Ref(caller),
                )  # fmt: skip
        return renamed(node, env)

    # -- parameters -----------------------------------------------------------------------

    def _arguments(self, number: int, name: str) -> list[str | Lit | None]:
        given = [box.args[name] for box in self._before[number]]
        return [self._find(value) if isinstance(value, str) else value for value in given]

    def _find(self, name: str) -> str:
        while name in self._same:
            name = self._same[name]
        return name

    def _resolved(self, names: Iterator[str]) -> Env:
        return {name: self._find(name) for name in names if name in self._same}

    def _drop_trivial(self) -> None:
        """Drops parameters that have the same value on every path."""
        is_changed = True
        while is_changed:
            is_changed = False
            for number, box in self._boxes.items():
                for name, param in list(box.params.items()):
                    others = set(self._arguments(number, name)) - {param.name}
                    if len(others) != 1:
                        continue
                    (value,) = others
                    if not isinstance(value, str):
                        continue
                    self._same[param.name] = value
                    self._drop(number, name)
                    is_changed = True

    def _drop(self, number: int, name: str) -> None:
        del self._boxes[number].params[name]
        for box in self._before[number]:
            del box.args[name]

    def _drop_unread(self) -> None:
        """Drops parameters that are only passed on and never read."""
        read = {name for box in self._boxes.values() for node in box.nodes for name in node.refs()}
        by_name = {
            param.name: (number, name)
            for number, box in self._boxes.items()
            for name, param in box.params.items()
        }
        queue = [name for name in by_name if name in read]
        kept = set(queue)
        while queue:
            for value in self._arguments(*by_name[queue.pop()]):
                if isinstance(value, str) and value in by_name and value not in kept:
                    kept.add(value)
                    queue.append(value)
        for param, (number, name) in by_name.items():
            if param not in kept:
                self._drop(number, name)

    def _append_lone(self) -> None:
        """Appends each block without parameters that only one block jumps to, to that block."""
        branched = {
            int(node.text(key))
            for box in self._boxes.values()
            for node in box.nodes
            if node.op == "branch"
            for key in ("then", "orelse")
        }
        for number, box in list(self._boxes.items()):
            if number not in self._boxes:
                continue
            while box.target is not None and box.target not in branched:
                following = self._boxes[box.target]
                if following is box or following.params or len(self._before[box.target]) > 1:
                    break
                del self._boxes[box.target]
                box.nodes += following.nodes
                box.target, box.args = following.target, following.args
                box.loc = following.loc
                if box.target is not None:
                    before = self._before[box.target]
                    before[next(n for n, b in enumerate(before) if b is following)] = box

    def _name(self) -> None:
        for n, box in enumerate(self._boxes.values()):
            box.name = f"b{n}" if n else "entry"

    # -- the end --------------------------------------------------------------------------

    def _close(self, box: _Box) -> Block:
        nodes = [self._labelled(node) for node in box.nodes]
        if box.target is not None:
            target = self._boxes[box.target]
            operands: list[Operand] = []
            for name, param in target.params.items():
                given = box.args[name]
                if isinstance(given, Lit):
                    operands.append(given)
                    continue
                given = given if given is None else self._find(given)
                if given is None:
                    value = Value(self._namer.fresh("unset"), param.type)
                    nodes.append(make_node("unset", (value,), box.loc, name=Lit(_shown(name))))
                    given = value.name
                operands.append(Ref(given))
            fields: dict[str, Operand] = {"target": Lit(target.name)}
            if operands:
                fields["args"] = tuple(operands)
            nodes.append(make_node("jump", (), box.loc, **fields))
        return Block(box.name, tuple(box.params.values()), tuple(nodes))

    def _labelled(self, node: Node) -> Node:
        if node.op != "branch":
            return node
        names = {key: self._boxes[int(node.text(key))].name for key in ("then", "orelse")}
        return node.with_fields(**{key: Lit(name) for key, name in names.items()})


def _shown(name: str) -> str:
    """The user's name of a value, without the number that makes it unique."""
    return name.partition(".")[0]


def renamed(node: Node, env: Env) -> Node:
    """The node with the values that it uses renamed."""
    if not any(name in env for name in node.refs()):
        return node
    return replace(node, fields=tuple((key, _renamed(op, env)) for key, op in node.fields))


def _renamed(operand: Operand, env: Env) -> Operand:
    if isinstance(operand, Ref):
        return Ref(env[operand.name]) if operand.name in env else operand
    if isinstance(operand, tuple):
        return tuple(_renamed(item, env) for item in operand)
    return operand
