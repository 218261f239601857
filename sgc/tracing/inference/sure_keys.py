"""Decides whether computing a key by which a list is grouped can fail, by the key's syntax and the
type of the list's items."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from sgc.ir import types
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type
from sgc.tracing.code.grouping import key_of
from sgc.tracing.kinds.row_types import OBJECT, RecordType, RowType, row_of

_OF_ANY = frozenset({"bool", "repr", "str"})
# Methods of texts that cannot fail with texts and numbers as arguments, or without any.
_TEXTS = frozenset({
    "capitalize", "casefold", "lower", "lstrip", "rstrip", "strip", "swapcase", "title", "upper",
})  # fmt: skip
_TESTS = frozenset({
    "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "islower", "isnumeric", "isspace",
    "istitle", "isupper",
})  # fmt: skip
_CONSTANTS = {str: types.TEXT, int: types.INT, float: types.FLOAT, bool: types.BOOL}
_NUMBERS = (types.INT, types.FLOAT, types.BOOL)


def never_fails(call: ast.Call, given: Callable[[str], Type]) -> bool:
    """Whether no key of a `groupby` can fail. given: returns the type of an input of the code."""
    key = key_of(call)
    item = _item_of(call.args[0], given) if call.args else None
    if key is None or (isinstance(key, ast.Name) and key.id in _OF_ANY):
        return True
    if item is None:
        return False
    if isinstance(key, ast.Name):
        return key.id == "len" and _has_length(item)
    if not isinstance(key, ast.Lambda) or len(key.args.args) != 1:
        return False
    return _type_of(key.body, {key.args.args[0].arg: item}) is not None


def _item_of(over: ast.expr, given: Callable[[str], Type]) -> Type | None:
    """The type of the items that are grouped."""
    if isinstance(over, ast.Name):
        return given(over.id).item
    is_copied = isinstance(over, ast.Call) and isinstance(over.func, ast.Name)
    if is_copied and over.func.id in ("list", "sorted", "reversed") and over.args:  # type: ignore[attr-defined]
        return _item_of(over.args[0], given)  # type: ignore[attr-defined]
    return None


def _type_of(node: ast.expr, names: Mapping[str, Type]) -> Type | None:
    """The type of an expression that cannot fail; None if the expression may fail."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Constant):
        return _CONSTANTS.get(type(node.value), OBJECT)
    if isinstance(node, ast.Subscript):
        return _part_of(_type_of(node.value, names), node.slice)
    if isinstance(node, ast.Attribute):
        of = _type_of(node.value, names)
        is_told = isinstance(of, RecordType) and node.attr in of.keys
        return of.row[of.keys.index(node.attr)] if is_told else None  # type: ignore[union-attr]
    if isinstance(node, ast.Call):
        return _given_by(node, names)
    if isinstance(node, ast.Tuple):
        found = [_type_of(each, names) for each in node.elts]
        known = [each for each in found if each is not None]
        return row_of(known) if len(known) == len(found) else None
    return _tested(node, names)


def _tested(node: ast.expr, names: Mapping[str, Type]) -> Type | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return None if _is_plain(_type_of(node.operand, names)) is None else types.BOOL
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    both = [_is_plain(_type_of(each, names)) for each in (node.left, node.comparators[0])]
    is_equality = isinstance(node.ops[0], (ast.Eq, ast.NotEq))
    are_ordered = both[0] == both[1] or all(each in _NUMBERS for each in both)
    is_sure = None not in both and (is_equality or are_ordered)
    return types.BOOL if is_sure and not isinstance(node.ops[0], (ast.In, ast.NotIn)) else None


def _is_plain(type_: Type | None) -> Type | None:
    """The type, if it is a text's or number's; else None."""
    if type_ is not None and type_.kind in TEXTUAL:
        return types.TEXT
    return type_ if type_ in _NUMBERS else None


def _part_of(of: Type | None, key: ast.expr) -> Type | None:
    if of is None:
        return None
    is_tuple = isinstance(of, RowType) and of.keys is None
    if isinstance(key, ast.Slice):
        ends = [_number(each) for each in (key.lower, key.upper, key.step)]
        if False in ends or ends[2] == 0:
            return None
        if is_tuple:
            return row_of(of.row[slice(*ends)])  # type: ignore[attr-defined]
        return of if of.kind in TEXTUAL or of.kind is Kind.LIST else None
    place = _number(key)
    if is_tuple and type(place) is int:
        row = of.row  # type: ignore[attr-defined]
        return row[place] if -len(row) <= place < len(row) else None  # type: ignore[no-any-return]
    name = key.value if isinstance(key, ast.Constant) else None
    is_key = isinstance(of, RowType) and of.keys is not None and name in of.keys
    return of.row[of.keys.index(name)] if is_key else None  # type: ignore


def _number(node: ast.expr | None) -> int | bool | None:
    """The whole number or None that an expression states; False for other expressions."""
    if node is None:
        return None
    sign = operator.neg if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else None
    inner = node.operand if sign is not None else node  # type: ignore[attr-defined]
    if not isinstance(inner, ast.Constant) or type(inner.value) is not int:
        return False
    return inner.value if sign is None else -inner.value


def _given_by(node: ast.Call, names: Mapping[str, Type]) -> Type | None:
    if node.keywords:
        return None
    if isinstance(node.func, ast.Attribute):
        of = _is_plain(_type_of(node.func.value, names))
        are_texts = all(isinstance(a, ast.Constant) and type(a.value) is str for a in node.args)
        if of != types.TEXT or not are_texts or len(node.args) > node.func.attr.endswith("strip"):
            return None
        if node.func.attr in _TESTS:
            return types.BOOL
        return types.TEXT if node.func.attr in _TEXTS else None
    given = _type_of(node.args[0], names) if len(node.args) == 1 else None
    if not isinstance(node.func, ast.Name) or given is None:
        return None
    if node.func.id == "len" and _has_length(given):
        return types.INT
    return {"bool": types.BOOL}.get(node.func.id, types.TEXT) if node.func.id in _OF_ANY else None


def _has_length(of: Type) -> bool:
    return of.kind in TEXTUAL or of.kind is Kind.LIST or isinstance(of, RowType)
