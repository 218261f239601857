"""The verifier's rules about one node or parameter at a time, mostly by the op's row."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sgc.ir.analysis.dependencies import all_definitions
from sgc.ir.graph import Lit, Node, Operand, Ref, operand_refs
from sgc.ir.limits import MAX_DEPTH
from sgc.ir.op_specs import ANY_VALUE, FieldSpec, Flag
from sgc.ir.rules.graph import Context
from sgc.ir.rules.violation import Breach
from sgc.ir.text.literals import shown_value
from sgc.ir.text.printer import operand_text, type_text
from sgc.ir.types import Kind, Type

_KIND_OF_LITERAL = {str: Kind.TEXT, int: Kind.INT, float: Kind.FLOAT, bool: Kind.BOOL}
_MAX_SHOWN = 40


def fields(node: Node, context: Context) -> Iterator[str]:
    rows = node.spec.by_name
    names = [name for name, _ in node.fields]
    for name, operand in node.fields:
        if name not in rows:
            yield f"has no field {name}; it has {', '.join(rows) or 'none'}"
        else:
            yield from _operand_messages(rows[name], operand, context)
    for row in node.spec.fields:
        if row.is_required and row.name not in names:
            yield f"needs the field {row.name}"
    if [name for name in rows if name in names] != [name for name in names if name in rows]:
        yield f"has its fields in the order {', '.join(names)}; each once, as in the op's row"


def _operand_messages(row: FieldSpec, operand: Operand, context: Context) -> Iterator[str]:
    if row.default is None and operand == Lit(None):
        return
    if row.static and operand_refs(operand):
        yield f"field {row.name} takes literals only, found {shown(operand)}"
    elif row.is_list and not isinstance(operand, tuple):
        yield f"field {row.name} takes a list, found {shown(operand)}"
    else:
        items = operand if row.is_list and isinstance(operand, tuple) else (operand,)
        for item in items:
            found = misfit(item, row.kinds, context)
            if found:
                of_list = "a list of " if row.is_list else ""
                yield f"field {row.name} takes {of_list}{_kinds_text(row.kinds)}, found {found}"


def misfit(operand: Operand, kinds: frozenset[Kind], context: Context) -> str:
    """The operand as shown in an error if it has none of the kinds; else empty."""
    if isinstance(operand, Ref):
        definition = context.definitions.get(operand.name)  # R5 reports an undefined one
        is_fit = definition is None or definition.value.type.kind in kinds
        if is_fit or definition is None:
            return ""
        return f"{shown(operand)} of type {shown_type(definition.value.type)}"
    if isinstance(operand, Lit):
        return "" if _literal_fits(operand, kinds) else shown(operand)
    if Kind.LIST not in kinds:
        return shown(operand)
    return next(filter(None, (misfit(item, ANY_VALUE, context) for item in operand)), "")


def _literal_fits(literal: Lit, kinds: frozenset[Kind]) -> bool:
    """Whether a literal has one of the kinds. Types must be exact, since a subclass would not
    survive a round trip.
    """
    if literal.value is None:
        return Kind.JSON in kinds
    return _KIND_OF_LITERAL.get(type(literal.value)) in kinds


def shown(operand: Operand) -> str:
    """An operand as shown in an error, cut if it is long."""
    if isinstance(operand, Lit) and type(operand.value) not in (*_KIND_OF_LITERAL, type(None)):
        return f"a literal of the Python type {type(operand.value).__name__}"
    return operand_text(operand, _MAX_SHOWN)


def shown_type(type_: Type) -> str:
    return type_text(type_, _MAX_SHOWN)


def _kinds_text(kinds: frozenset[Kind]) -> str:
    if kinds == ANY_VALUE:
        return "any value but a stream"
    return " or ".join(kind for kind in Kind if kind in kinds)


def results(node: Node, context: Context) -> Iterator[str]:
    kinds = list(node.spec.results)
    if Flag.CALLS in node.flags:
        kinds *= n_gathered(node)
    elif node.spec.variadic_results:
        n_repeats = number(node, "n")
        if n_repeats is None:
            return
        if n_repeats < 1:
            yield f"needs at least one child, found n={n_repeats}"
            return
        # Compared before a list is made: the program gives the number, which may be huge.
        if len(node.results) != len(kinds) - 1 + n_repeats:
            yield f"gives {len(kinds) - 1 + n_repeats} results, found {len(node.results)}"
            return
        kinds += kinds[-1:] * (n_repeats - 1)
    if len(kinds) != len(node.results):
        yield f"gives {len(kinds) or 'no'} results, found {len(node.results)}"
        return
    for kind, value in zip(kinds, node.results, strict=True):
        if kind is None:
            if value.type.is_stream:
                yield f"gives a value as {shown_value(value.name)}, found a stream"
        elif value.type.kind is not kind:
            found = shown_type(value.type)
            yield f"gives a {kind} as {shown_value(value.name)}, found type {found}"


def n_gathered(node: Node) -> int:
    """The number of lists that a `map` returns."""
    names, flags = node.get("names"), (node.get("returns"), node.get("texts"))
    return (len(names) if isinstance(names, tuple) else 0) + flags.count(Lit(True))


def number(node: Node, name: str) -> int | None:
    """The value of an int field; None if it is not a literal int, which R1 reports."""
    operand = node.get(name)
    is_number = isinstance(operand, Lit) and type(operand.value) is int
    return operand.value if is_number else None  # type: ignore[union-attr,return-value]


def check_params(rule: str, context: Context) -> Iterator[Breach]:
    for param in context.graph.params:
        name, type_ = param.value.name, param.value.type
        if type_.is_stream:
            yield Breach(rule, f"the program's parameter {shown_value(name)} is a stream")
        elif param.default is not None and not _is_default(param.default, type_, context):
            found = shown(param.default)
            yield Breach(
                rule, f"{shown_value(name)} is {shown_type(type_)}, but its default is {found}"
            )


def _is_default(operand: Operand, type_: Type, context: Context) -> bool:
    if isinstance(operand, Ref):
        return False
    if isinstance(operand, tuple):
        item = type_.item
        return item is not None and all(_is_default(part, item, context) for part in operand)
    if type_.kind is Kind.CHOICE:
        is_text = type(operand.value) is str
        return is_text and (not type_.options or operand.value in context.options(type_))
    if type_.kind is Kind.FLOAT:
        return type(operand.value) in (int, float)
    if type_.kind is Kind.JSON:
        return _literal_fits(operand, ANY_VALUE)
    return _literal_fits(operand, frozenset({type_.kind}))


PREFETCHED = ("const", "value", "role_begin", "role_end")


def _of_prefetch(node: Node) -> Iterator[str]:
    given = dict(node.fields)
    kinds, pieces = given.get("kinds"), given.get("pieces")
    if not isinstance(kinds, tuple) or not isinstance(pieces, tuple):
        return
    if len(kinds) != len(pieces):
        yield f"{len(kinds)} kinds for {len(pieces)} pieces"
        return
    for kind, piece in zip(kinds, pieces, strict=True):
        if not isinstance(kind, Lit) or kind.value not in PREFETCHED:
            yield f"a piece is one of {', '.join(PREFETCHED)}, found {shown(kind)}"
        elif kind.value != "value" and not (isinstance(piece, Lit) and type(piece.value) is str):
            yield f"a {kind.value} is a text that is written down, found {shown(piece)}"


def keys(node: Node, context: Context) -> Iterator[str]:
    if node.op == "prefetch":
        yield from _of_prefetch(node)
        return
    given = dict(node.fields)
    names, items = given.get("keys", ()), given.get("items", ())
    if isinstance(names, tuple) and isinstance(items, tuple):
        is_bare = node.op == "record" and not names  # a tuple of values
        if not is_bare and len(names) != len(items):
            yield f"{len(names)} keys for {len(items)} items"


EFFECTS = ("pure", "idempotent", "effect")


PLACES = ("stdout", "stderr", "log", "warnings")  # where a program shows something


def tools(node: Node, context: Context) -> Iterator[str]:
    if Flag.SHOWS in node.flags:
        to = node.get("to")
        if isinstance(to, Lit) and to.value not in PLACES:
            yield f"to is one of {', '.join(PLACES)}, found {shown(to)}"
    if Flag.LOGGED not in node.flags:
        return
    effect, names, args = node.get("effect"), node.get("keys"), node.get("args")
    timeout = node.get("timeout_s")
    if isinstance(effect, Lit) and effect.value not in EFFECTS:
        yield f"effect is one of {', '.join(EFFECTS)}, found {shown(effect)}"
    if isinstance(names, tuple) and isinstance(args, tuple):
        if len(names) > len(args):
            yield f"{len(names)} keys for {len(args)} arguments"
        if len(set(names)) < len(names):
            yield "a key is there twice"
    seconds = timeout.value if isinstance(timeout, Lit) else None
    if isinstance(seconds, (int, float)) and not 0 < seconds < math.inf:
        yield f"timeout_s is a positive number of seconds, found {seconds!r}"


def joins(node: Node, context: Context) -> Iterator[str]:
    if node.op == "join_first":
        entries, k = node.get("entries"), number(node, "k")
        n = len(entries) if isinstance(entries, tuple) else 0
        if k is not None and not 1 <= k <= n:
            yield f"k is from 1 to {n}, the number of entries, found {k}"
    elif node.op == "append_span":
        kv = node.get("kv")
        if (
            isinstance(kv, Lit)
            and isinstance(kv.value, str)
            and kv.value not in ("", "first", "next")
        ):
            yield f"kv is first or next, found {kv.value!r}"
    else:
        owners, items = node.get("owners"), node.get("items")
        if isinstance(owners, tuple) and isinstance(items, tuple) and len(owners) != len(items):
            yield f"{len(owners)} owners for {len(items)} items"


def choices(node: Node, context: Context) -> Iterator[str]:
    fields = dict(node.fields)
    given, among = fields.get("choices", ()), fields.get("among")
    if given == () and among is None:
        yield "choices is empty; there must be at least one"
    if given != () and among is not None:
        yield "choices and among are given; there must be one of them"
    if not isinstance(given, tuple) or not node.results:
        return
    options = context.options(node.results[-1].type)
    for choice in given:
        if options and not _is_among(choice, options, context):
            result = shown_value(node.results[-1].name)
            yield f"choice {shown(choice)} is not among the options of {result}"


def _is_among(choice: Operand, options: frozenset[str], context: Context) -> bool:
    """Whether a choice, or for a reference each option of its type, is among the options."""
    if isinstance(choice, Lit):
        return choice.value in options or not isinstance(choice.value, str)  # R1 reports it
    definition = context.definitions.get(choice.name) if isinstance(choice, Ref) else None
    if definition is None:
        return True  # R5 reports it
    own = context.options(definition.value.type)
    return bool(own) and own <= options


def check_depth(rule: str, context: Context) -> Iterator[Breach]:
    """Checks nesting, without recursion and without printing values that nest too deep."""
    for definition in all_definitions(context.graph):
        fault = _type_fault(definition.value.type)
        if fault:
            node = definition.place.node
            message = f"the type of {shown_value(definition.value.name)} {fault}"
            yield Breach(rule, message, node.loc if node else None)
    for node in context.graph.nodes():
        for name, operand in node.fields:
            if _is_deep(operand):
                message = f"{node.op}: field {name} nests deeper than {MAX_DEPTH}"
                yield Breach(rule, message, node.loc)
    for param in context.graph.params:
        if param.default is not None and _is_deep(param.default):
            message = f"the default of {shown_value(param.value.name)} nests deeper"
            yield Breach(rule, f"{message} than {MAX_DEPTH}")


def _type_fault(type_: Type) -> str:
    depth = 0
    while type_.item is not None:
        depth, type_ = depth + 1, type_.item
    if depth > MAX_DEPTH:
        return f"nests deeper than {MAX_DEPTH}"
    return "is a list of streams; a stream is used by name" if depth and type_.is_stream else ""


def _is_deep(operand: Operand) -> bool:
    level = [operand]
    for _ in range(MAX_DEPTH + 1):
        level = [item for part in level if isinstance(part, tuple) for item in part]
        if not level:
            return False
    return True
