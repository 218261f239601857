"""Prints graphs in the text form, which the parser reads back: `parse(to_text(g)) == g`.

Source lines and receipts are comments, after `#`, which the parser drops. A result's type is
printed only if its op's row does not imply it. The printer also prints graphs that break the
verifier's rules, so that errors can show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sgc.ir.graph import Block, Graph, Guard, Loc, Node, Operand, Param, Receipt, Ref, Value
from sgc.ir.op_specs import OpSpec
from sgc.ir.text.literals import (
    PLAIN_NAME,
    escape,
    label,
    name_text,
    quote,
    scalar_text,
    value_ref,
    word_text,
)
from sgc.ir.types import TEXT, Kind, Type, list_of

TEXT_VERSION = 1
# The only block of a straight-line program has this name and needs no label.
ENTRY_BLOCK = "entry"

_MAX_RESULTS_WIDTH = 16
_OP_WIDTH = 6
_COMMENT_COLUMN = 60
# Long texts are escaped in chunks of so many characters.
_CHUNK = 10_000


def to_text(graph: Graph) -> str:
    """The text form of a graph, with a final newline."""
    lines = [f"sgir {TEXT_VERSION}", *map(guard_text, graph.guards)]
    lines += _program_lines("program", graph)
    for each in graph.called:
        lines += _program_lines("called", each)
    return "\n".join([*lines, ""])


def _program_lines(word: str, graph: Graph) -> Iterator[str]:
    for receipt in graph.receipts:
        yield _receipt_comment(receipt)
        yield from (f"#   {escape(line)}" for line in receipt.details)
    params = ", ".join(map(param_text, graph.params))
    yield f"{word} @{name_text(graph.name)}({params}) {{"
    is_plain = len(graph.blocks) == 1 and _needs_no_label(graph.blocks[0])
    for block in graph.blocks:
        if not is_plain:
            yield block_text(block)
        yield from node_lines(block.nodes)
    yield "}"


def _needs_no_label(block: Block) -> bool:
    return block.name == ENTRY_BLOCK and not block.params and bool(block.nodes)


def node_lines(nodes: tuple[Node, ...]) -> Iterator[str]:
    """One line per node, indented, with aligned `=` and the source line as a comment."""
    results = [results_text(node) for node in nodes]
    short = [len(text) for text in results if len(text) <= _MAX_RESULTS_WIDTH]
    width = max(short, default=0)
    for node, left in zip(nodes, results, strict=True):
        line = (
            f"  {left:<{width}} = {_call_text(node, _OP_WIDTH)}"
            if left
            else f"  {_call_text(node)}"
        )
        yield line if node.loc is None else f"{line:<{_COMMENT_COLUMN}}  # {loc_text(node.loc)}"


def node_text(node: Node, most: int | None = None) -> str:
    """A node on one line, neither indented nor aligned, without its source line.

    most: the number of characters after which the text is cut; the rest is not computed.
    """
    return _joined(_node_parts(node), most)


def _node_parts(node: Node) -> Iterator[str]:
    if node.results:
        yield from _results_parts(node)
        yield " = "
    yield from _call_parts(node)


def _joined(parts: Iterable[str], most: int | None = None) -> str:
    """The parts as one text; if it is longer than `most`, its beginning and an ellipsis."""
    if most is None:
        return "".join(parts)
    held, left = [], most + 1
    for part in parts:
        held.append(part[:left])
        left -= len(held[-1])
        if not left:
            return "".join(held)[: most - 1] + "…"
    return "".join(held)


def _separated(items: Iterable[Iterable[str]]) -> Iterator[str]:
    for number, parts in enumerate(items):
        if number:
            yield ", "
        yield from parts


def results_text(node: Node) -> str:
    return _joined(_results_parts(node))


def _results_parts(node: Node) -> Iterator[str]:
    implied = implied_types(node.spec, len(node.results))
    return _separated(map(_result_parts, node.results, implied))


def implied_types(spec: OpSpec, n_results: int) -> list[Type | None]:
    """The types that an op's row implies for its results; None for those that must be written, and
    for results that are not in the row.
    """
    kinds = list(spec.results)
    if spec.variadic_results:
        kinds += [kinds[-1]] * (n_results - len(kinds))
    types = [None if k is None else list_of(TEXT) if k is Kind.LIST else Type(k) for k in kinds]
    return (types + [None] * n_results)[:n_results]


def _result_parts(value: Value, implied: Type | None) -> Iterator[str]:
    yield from _name_parts(value.name)
    if value.type != implied:
        yield ": "
        yield from _type_parts(value.type)


def value_text(value: Value) -> str:
    return f"{value_ref(value.name)}: {type_text(value.type)}"


def type_text(type_: Type, most: int | None = None) -> str:
    """A type on one line. most: the number of characters after which it is cut."""
    return _joined(_type_parts(type_), most)


def _type_parts(type_: Type) -> Iterator[str]:
    if type_.item is not None:
        yield "list["
        yield from _type_parts(type_.item)
        yield "]"
    elif type_.options:
        yield "choice["
        yield from _separated(map(_quote_parts, type_.options))
        yield "]"
    else:
        yield str(type_.kind)


def _call_text(node: Node, op_width: int = 0) -> str:
    return _joined(_call_parts(node, op_width))


def _call_parts(node: Node, op_width: int = 0) -> Iterator[str]:
    yield f"{node.op:<{op_width}}" if node.fields else node.op
    bare = _count_positional(node)
    for index, (name, operand) in enumerate(node.fields):
        yield " " if index < bare else f" {name}="
        yield from _operand_parts(operand)


def _count_positional(node: Node) -> int:
    """The number of leading fields that fill the row's positional fields, and need no name."""
    positional = [row.name for row in node.spec.fields if row.positional]
    given = [name for name, _ in node.fields]
    count = 0
    while count < min(len(positional), len(given)) and positional[count] == given[count]:
        count += 1
    return count


def operand_text(operand: Operand, most: int | None = None) -> str:
    """An operand on one line. most: the number of characters after which it is cut."""
    return _joined(_operand_parts(operand), most)


def _operand_parts(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Ref):
        yield from _name_parts(operand.name)
    elif isinstance(operand, tuple):
        yield "["
        yield from _separated(map(_operand_parts, operand))
        yield "]"
    elif isinstance(operand.value, str):
        yield from _quote_parts(operand.value)
    else:
        yield scalar_text(operand.value)


def _name_parts(name: str) -> Iterator[str]:
    yield "%"
    if PLAIN_NAME.match(name):
        yield name
    else:
        yield from _quote_parts(name)


def _quote_parts(text: str) -> Iterator[str]:
    """The result of `quote` in chunks."""
    if len(text) <= _CHUNK:
        yield quote(text)
        return
    yield '"'
    for start in range(0, len(text), _CHUNK):
        yield escape(text[start : start + _CHUNK])
    yield '"'


def param_text(param: Param) -> str:
    default = "" if param.default is None else f" = {operand_text(param.default)}"
    return value_text(param.value) + default


def block_text(block: Block) -> str:
    params = ", ".join(map(value_text, block.params))
    return f"{label(block.name)}({params}):" if params else f"{label(block.name)}:"


def guard_text(guard: Guard) -> str:
    return f"guard {word_text(guard.kind)} {quote(guard.name)} {quote(guard.value)}"


def loc_text(loc: Loc) -> str:
    """A place in the user's source on one line, escaped, since a file's name may hold anything."""
    place = f"{escape(loc.file)}:{loc.line}"
    return f"{place} in {escape(loc.function)}()" if loc.function else place


def _receipt_comment(receipt: Receipt) -> str:
    counts = f"{receipt.nodes_before} -> {receipt.nodes_after} nodes"
    name, preserves = escape(receipt.pass_name), escape(receipt.preserves)
    return f"# pass {name} preserves={preserves} {counts}: {escape(receipt.summary)}"
