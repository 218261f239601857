"""The program that a `map` calls, and the arguments it passes beside the item."""

from __future__ import annotations

from sgc.ir.graph import Lit, Node, Operand


def program_of(node: Node) -> int:
    """The number of the called program."""
    number = node.get("program")
    assert isinstance(number, Lit)
    assert isinstance(number.value, int)
    return number.value


def arguments_of(node: Node) -> dict[str, Operand]:
    """The arguments passed to every call, by parameter name."""
    keys, args = node.get("keys"), node.get("args")
    assert isinstance(keys, tuple)
    assert isinstance(args, tuple)
    return {str(k.value): arg for k, arg in zip(keys, args, strict=True) if isinstance(k, Lit)}
