"""What a row's prompts will begin with, read off its graph before anything is generated.

The row's path through the program is followed as far as its arguments decide it. Texts made of
constants and arguments are evaluated with the executor's own functions; what is generated, read
from files or given by tools is unknown, and ends what is known of the stream it is appended to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sgc.ir.analysis.dependencies import consumed
from sgc.ir.graph import Block, Graph, Lit, Node, Operand, Ref
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.ops.functions import evaluate, failure
from sgc.runtime.executor.ops.handlers import as_text

Pieces = tuple[str, ...]

# Of one row; what lies beyond is ignored, so that the plan only knows less.
MAX_NODES = 2_000
MAX_PROMPTS = 64
MAX_CALLS = 256

UNKNOWN: Any = object()


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a row: the beginning of each of its prompts, in the program's order.

    later_chars: characters of constants and arguments after something generated; generated_tokens:
    the most tokens generated on the known path, a select's choices included.
    """

    prompts: tuple[Pieces, ...]
    later_chars: int
    generated_tokens: int


@dataclass(slots=True, eq=False)
class _State:
    """A stream state: a link to the state before, and a piece; closed after unknown text."""

    before: _State | None
    piece: str = ""
    is_closed: bool = False
    is_extended: bool = False

    def pieces(self) -> Pieces:
        found = []
        state: _State | None = self
        while state is not None:
            if state.piece:
                found.append(state.piece)
            state = state.before
        return tuple(reversed(found))


class Reader:
    """Reads rows of one graph. max_tokens: of generations that name none."""

    def __init__(self, graph: Graph, max_tokens: int) -> None:
        self._graph = graph
        self._defaults = _defaults(graph)
        self._max_tokens = max_tokens
        self._streams = {
            id(node): name for node in graph.all_nodes() for name in consumed(node)[:1]
        }

    def read(self, arguments: Mapping[str, Any]) -> Known:
        """What is known of a row. arguments: those that `run_graph` would take."""
        walk = _Walk(self._graph.called, self._streams, self._max_tokens)
        walk.run(self._graph, {**self._defaults, **arguments})
        return Known(tuple(walk.prompts), walk.later_chars, walk.generated_tokens)


@dataclass(slots=True)
class _Walk:
    """One row's path through a graph and the programs it calls.

    streams: the state that a node uses up, by the node's identity.
    """

    called: tuple[Graph, ...]
    streams: Mapping[int, str]
    max_tokens: int
    prompts: list[Pieces] = field(default_factory=list)
    later_chars: int = 0
    generated_tokens: int = 0
    n_nodes: int = 0

    def run(self, graph: Graph, values: dict[str, Any]) -> None:
        blocks = {block.name: block for block in graph.blocks}
        block: Block | None = graph.blocks[0]
        while block is not None and self.n_nodes < MAX_NODES:
            self.n_nodes += len(block.nodes)
            for node in block.nodes[:-1]:
                self._step(node, values)
            last = block.nodes[-1]
            if last.op == "return":
                return  # text that no request used is no prompt
            block = _next(blocks, last, values)
        for state in [value for value in values.values() if type(value) is _State]:
            self._close(state)  # a decision: all paths have this much in common

    def _step(self, node: Node, values: dict[str, Any]) -> None:
        if node.op in _EXTENDS:
            self._extend(node, values)
        elif Flag.SAME in node.flags:
            state = values[self.streams[id(node)]]
            values.update((result.name, _child(state)) for result in node.results)
            state.is_extended = True
        elif node.op == "stream":
            values[node.results[0].name] = _State(None)
        elif node.op in _VALUES:
            values[node.results[0].name] = _VALUES[node.op](node, values)
        elif node.op == "attempt":
            found = _attempt(node, values)
            values.update(zip((result.name for result in node.results), found, strict=True))
        else:
            self._ask(node, values)

    def _extend(self, node: Node, values: dict[str, Any]) -> None:
        """Appends constants, roles and values; an unknown value closes the stream."""
        piece = _EXTENDS[node.op](node, values)
        before: _State = values[self.streams[id(node)]]
        if piece is UNKNOWN:
            self._close(before)
        elif before.is_closed:
            self.later_chars += len(piece)
        else:
            before.is_extended = True
            values[node.results[0].name] = _State(before, piece)
            return
        values[node.results[0].name] = _State(None, is_closed=True)

    def _ask(self, node: Node, values: dict[str, Any]) -> None:
        """A node whose results are unknown: the known prompt of its stream ends here."""
        stream = self.streams.get(id(node))
        if stream is not None:
            self._close(values[stream])
        if Flag.GENERATES in node.flags:
            self.generated_tokens += self._most_generated(node, values)
        elif node.op == "select":
            is_list = node.get("among") not in (None, Lit(None))
            choices = _value(node.get("among" if is_list else "choices"), values)
            self.generated_tokens += 0 if choices is UNKNOWN else sum(map(len, choices))
        elif Flag.CALLS in node.flags:
            self._map(node, values)
        for result in node.results:
            is_stream = result.type.is_stream
            values[result.name] = _State(None, is_closed=True) if is_stream else UNKNOWN

    def _most_generated(self, node: Node, values: dict[str, Any]) -> int:
        n = _value(dict(node.fields).get("n", Lit(1)), values)
        most = _value(node.get("max_tokens"), values)
        own = most if isinstance(most, int) else self.max_tokens
        return own * (n if isinstance(n, int) else 1)

    def _map(self, node: Node, values: dict[str, Any]) -> None:
        """The prompts of each call of a called program, where the list is known."""
        items, fixed = _value(node.get("items"), values), _value(node.get("args"), values)
        if items is UNKNOWN or fixed is UNKNOWN or not isinstance(items, (list, tuple)):
            return
        number = node.get("program")
        assert isinstance(number, Lit)
        graph = self.called[int(number.value)]  # type: ignore[arg-type]
        given = dict(zip(_value(node.get("keys"), values), fixed, strict=True))
        names = [param.value.name for param in graph.params]
        (element,) = (name for name in names if name not in given)
        for item in items[:MAX_CALLS]:
            self.run(graph, {**_defaults(graph), **given, element: item})

    def _close(self, state: _State) -> None:
        if state.is_closed or state.is_extended:
            return
        state.is_closed = True
        pieces = state.pieces()
        if pieces and len(self.prompts) < MAX_PROMPTS:
            self.prompts.append(pieces)


def _child(state: _State) -> _State:
    return _State(state, is_closed=state.is_closed)


def _defaults(graph: Graph) -> dict[str, Any]:
    given = {p.value.name: p.default for p in graph.params if p.default is not None}
    return {name: _value(default, {}) for name, default in given.items()}


def _next(blocks: Mapping[str, Block], last: Node, values: dict[str, Any]) -> Block | None:
    """The block that a terminator leads to; None if that is not known."""
    if last.op == "jump":
        block = blocks[last.text("target")]
        args = last.get("args")
        assert isinstance(args, tuple)
        handed = [_value(arg, values) for arg in args]
        values.update(zip((param.name for param in block.params), handed, strict=True))
        return block
    if last.op == "branch":
        test = _value(last.get("test"), values)
        return None if test is UNKNOWN else blocks[last.text("then" if test else "orelse")]
    if last.op == "switch":
        value = _value(last.get("value"), values)
        cases, targets = _value(last.get("cases"), values), _value(last.get("targets"), values)
        if value is UNKNOWN:
            return None
        return blocks.get(dict(zip(cases, targets, strict=True)).get(value, last.text("default")))
    return None


# -- values -------------------------------------------------------------------------------------


def _value(operand: Operand, values: Mapping[str, Any]) -> Any:
    if isinstance(operand, Ref):
        return values.get(operand.name, UNKNOWN)
    if isinstance(operand, Lit):
        return operand.value
    found = [_value(item, values) for item in operand]
    return UNKNOWN if any(value is UNKNOWN for value in found) else tuple(found)


def _given(name: str, make: Callable[[Node, Any], Any]) -> Callable[[Node, Mapping[str, Any]], Any]:
    """The value of an op of one operand; unknown if the operand is, or if the op fails."""

    def value(node: Node, values: Mapping[str, Any]) -> Any:
        found = _value(node.get(name), values)
        if found is UNKNOWN:
            return UNKNOWN
        try:
            return make(node, found)
        except Exception:  # the run fails there too, with an error that names the user's line
            return UNKNOWN

    return value


def _attempt(node: Node, values: Mapping[str, Any]) -> tuple[Any, Any]:
    error = _given("args", lambda node, args: (failure(node.text("fn"), *args),))(node, values)
    if error is UNKNOWN:
        return UNKNOWN, UNKNOWN
    return (True, "") if error[0] is None else (False, str(error[0]))


def _record(node: Node, values: Mapping[str, Any]) -> Any:
    keys, items = _value(node.get("keys"), values), _value(node.get("items"), values)
    if items is UNKNOWN:
        return UNKNOWN
    is_dict = keys or not (items or node.get("is_tuple") == Lit(True))
    return dict(zip(keys, items, strict=True)) if is_dict else items


_VALUES: Mapping[str, Callable[[Node, Mapping[str, Any]], Any]] = {
    "concat": _given("parts", lambda _, parts: "".join(map(as_text, parts))),
    "format": _given("value", lambda node, value: format(value, node.text("spec"))),
    "compute": _given("args", lambda node, args: evaluate(node.text("fn"), *args)),
    "list": _given("items", lambda _, items: list(items)),
    "record": _record,
}

# The template's text around a role depends on the model; here it only matters that it is there.
_EXTENDS: Mapping[str, Callable[[Node, Mapping[str, Any]], Any]] = {
    "const": lambda node, _: node.text("text"),
    "append": _given("value", lambda _, value: as_text(value)),
    "role_begin": lambda node, _: f"<|{node.text('role')}|>",
    "role_end": lambda node, _: f"<|/{node.text('role')}|>",
}
