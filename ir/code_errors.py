"""The error for code outside of the subset of Python, and the types that checks exchange."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from sgc.errors import SgcError


class CodeError(SgcError, ValueError):
    """A graph's code is not valid Python, or not in the subset."""

    __str__ = SgcError.__str__


@dataclass(frozen=True, slots=True)
class Import:
    """An imported name: a module, or an item of it."""

    module: str
    item: str | None = None


def refuse(node: ast.AST, expected: str, found: str) -> CodeError:
    line = getattr(node, "lineno", None)
    where = f"line {line}" if line else ""
    return CodeError(f"expected {expected}, found {found}", where=where)
