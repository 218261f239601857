"""The classes that `collections.namedtuple` makes, written as class statements."""

from __future__ import annotations

import ast
from collections import namedtuple
from typing import Any, NamedTuple

USES = {NamedTuple.__name__: NamedTuple}


def made_by_call(kind: Any) -> ast.ClassDef | None:
    """The statement of a class that `namedtuple` made, with a place for each default; None for any
    other class, and if something was added to the class since."""
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    is_one = kind.__mro__[1:] == (tuple, object) and kind.__qualname__ == kind.__name__
    if not names or not is_one or any(name[0] == "_" for name in names):
        return None
    same: Any = namedtuple(kind.__name__, names)  # type: ignore[misc]
    codes = {name: _code(value) for name, value in vars(same).items() if name != "__new__"}
    for name, value in vars(kind).items():
        if name != "__new__" and _code(value) != codes.get(name):
            return None
    body: list[ast.stmt] = [_field(name, name in kind._field_defaults) for name in names]
    made = ast.parse(f"class {kind.__name__}(NamedTuple): pass").body[0]
    assert isinstance(made, ast.ClassDef)
    made.body = body
    return ast.fix_missing_locations(made)


def _field(name: str, has_default: bool) -> ast.stmt:
    return ast.parse(f"{name}: 'object'{' = None' if has_default else ''}").body[0]


def _code(value: Any) -> Any:
    """The code of a function or method."""
    return getattr(getattr(value, "__func__", value), "__code__", None)
