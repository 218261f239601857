"""Functions of the program as parts of a module's text."""

from __future__ import annotations

import ast

from sgc.tracing.code.trees import Function
from sgc.tracing.pieces.names import names_of


def asked_of(node: ast.AST) -> str | None:
    """The variable whose attribute an expression uses."""
    of: ast.expr | None = node.value if isinstance(node, ast.Attribute) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        of = node.args[0] if node.func.id in ("getattr", "setattr", "hasattr") else None
    return of.id if isinstance(of, ast.Name) else None


def in_defaults(node: Function) -> set[str]:
    defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
    return names_of(defaults).reads


def named(name: str, module: ast.Module) -> ast.FunctionDef:
    """The only function of a module under a name; a lambda becomes a function."""
    (found,) = module.body
    if isinstance(found, ast.FunctionDef):
        found.name = name
        return found
    assert isinstance(found, ast.Expr)
    assert isinstance(found.value, ast.Lambda)
    function = ast.parse(f"def {name}(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.args, function.body = found.value.args, [ast.Return(found.value.body)]
    return ast.fix_missing_locations(function)
