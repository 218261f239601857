"""Dumps of graphs for other programs: JSON, and DOT and Mermaid for drawings.

A drawing has one box per stream (a fork's children are streams of their own). Generations are
highlighted, thick edges connect the states of a stream, and dashed edges are other data. Texts come
from programs, so all are escaped and cut. Nothing parses these forms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sgc.ir.analysis.dependencies import consumed, dependencies
from sgc.ir.graph import Block, Graph, Lit, Node, Operand, Ref, Value
from sgc.ir.op_specs import Flag
from sgc.ir.text.literals import escape, value_ref
from sgc.ir.text.printer import loc_text, operand_text, type_text
from sgc.ir.types import Kind

_MAX_LABEL = 48


def to_json(graph: Graph) -> dict[str, Any]:
    """A graph as dicts, lists and scalars that strict JSON can represent."""
    return {
        "sgir": 1,
        "name": graph.name,
        "guards": [{"kind": g.kind, "name": g.name, "value": g.value} for g in graph.guards],
        "params": [
            _value_json(param.value)
            | ({} if param.default is None else {"default": _operand_json(param.default)})
            for param in graph.params
        ],
        "blocks": [_block_json(block) for block in graph.blocks],
        "receipts": [
            {
                "pass": receipt.pass_name,
                "preserves": receipt.preserves,
                "summary": receipt.summary,
                "nodes_before": receipt.nodes_before,
                "nodes_after": receipt.nodes_after,
            }
            for receipt in graph.receipts
        ],
        **({"called": [to_json(each) for each in graph.called]} if graph.called else {}),
    }


def _block_json(block: Block) -> dict[str, Any]:
    params = [_value_json(value) for value in block.params]
    return {"name": block.name, "params": params, "nodes": [_node_json(n) for n in block.nodes]}


def _node_json(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {"op": node.op}
    found["results"] = [_value_json(value) for value in node.results]
    found["fields"] = {name: _operand_json(operand) for name, operand in node.fields}
    if node.loc is not None:
        loc = node.loc
        found["loc"] = {"file": loc.file, "line": loc.line, "function": loc.function}
    return found


def _value_json(value: Value) -> dict[str, Any]:
    return {"name": value.name, "type": type_text(value.type)}


def _operand_json(operand: Operand) -> Any:
    """A reference is {"ref": name}; a number that JSON lacks is {"float": "nan"}."""
    if isinstance(operand, Ref):
        return {"ref": operand.name}
    if isinstance(operand, Lit):
        value = operand.value
        is_odd = isinstance(value, float) and not math.isfinite(value)
        return {"float": str(value)} if is_odd else value
    return [_operand_json(item) for item in operand]


@dataclass(frozen=True, slots=True)
class Drawing:
    """The contents of both drawings. Nodes are numbers; streams have the names of their first
    states.
    """

    labels: tuple[str, ...]
    is_generation: tuple[bool, ...]
    streams: dict[str, tuple[int, ...]]
    titles: dict[str, str]
    edges: tuple[tuple[int, int, str, bool], ...]

    def title(self, stream: str) -> str:
        return self.titles.get(stream, value_ref(stream))

    def outside(self) -> Iterator[int]:
        inside = {number for numbers in self.streams.values() for number in numbers}
        return (number for number in range(len(self.labels)) if number not in inside)


def draw(graph: Graph) -> Drawing:
    nodes = tuple(graph.nodes())
    states = {value.name for node in nodes for value in node.results if value.type.is_stream}
    edges = []
    for start, end, data in dependencies(graph).edges(data=True):
        shown = [value_ref(name) for name in data["values"] if name not in states]
        is_thick = not states.isdisjoint(set(data["values"]).intersection(consumed(nodes[end])))
        edges.append((start, end, ", ".join(shown), is_thick))
    generates = tuple(Flag.STOCHASTIC in node.flags for node in nodes)
    return Drawing(
        tuple(map(_label, nodes)), generates, _streams(nodes), _titles(nodes), tuple(edges)
    )


def _streams(nodes: tuple[Node, ...]) -> dict[str, tuple[int, ...]]:
    """The nodes of each stream, by the name of its first state."""
    stream_of: dict[str, str] = {}
    members: dict[str, list[int]] = {}
    for number, node in enumerate(nodes):
        states = [value.name for value in node.results if value.type.is_stream]
        before = consumed(node)
        if not states:
            continue
        trunk = stream_of.get(before[0], before[0]) if before else states[0]
        members.setdefault(trunk, []).append(number)
        stream_of[states[0]] = trunk
        stream_of.update((child, child) for child in states[1:])
    return {name: tuple(numbers) for name, numbers in members.items()}


def _titles(nodes: tuple[Node, ...]) -> dict[str, str]:
    """The title of each stream, a function's or a fork child's, by the name of its first state."""
    title_of: dict[str, str] = {}  # the title of every state
    for node in nodes:
        states = [value.name for value in node.results if value.type.is_stream]
        before = consumed(node)
        if not states:
            continue
        trunk = title_of.get(before[0], "") if before else escape(node.text("name"))
        title_of[states[0]] = trunk
        title_of.update((child, f"{trunk} child {i}") for i, child in enumerate(states[1:]))
    return {name: f"{title} ({value_ref(name)})".strip() for name, title in title_of.items()}


def _label(node: Node) -> str:
    """The op and its fields without stream states, which the edges show."""
    words = [node.op]
    for name, operand in node.fields:
        row = node.spec.field(name)
        if Kind.STREAM not in row.kinds:
            text = operand_text(operand, _MAX_LABEL)
            words.append(text if row.positional else f"{name}={text}")
    text = _cut(" ".join(words))
    return f"{text}\n{_cut(loc_text(node.loc))}" if node.loc else text


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…"


def to_dot(graph: Graph) -> str:
    """The graph as a Graphviz digraph: `dot -Tsvg`."""
    lines = [
        f"digraph {_dot_text(_cut(escape(graph.name)))} {{",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=monospace];',
        "  edge [fontname=monospace, fontsize=10];",
        *_dot_lines(draw(graph)),
    ]
    for number, each in enumerate(graph.called):
        lines.append(f"  subgraph cluster_called_{number} {{")
        lines.append(f"    label={_dot_text(_called_title(number, each))}; style=dashed;")
        lines += (f"  {line}" for line in _dot_lines(draw(each), f"c{number}_"))
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _called_title(number: int, graph: Graph) -> str:
    return _cut(f"called {number}: {escape(graph.name)}")


def _dot_lines(drawing: Drawing, prefix: str = "") -> Iterator[str]:
    """The lines of one program. prefix: the prefix of its nodes' names."""
    for number, (name, members) in enumerate(drawing.streams.items()):
        yield f"  subgraph cluster_{prefix}{number} {{"
        title = _dot_text(_cut(drawing.title(name)))
        yield f'    label={title}; style=filled; color="#eef2f7";'
        yield from (f"    {_dot_node(drawing, member, prefix)}" for member in members)
        yield "  }"
    yield from (f"  {_dot_node(drawing, number, prefix)}" for number in drawing.outside())
    yield from (f"  {_dot_edge(*edge, prefix)}" for edge in drawing.edges)


def _dot_node(drawing: Drawing, number: int, prefix: str) -> str:
    colour = ', fillcolor="#ffd98a"' if drawing.is_generation[number] else ""
    return f"{prefix}n{number} [label={_dot_text(drawing.labels[number])}{colour}];"


def _dot_edge(start: int, end: int, label: str, is_thick: bool, prefix: str) -> str:
    style = "penwidth=2" if is_thick else "style=dashed"
    text = f", label={_dot_text(_cut(label))}" if label else ""
    return f"{prefix}n{start} -> {prefix}n{end} [{style}{text}];"


def _dot_text(text: str) -> str:
    # Graphviz reads HTML entities in plain labels.
    safe = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{safe}"'


def to_mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart."""
    lines = ["flowchart TD", *_mermaid_lines(draw(graph))]
    for number, each in enumerate(graph.called):
        lines.append(f"  subgraph called{number}[{_mermaid_text(_called_title(number, each))}]")
        lines += (f"  {line}" for line in _mermaid_lines(draw(each), f"c{number}_"))
        lines.append("  end")
    lines.append("  classDef generation fill:#ffd98a,stroke:#b07a00")
    return "\n".join(lines) + "\n"


def _mermaid_lines(drawing: Drawing, prefix: str = "") -> Iterator[str]:
    for number, (name, members) in enumerate(drawing.streams.items()):
        yield f"  subgraph {prefix}s{number}[{_mermaid_text(_cut(drawing.title(name)))}]"
        yield from (f"    {_mermaid_node(drawing, member, prefix)}" for member in members)
        yield "  end"
    yield from (f"  {_mermaid_node(drawing, number, prefix)}" for number in drawing.outside())
    yield from (f"  {_mermaid_edge(*edge, prefix)}" for edge in drawing.edges)


def _mermaid_node(drawing: Drawing, number: int, prefix: str) -> str:
    mark = ":::generation" if drawing.is_generation[number] else ""
    return f"{prefix}n{number}[{_mermaid_text(drawing.labels[number])}]{mark}"


def _mermaid_edge(start: int, end: int, label: str, is_thick: bool, prefix: str) -> str:
    arrow = "==>" if is_thick else "-.->"
    text = f"|{_mermaid_text(_cut(label))}|" if label else ""
    return f"{prefix}n{start} {arrow}{text} {prefix}n{end}"


def _mermaid_text(text: str) -> str:
    """A quoted text, with entities for all that Mermaid, Markdown or HTML could read as markup."""
    lines = (re.sub(r"[^\w .,:=…-]", lambda m: f"#{ord(m[0])};", line) for line in text.split("\n"))
    return '"' + "<br/>".join(lines) + '"'
