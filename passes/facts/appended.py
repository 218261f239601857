"""The known text or value that a node appends to its stream."""

from __future__ import annotations

from sgc.ir.graph import Node, Operand, Ref


def constant_text(node: Node) -> str | None:
    """The constant text that a node appends; None for any other node."""
    return node.text("text") if node.op == "const" else None


def appended_value(node: Node) -> Operand | None:
    """The value that a node appends as text; None for any other node."""
    return node.get("value") if node.op == "append" else None


def is_one_of(operand: Operand | None, names: set[str]) -> bool:
    """Whether an operand is a value with one of these names."""
    return isinstance(operand, Ref) and operand.name in names
