"""The verifier's rules about called programs, which maps run for each item of a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sgc.ir.graph import Graph, Lit, Node, Operand, Param, Ref
from sgc.ir.limits import MAX_CALLED, MAX_NESTING, MAX_WIDTH
from sgc.ir.op_specs import Flag
from sgc.ir.rules.graph import Context
from sgc.ir.rules.node import number
from sgc.ir.rules.violation import Breach
from sgc.ir.text.literals import shown_name, shown_value
from sgc.ir.types import MEDIA, Type


def maps(node: Node, context: Context) -> Iterator[str]:
    if Flag.CALLS not in node.flags:
        return
    width, ordinal = number(node, "width"), number(node, "ordinal")
    if width is not None and not 1 <= width <= MAX_WIDTH:
        yield f"width is from 1 to {MAX_WIDTH}, found {width}"
    if ordinal is not None and ordinal < 0:
        yield f"ordinal is from 0 on, found {ordinal}"
    program = number(node, "program")
    if program is None:
        return  # R1 reports it
    if not 0 <= program < len(context.called):
        yield f"there is no called program {program} that it may run"
        return
    yield from _argument_messages(node, context.called[program], context)


def _argument_messages(node: Node, called: Graph, context: Context) -> Iterator[str]:
    keys, args = node.get("keys"), node.get("args")
    if not isinstance(keys, tuple) or not isinstance(args, tuple):
        return
    if len(keys) != len(args):
        yield f"{len(keys)} keys for {len(args)} arguments"
        return
    given = {key.value: arg for key, arg in zip(keys, args, strict=True) if isinstance(key, Lit)}
    if len(given) < len(keys):
        yield "a key is there twice"
    params = {param.value.name: param for param in called.params}
    unknown = [str(key) for key in given if key not in params]
    if unknown:
        yield f"@{shown_name(called.name)} takes no {shown_value(unknown[0])}"
    left = [param for name, param in params.items() if name not in given]
    if len(left) != 1:
        names = ", ".join(shown_value(param.value.name) for param in left) or "none"
        yield f"one parameter of @{shown_name(called.name)} is left for the item, found {names}"
    for param in params.values():
        type_ = _given_type(node, param, given, context)
        if param.value.type == MEDIA and type_ != MEDIA:
            # A text would name a file, and a generated text must not choose which file is read.
            yield f"{shown_value(param.value.name)} takes media, and is given none"


def _given_type(
    node: Node, param: Param, given: Mapping[Any, Operand], context: Context
) -> Type | None:
    """The type of a parameter's argument, if the argument is a value."""
    name = param.value.name
    operand = given[name] if name in given else node.get("items")
    definition = context.definitions.get(operand.name) if isinstance(operand, Ref) else None
    if definition is None:
        return None
    return definition.value.type if name in given else definition.value.type.item


def check_called(rule: str, graph: Graph) -> Iterator[Breach]:
    """Checks that called programs are few, nest within bounds, and have no called programs or
    guards of their own.
    """
    if len(graph.called) > MAX_CALLED:
        yield Breach(rule, f"{len(graph.called)} called programs; there may be {MAX_CALLED}")
    depths: list[int] = []
    for program in graph.called:
        for what, found in (("programs", program.called), ("guards", program.guards)):
            if found:
                yield Breach(rule, f"the called @{shown_name(program.name)} has {what} of its own")
        depths.append(1 + max((depths[n] for n in _calls(program, len(depths))), default=0))
        if depths[-1] > MAX_NESTING:
            message = f"@{shown_name(program.name)} nests maps deeper than {MAX_NESTING}"
            yield Breach(rule, message)


def _calls(graph: Graph, n_before: int) -> set[int]:
    """The earlier programs that a called program runs."""
    found = {number(node, "program") for node in graph.nodes() if Flag.CALLS in node.flags}
    return {n for n in found if n is not None and 0 <= n < n_before}
