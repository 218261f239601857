"""The type of the result of a graph's code, as an annotation: `list[tuple[str, int]] | None`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sgc.ir.code_checks import CodeError

MAX_TYPE = 20_000  # characters: code may return many values
_SCALARS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True, slots=True)
class CodeType:
    """of: `list`, `tuple`, `object` (any value) or the name of a scalar type; parts: the types of
    the items; may_be_none: whether the value may be None instead.
    """

    of: str
    parts: tuple[CodeType, ...] = ()
    may_be_none: bool = False

    def fits(self, value: Any) -> bool:
        """Whether a value has this type: True is not an int, but an int may stand for a float, as
        in arguments."""
        if self.of == "object" or (value is None and self.may_be_none):
            return True
        if self.of == "list":
            return type(value) is list and all(map(self.parts[0].fits, value))
        if self.of == "tuple":
            if type(value) is not tuple or len(value) != len(self.parts):
                return False
            return all(part.fits(item) for part, item in zip(self.parts, value, strict=True))
        is_int = self.of == "float" and type(value) is int
        return is_int or type(value) is _SCALARS[self.of]


@lru_cache(maxsize=1024)
def parse_code_type(text: str) -> CodeType:
    """Parses a type; raises CodeError."""
    try:
        tree = ast.parse(text if len(text) <= MAX_TYPE else "", mode="eval").body
        return _parsed(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        shown = text if len(text) <= MAX_TYPE else text[:MAX_TYPE] + "…"
        raise CodeError(f"expected a type such as `list[str]`, found {shown!r}") from error


def _parsed(node: ast.expr) -> CodeType:
    if isinstance(node, ast.Name) and (node.id in _SCALARS or node.id == "object"):
        return CodeType(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and _is_none(node.right):
        found = _parsed(node.left)
        return CodeType(found.of, found.parts, may_be_none=True)
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        raise ValueError
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if node.value.id not in ("list", "tuple") or (node.value.id == "list" and len(items) != 1):
        raise ValueError
    return CodeType(node.value.id, tuple(map(_parsed, items)))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
