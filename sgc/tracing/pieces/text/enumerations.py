"""The program's own enumerations as class statements of code: members with their values, and
methods."""

from __future__ import annotations

import ast
import copy
import enum
from enum import Enum
from types import FunctionType
from typing import Any

from sgc.tracing.kinds.members import is_enumeration

_BASES = ((Enum,), (enum.IntEnum,), (enum.StrEnum,), (str, Enum), (int, Enum))
MAX_MEMBERS = 64
_VALUES = (str, int, float, bool, type(None))
# Names that an enumeration must not define: they change how members are made, or what they are.
_MAKING = frozenset({
    "__new__", "__init__", "__init_subclass__", "__call__", "__iter__", "__len__", "__reduce_ex__",
    "__getattr__", "__getattribute__", "__setattr__", "_ignore_", "_order_", "name", "value",
})  # fmt: skip


class NoMembers(Exception):
    """An enumeration cannot be code."""


def statement_of(kind: Any, node: ast.ClassDef) -> tuple[ast.ClassDef, dict[str, Any]]:
    """A class statement, and the objects that it uses by name. node: the source's statement.
    Raises NoMembers."""
    name = kind.__name__
    if kind.__bases__ not in _BASES or not is_enumeration(kind):
        raise NoMembers(f"{name} has other bases than Enum, or str or int beside it")
    if len(kind) > MAX_MEMBERS:  # reading one is a decision for each
        raise NoMembers(f"{name} has more than {MAX_MEMBERS} members")
    _check_parts(kind, node)
    members = [_member(key, each) for key, each in kind.__members__.items()]
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    made = copy.copy(node)
    made.decorator_list = []
    made.bases = [ast.Name(base.__name__, ast.Load()) for base in kind.__bases__]
    made.body = [*members, *(each for each in methods if each.name != _GENERATES)]
    uses = {base.__name__: base for base in kind.__bases__}
    return ast.fix_missing_locations(made), uses


_GENERATES = "_generate_next_value_"  # the values of `auto()` are written out


def _check_parts(kind: Any, node: ast.ClassDef) -> None:
    """Refuses an enumeration that is more than the members and methods of its source."""
    name = kind.__name__
    for each in node.decorator_list:
        if ast.unparse(each) not in ("unique", "enum.unique"):
            raise NoMembers(f"{name} is decorated")
    for part in node.body:
        is_text = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
        if not isinstance(part, (ast.FunctionDef, ast.Assign, ast.Pass)) and not is_text:
            raise NoMembers(f"{name} has more than members and methods")
    own = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    found = _MAKING & (own | {*kind.__members__})
    if found:
        raise NoMembers(f"{name} has {min(found)}")
    theirs = [value for base in kind.__mro__[1:] for value in vars(base).values()]
    for key, value in vars(kind).items():
        is_inner = key[:1] == "_" and not isinstance(value, FunctionType)
        if key in own or key in kind.__members__ or is_inner:
            continue
        if not any(value is each for each in theirs):
            raise NoMembers(f"{name}.{key} is not in its source")


def _member(key: str, member: Any) -> ast.stmt:
    value = member._value_
    parts = value if type(value) is tuple else (value,)
    if not all(type(part) in _VALUES and part == part for part in parts):
        raise NoMembers(f"the value of {type(member).__name__}.{key} is a {type(value).__name__}")
    return ast.parse(f"{key} = {value!r}").body[0]
