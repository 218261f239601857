"""The definitions of its module that a class uses: with them, the class means the same anywhere."""

from __future__ import annotations

import ast
import copy
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sgc.ir.code_errors import Import


@dataclass(frozen=True, slots=True)
class Closure:
    """key: equal for equal classes; body: the statements that the class needs, in order."""

    key: str
    body: tuple[ast.stmt, ...]
    imports: dict[str, Import]


class Uses:
    """The uses of a module's definitions by each other."""

    def __init__(self, body: Sequence[ast.stmt], imports: dict[str, Import]) -> None:
        self._body, self._imports = body, imports

    def closure(self, name: str) -> Closure:
        """A definition with all definitions that it uses, directly or indirectly."""
        names, left = set(), [name]
        while left:
            each = left.pop()
            if each not in names:
                names.add(each)
                left += [
                    used for number in self._places.get(each, ()) for used in self._used[number]
                ]
        numbers = sorted({number for each in names for number in self._places.get(each, ())})
        body = [self._body[number] for number in numbers]
        imports = {each: self._imports[each] for each in sorted(names & self._imports.keys())}
        return Closure(_key(name, body, imports), tuple(body), imports)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The numbers of the statements that bind each name."""
        found: dict[str, list[int]] = {}
        for number, node in enumerate(self._body):
            for name in _bound_by(node):
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def _used(self) -> list[set[str]]:
        """The names of the module that each statement uses or binds; others may bind them too."""
        return [used_names(node) | set(_bound_by(node)) for node in self._body]


def _bound_by(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
        return
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id


def used_names(node: ast.stmt) -> set[str]:
    """The names of its module that a statement uses, now or later; not those in annotations."""
    plain = ast.fix_missing_locations(_WithoutAnnotations().visit(copy.deepcopy(node)))
    return set(_referenced(symtable.symtable(ast.unparse(plain), "code", "exec")))


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def _referenced(table: symtable.SymbolTable) -> Iterator[str]:
    is_function = table.get_type() == "function"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or not is_function):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _referenced(child)


def _key(name: str, body: list[ast.stmt], imports: dict[str, Import]) -> str:
    """The key of a closure; the order of definitions counts only if constants are computed."""
    texts = [ast.unparse(node) for node in body]
    if not any(_is_computed(node) for node in body):
        texts.sort()
    found = [f"{alias} = {each.module}.{each.item or ''}" for alias, each in imports.items()]
    return "\n".join([name, *found, *texts])


def _is_computed(node: ast.stmt) -> bool:
    is_constant = isinstance(node, (ast.Assign, ast.AnnAssign))
    return is_constant and any(isinstance(each, ast.Call) for each in ast.walk(node))
