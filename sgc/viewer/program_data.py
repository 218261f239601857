"""A program as a page draws it: blocks of nodes, the paths between them, its source lines."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sgc.ir.analysis.dependencies import successors
from sgc.ir.graph import Block, Graph, Lit, Node, Param, Receipt
from sgc.ir.op_specs import Flag
from sgc.ir.text.printer import node_text, param_text, to_text, value_text
from sgc.passes.base import Pass

_MAX_NODE = 400  # characters of one node
_MAX_DIFF = 2_000  # lines of what one pass changed
_MAX_SOURCE_BYTES = 1 << 20

# The first flag that an op has says how its nodes are drawn.
_KINDS: tuple[tuple[Flag, str], ...] = (
    (Flag.TERMINATOR, "flow"),
    (Flag.GENERATES, "generation"),
    (Flag.ASKS, "choice"),
    (Flag.HOST, "tool"),
    (Flag.HINT, "hint"),
    (Flag.APPENDS, "prompt"),
)


def program_data(
    graph: Graph,
    sources: Mapping[str, Path] | None = None,
    steps: Iterable[tuple[Pass, Graph, Graph]] = (),
) -> dict[str, Any]:
    """sources: the source files of nodes, by the names in their locations; steps: each pass that
    ran, with the graph before and after it.
    """
    changes = {row.name: (before, after) for row, before, after in steps if after is not before}
    return {
        "name": graph.name,
        "graphs": [_graph(each) for each in (graph, *graph.called)],
        "sources": dict(_sources(graph, sources or {})),
        "passes": [_receipt(each, changes.get(each.pass_name)) for each in graph.receipts],
        "nodes": graph.n_nodes,
    }


def _graph(graph: Graph) -> dict[str, Any]:
    numbers = {block.name: number for number, block in enumerate(graph.blocks)}
    return {
        "name": graph.name,
        "params": [_param(each) for each in graph.params],
        "blocks": [_block(each) for each in graph.blocks],
        "edges": [
            [numbers[block.name], numbers[target], label]
            for block in graph.blocks
            for target, label in _targets(block)
            if target in numbers
        ],
    }


def _param(param: Param) -> str:
    return param_text(param)[:_MAX_NODE]


def _block(block: Block) -> dict[str, Any]:
    return {
        "name": block.name,
        "params": [value_text(value) for value in block.params],
        "nodes": [_node(node) for node in block.nodes],
    }


def _node(node: Node) -> list[str]:
    """Its text, kind, line and the variable that it sets."""
    name = "".join(_literals(node, "name")[:1])
    return [node_text(node, _MAX_NODE), kind_of(node), str(node.loc or ""), name]


def kind_of(node: Node) -> str:
    """How a node is drawn."""
    return next((kind for flag, kind in _KINDS if flag in node.flags), "value")


def _targets(block: Block) -> Iterator[tuple[str, str]]:
    """The blocks that may follow, each with the test that leads to it."""
    if not block.nodes:
        return
    node = block.nodes[-1]
    cases = dict(zip(_literals(node, "targets"), _literals(node, "cases"), strict=False))
    words = {name: word for field, word in _WORDS.items() for name in _literals(node, field)}
    for target in successors(node):
        yield target, cases.get(target) or words.get(target, "")


# The fields that name a block and whose test is drawn.
_WORDS = {"default": "else", "orelse": "if not", "then": "if"}


def _literals(node: Node, name: str) -> tuple[str, ...]:
    """The texts in a field of a node; none if its op has no such field."""
    if name not in node.spec.by_name:
        return ()
    operand = node.get(name)
    parts = operand if isinstance(operand, tuple) else (operand,)
    return tuple(str(part.value) for part in parts if isinstance(part, Lit) and part.value)


def _receipt(receipt: Receipt, change: tuple[Graph, Graph] | None) -> dict[str, Any]:
    return {
        "name": receipt.pass_name,
        "preserves": receipt.preserves,
        "summary": receipt.summary,
        "before": receipt.nodes_before,
        "after": receipt.nodes_after,
        "details": list(receipt.details),
        "diff": None if change is None else _difference(*change),
    }


def _difference(before: Graph, after: Graph) -> list[str]:
    old, new = (_lines(each) for each in (before, after))
    lines = difflib.unified_diff(old, new, "before", "after", lineterm="", n=2)
    found = [line[:_MAX_NODE] for line, _ in zip(lines, range(_MAX_DIFF + 1), strict=False)]
    return found if len(found) <= _MAX_DIFF else [*found[:_MAX_DIFF], "… more lines were changed"]


def _lines(graph: Graph) -> list[str]:
    return [line for line in to_text(graph).splitlines() if not line.startswith("#")]


def _sources(graph: Graph, files: Mapping[str, Path]) -> Iterator[tuple[str, list[str]]]:
    named = sorted({node.loc.file for node in graph.all_nodes() if node.loc is not None})
    for name in named:
        path = files.get(name)
        if path is not None and path.stat().st_size <= _MAX_SOURCE_BYTES:
            yield name, path.read_text(encoding="utf-8", errors="replace").splitlines()


def files_beside(source: Path) -> dict[str, Path]:
    """A program's file and the modules it has loaded from its folder, by name. Files with the same
    name are left out, since locations have only names.
    """
    found: dict[str, Path | None] = {source.name: source}
    folder = source.resolve().parent
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py"):
            continue
        path = Path(file)
        if path.resolve() != source.resolve() and folder in path.resolve().parents:
            found[path.name] = None if path.name in found else path
    return {name: path for name, path in found.items() if path is not None}
