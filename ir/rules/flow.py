"""The verifier's rules about what blocks go on with, and the functions that nodes name."""

from __future__ import annotations

from collections.abc import Iterator

from sgc.ir.analysis.dependencies import successors
from sgc.ir.functions import FUNCTIONS, FunctionSpec
from sgc.ir.graph import Lit, Node, Operand, Ref, Value
from sgc.ir.rules.graph import Context
from sgc.ir.rules.node import misfit, shown, shown_type
from sgc.ir.rules.violation import Breach
from sgc.ir.text.literals import shown_label
from sgc.ir.types import Type


def check_flow(rule: str, context: Context) -> Iterator[Breach]:
    blocks = {block.name: block for block in context.graph.blocks}
    entry = context.graph.blocks[0].name if context.graph.blocks else ""
    for place, node in context.nodes:
        for name in successors(node):
            if name not in blocks:
                message = f"{node.op}: there is no block {shown_label(name)}"
                yield context.breach(rule, message, place)
            elif name == entry:
                message = f"{node.op}: nothing goes back to the entry block {shown_label(name)}"
                yield context.breach(rule, message, place)
            elif node.op != "jump" and blocks[name].params:
                message = f"{node.op}: {shown_label(name)} takes parameters, which only jump gives"
                yield context.breach(rule, message, place)
        if node.op == "switch":
            for message in _switch_messages(node):
                yield context.breach(rule, f"switch: {message}", place)
        if node.op == "jump" and successors(node) and successors(node)[0] in blocks:
            for message in _jump_messages(node, blocks[successors(node)[0]].params, context):
                yield context.breach(rule, f"jump: {message}", place)


def _switch_messages(node: Node) -> Iterator[str]:
    cases, targets = node.get("cases"), node.get("targets")
    if not isinstance(cases, tuple) or not isinstance(targets, tuple):
        return  # R1's to tell
    if len(cases) != len(targets):
        yield f"{len(targets)} targets for {len(cases)} cases"
    if len(set(cases)) < len(cases):
        yield "a case is there twice"
    if not cases:
        yield "there are no cases"


def _jump_messages(node: Node, params: tuple[Value, ...], context: Context) -> Iterator[str]:
    args = node.get("args")
    if not isinstance(args, tuple):
        return
    if len(args) != len(params):
        yield f"{len(args)} arguments for {len(params)} parameters"
        return
    for arg, param in zip(args, params, strict=True):
        type_ = param.type
        if not _fits(arg, type_, context):
            yield f"{shown(arg)} for a parameter of type {shown_type(type_)}"


def _fits(arg: Operand, type_: Type, context: Context) -> bool:
    if isinstance(arg, Ref):
        definition = context.definitions.get(arg.name)  # an undefined one is R5's to tell
        return definition is None or _is_within(definition.value.type, type_, context)
    return not misfit(arg, frozenset({type_.kind}), context) and not type_.options


def _is_within(type_: Type, wide: Type, context: Context) -> bool:
    if type_.kind is not wide.kind or type_.item != wide.item:
        return False
    if not wide.options:
        return True
    return bool(type_.options) and context.options(type_) <= context.options(wide)


def check_functions(rule: str, context: Context) -> Iterator[Breach]:
    for place, node in context.nodes:
        if node.op in ("compute", "attempt"):
            for message in _function_messages(node, context):
                yield context.breach(rule, f"{node.op}: {message}", place)


def _function_messages(node: Node, context: Context) -> Iterator[str]:
    fn, args = node.get("fn"), node.get("args")
    if not isinstance(fn, Lit) or not isinstance(args, tuple):
        return
    row = FUNCTIONS.get(str(fn.value))
    if row is None:
        yield f"there is no function {shown(fn)}"
        return
    if node.op == "attempt" and not row.error:
        yield f"{row.name} cannot fail"
    yield from _argument_messages(row, args, context)
    if node.op == "compute" and node.results and row.gives is not None:
        found = node.results[0].type
        if found.kind is not row.gives:
            yield f"{row.name} gives a {row.gives}, found type {shown_type(found)}"


def _argument_messages(
    row: FunctionSpec, args: tuple[Operand, ...], context: Context
) -> Iterator[str]:
    most = len(row.takes)
    least = most - row.n_optional
    if not (least <= len(args) and (row.is_variadic or len(args) <= most)):
        yield f"{row.name} takes {least if least == most else f'{least} to {most}'} arguments, " + (
            f"found {len(args)}"
        )
        return
    for index, arg in enumerate(args):
        kinds = row.takes[min(index, most - 1)]
        found = misfit(arg, kinds, context)
        if found:
            yield f"argument {index + 1} of {row.name} is {found}"
