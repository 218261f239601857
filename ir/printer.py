"""Graphs as text that people read and the parser reads back: `parse(to_text(g)) == g`.

Text is program; what follows `#` is fact (source lines, receipts), which the parser drops.
A result's type is printed only where it is not the one its op's row implies. This prints
graphs that break the verifier's rules too, so that errors can show them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sgc.ir.graph import Block, Graph, Guard, Lit, Loc, Node, Operand, Param, Receipt, Ref, Value
from sgc.ir.literals import escape, label, name_text, quote, scalar_text, value_ref, word_text
from sgc.ir.op_specs import OpSpec
from sgc.ir.types import TEXT, Kind, Type, list_of

TEXT_VERSION = 1
# The only block of a straight-line program has this name and needs no label.
ENTRY_BLOCK = "entry"

_MAX_RESULTS_WIDTH = 16
_OP_WIDTH = 6
_COMMENT_COLUMN = 60


def to_text(graph: Graph) -> str:
    """The text form of a graph, with a final newline."""
    lines = [f"sgir {TEXT_VERSION}", *map(guard_text, graph.guards)]
    lines += _program_lines("program", graph)
    for each in graph.called:
        lines += _program_lines("called", each)
    return "\n".join(lines) + "\n"


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
    """One line a node, indented, `=` aligned, the source line as a comment."""
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


def node_text(node: Node) -> str:
    """A node on one line, neither indented nor aligned, without its source line."""
    left = results_text(node)
    return f"{left} = {_call_text(node)}" if left else _call_text(node)


def results_text(node: Node) -> str:
    implied = implied_types(node.spec, len(node.results))
    return ", ".join(map(_result_text, node.results, implied))


def implied_types(spec: OpSpec, n_results: int) -> list[Type | None]:
    """The types of an op's results where none are written; None where they must be, and past
    those of its row.
    """
    kinds = list(spec.results)
    if spec.variadic_results:
        kinds += [kinds[-1]] * (n_results - len(kinds))
    types = [None if k is None else list_of(TEXT) if k is Kind.LIST else Type(k) for k in kinds]
    return (types + [None] * n_results)[:n_results]


def _result_text(value: Value, implied: Type | None) -> str:
    return value_ref(value.name) if value.type == implied else value_text(value)


def value_text(value: Value) -> str:
    return f"{value_ref(value.name)}: {type_text(value.type)}"


def type_text(type_: Type) -> str:
    if type_.item is not None:
        return f"list[{type_text(type_.item)}]"
    if type_.options:
        return f"choice[{', '.join(map(quote, type_.options))}]"
    return str(type_.kind)


def _call_text(node: Node, op_width: int = 0) -> str:
    words = [f"{node.op:<{op_width}}"]
    bare = _count_positional(node)
    for index, (name, operand) in enumerate(node.fields):
        text = operand_text(operand)
        words.append(text if index < bare else f"{name}={text}")
    return " ".join(words).rstrip()


def _count_positional(node: Node) -> int:
    """How many leading fields need no name: those that fill the row's positional ones."""
    positional = [row.name for row in node.spec.fields if row.positional]
    given = [name for name, _ in node.fields]
    count = 0
    while count < min(len(positional), len(given)) and positional[count] == given[count]:
        count += 1
    return count


def operand_text(operand: Operand) -> str:
    if isinstance(operand, Ref):
        return value_ref(operand.name)
    if isinstance(operand, Lit):
        return scalar_text(operand.value)
    return f"[{', '.join(map(operand_text, operand))}]"


def param_text(param: Param) -> str:
    default = "" if param.default is None else f" = {operand_text(param.default)}"
    return value_text(param.value) + default


def block_text(block: Block) -> str:
    params = ", ".join(map(value_text, block.params))
    return f"{label(block.name)}({params}):" if params else f"{label(block.name)}:"


def guard_text(guard: Guard) -> str:
    return f"guard {word_text(guard.kind)} {quote(guard.name)} {quote(guard.value)}"


def loc_text(loc: Loc) -> str:
    """The user's place on one line; a file's name may hold anything."""
    place = f"{escape(loc.file)}:{loc.line}"
    return f"{place} in {escape(loc.function)}()" if loc.function else place


def _receipt_comment(receipt: Receipt) -> str:
    counts = f"{receipt.nodes_before} -> {receipt.nodes_after} nodes"
    name, preserves = escape(receipt.pass_name), escape(receipt.preserves)
    return f"# pass {name} preserves={preserves} {counts}: {escape(receipt.summary)}"
