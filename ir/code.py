"""A small Python module as data: its text is parsed and checked here, and its tree is run by
`runtime/executor/code`. Names that are not in the tables of `code_names.py` are errors.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sgc.ir.code_checks import MODULES, Checker, CodeError, Import, name_of, refuse
from sgc.ir.code_names import LIBRARY

__all__ = ["MODULES", "Code", "CodeError", "Import", "parse_code"]

MAX_SOURCE = 20_000  # characters
MAX_TREE_DEPTH = 60


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """Checked code. body: constants, functions and classes in order; entry: the last function."""

    source: str
    imports: dict[str, Import]
    constants: tuple[ast.Assign | ast.AnnAssign, ...]
    functions: tuple[ast.FunctionDef, ...]
    body: tuple[ast.stmt, ...]
    entry: ast.FunctionDef


@lru_cache(maxsize=256)
def parse_code(source: str) -> Code:
    """Parses and checks code; raises CodeError."""
    if len(source) > MAX_SOURCE:
        raise CodeError(
            f"expected code of at most {MAX_SOURCE} characters, found {len(source)}",
            hint="move a part of it out of the program",
        )
    tree = _parsed(source)
    _check_depth(tree)
    imports, body = _parts(tree)
    try:
        Checker(imports, _bound(tree)).check(body)
    except RecursionError as error:
        raise CodeError("expected less nesting, found too many elif after each other") from error
    functions = tuple(each for each in body if isinstance(each, ast.FunctionDef))
    constants = tuple(each for each in body if isinstance(each, (ast.Assign, ast.AnnAssign)))
    if not functions:
        raise CodeError("expected a function, found none", where="line 1")
    _check_entry(functions[-1])
    return Code(source, imports, constants, functions, tuple(body), functions[-1])


def _parsed(source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        where = f"line {error.lineno}" if error.lineno else ""
        raise CodeError(f"expected Python, found {error.msg}", where=where) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise CodeError(f"expected Python, found text that cannot be parsed: {error}") from error


def _check_depth(tree: ast.Module) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_TREE_DEPTH):
        level = [inner for node in level for inner in _inner(node)]
        if not level:
            return
    raise refuse(level[0], f"nesting of at most {MAX_TREE_DEPTH}", "deeper nesting")


def _inner(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes nested in a node; an `elif` does not count as deeper than its `if`."""
    beside = [node]
    while beside:
        of = beside.pop()
        for child in ast.iter_child_nodes(of):
            if isinstance(of, ast.If) and isinstance(child, ast.If) and of.orelse == [child]:
                beside.append(child)
            else:
                yield child


def _parts(tree: ast.Module) -> tuple[dict[str, Import], list[ast.stmt]]:
    imports: dict[str, Import] = {}
    body: list[ast.stmt] = []
    for number, node in enumerate(tree.body):
        if isinstance(node, ast.Import):
            imports |= dict(_modules(node))
        elif isinstance(node, ast.ImportFrom):
            imports |= dict(_items(node))
        elif _is_text(node) and number == 0:
            continue
        elif isinstance(node, (ast.FunctionDef, ast.Assign, ast.AnnAssign, ast.ClassDef)):
            body.append(node)
        else:
            raise refuse(node, "imports, constants, functions and classes", name_of(node))
    return imports, body


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _modules(node: ast.Import) -> Iterator[tuple[str, Import]]:
    for alias in node.names:
        if alias.name not in MODULES:
            raise refuse(node, "a module of the whitelist", f"import {alias.name}")
        if "." in alias.name and not alias.asname:
            yield alias.name.partition(".")[0], Import(alias.name.partition(".")[0])
        yield alias.asname or alias.name, Import(alias.name)


def _items(node: ast.ImportFrom) -> Iterator[tuple[str, Import]]:
    module = node.module or ""
    for alias in node.names:
        is_known = alias.name in LIBRARY.get(module, ())
        if module in ("typing", "__future__") and not node.level and not is_known:
            if alias.name == "ClassVar" and alias.asname:
                raise refuse(node, "ClassVar by its own name", f"ClassVar as {alias.asname}")
            yield alias.asname or alias.name, Import(module)
            continue
        if node.level or not is_known:
            found = f"from {'.' * node.level}{module} import {alias.name}"
            raise refuse(node, "a name of the whitelist", found)
        yield alias.asname or alias.name, Import(module, alias.name)


def _check_entry(entry: ast.FunctionDef) -> None:
    args = entry.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
        expected = "an entry with positional arguments without defaults"
        raise refuse(entry, expected, f"def {entry.name} with others")


def _bound(tree: ast.Module) -> set[str]:
    """Every name that the code binds anywhere."""
    found: set[str] = set()
    for node in _of_functions(tree):
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
    return found


def _of_functions(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of the module and of its functions, without a class's own names."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, ast.ClassDef):
            left += ast.iter_child_nodes(node)
            continue
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                left += ast.iter_child_nodes(each)
            elif isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
                left.append(each.value)
