"""The verifier's rules about terminators, and about the functions and code that nodes name."""

from __future__ import annotations

from collections.abc import Iterator

from sgc.ir.analysis.dependencies import successors
from sgc.ir.code import CodeError, parse_code
from sgc.ir.code_types import parse_code_type
from sgc.ir.functions import FUNCTIONS, FunctionSpec
from sgc.ir.graph import Lit, Node, Operand, Ref, Value
from sgc.ir.op_specs import NUMERIC, TEXTUAL
from sgc.ir.rules.graph import Context
from sgc.ir.rules.node import misfit, shown, shown_type
from sgc.ir.text.literals import shown_label
from sgc.ir.types import Kind, Type


def flow(node: Node, context: Context) -> Iterator[str]:
    targets, entry = successors(node), context.graph.blocks[0].name
    for name in targets:
        if name not in context.params:
            yield f"there is no block {shown_label(name)}"
        elif name == entry:
            yield f"nothing goes back to the entry block {shown_label(name)}"
        elif node.op != "jump" and context.params[name]:
            yield f"{shown_label(name)} takes parameters, which only jump gives"
    if node.op == "switch":
        yield from _switch_messages(node)
    if node.op == "jump" and targets and targets[0] in context.params:
        yield from _jump_messages(node, context.params[targets[0]], context)


def _switch_messages(node: Node) -> Iterator[str]:
    cases, targets = node.get("cases"), node.get("targets")
    if not isinstance(cases, tuple) or not isinstance(targets, tuple):
        return  # R1 reports it
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
        definition = context.definitions.get(arg.name)  # R5 reports an undefined one
        return definition is None or _is_within(definition.value.type, type_, context)
    if type_.kind is Kind.LIVE:
        return isinstance(arg, Lit)
    return not misfit(arg, frozenset({type_.kind}), context) and not type_.options


_FIXED = TEXTUAL | NUMERIC | {Kind.BOOL}  # unchangeable values may stand for live objects


def _is_within(type_: Type, wide: Type, context: Context) -> bool:
    if wide.kind is Kind.LIVE and type_.kind in _FIXED:
        return True
    if type_.kind is not wide.kind or type_.item != wide.item:
        return False
    if not wide.options:
        return True
    return bool(type_.options) and context.options(type_) <= context.options(wide)


def functions(node: Node, context: Context) -> Iterator[str]:
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


def code(node: Node, context: Context) -> Iterator[str]:
    given = dict(node.fields)
    source, args, gives = given.get("code"), given.get("args"), given.get("gives")
    if not isinstance(source, Lit) or not isinstance(args, tuple):
        return
    try:
        found = parse_code(str(source.value))
        if isinstance(gives, Lit) and gives.value:
            parse_code_type(str(gives.value))
    except CodeError as error:
        yield f"its code is refused: {error.message}"
        return
    n_args = len(found.entry.args.args)
    if len(args) != n_args:
        yield f"its code takes {n_args} arguments, found {len(args)}"


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
