"""Rewrites a part of a program as code: without decorators, annotations and docstrings."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sgc.runtime.executor.code.set_order import is_constant
from sgc.tracing.kinds.sets import has_open_order, is_pythons_own
from sgc.tracing.pieces.text.constants import (
    LostOrder,
    NotData,
)


def _gone_over(node: ast.expr) -> ast.expr:
    """The iterable of a loop; Python's compiler makes a display of constants a frozenset, which may
    have another order."""
    if not isinstance(node, ast.Set) or not all(map(is_constant, node.elts)):
        return node
    if has_open_order(node):
        raise LostOrder("the order of a set of constants is seen: a list has one")
    if is_pythons_own(node, is_gone_over=True):  # its order must not be seen
        return node
    items = ast.Tuple(node.elts, ast.Load())
    return ast.fix_missing_locations(
        ast.copy_location(ast.Call(ast.Name("frozenset", ast.Load()), [items], []), node)
    )


def _looking_up(node: ast.Attribute) -> ast.expr:
    """`d.__getitem__`, as a key of `max` or `sorted`, is a function: code has no such names."""
    if not isinstance(node.value, ast.Name) or not isinstance(node.ctx, ast.Load):
        return node
    name = node.value.id
    key = "key" if name != "key" else "item"
    return ast.copy_location(ast.parse(f"lambda {key}: {name}[{key}]", mode="eval").body, node)


def _is_constant(node: ast.stmt) -> bool:
    """Whether a statement is a constant: a docstring, or `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


_MEMBERS = "__members__"


class Plainer(ast.NodeTransformer):
    """Removes decorators, annotations and docstrings, and writes known patterns out.

    enumerations: the code's enumerations, with the names of their members; is_live: whether objects
    are passed themselves, not as copies; caches: the names of `functools.lru_cache` and `cache`.
    """

    def __init__(
        self,
        patterns: Mapping[str, re.Pattern[str]],
        enumerations: Mapping[str, Collection[str]] | None = None,
        is_live: bool = False,
        caches: Collection[str] = (),
    ) -> None:
        self._caches = frozenset(caches)
        self._is_live = is_live
        self._patterns = patterns
        self._enumerations = enumerations or {}
        self._members: set[str] = set()  # variables that are always members
        self._of_class: dict[str, str] = {}  # class methods' classes, by their `cls`
        self._depth = 0

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Writes `...`, the body of a mere declaration, as `pass`."""
        is_empty = isinstance(node.value, ast.Constant) and node.value.value is Ellipsis
        return ast.copy_location(ast.Pass(), node) if is_empty else self.generic_visit(node)  # type: ignore[return-value]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        is_cached = bool(self._depth) and self._is_cached(node)
        if node.decorator_list and self._depth and not is_cached:
            raise NotData("a function inside of another is decorated")
        node.decorator_list, node.returns = [], None
        self._depth += 1
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        self.generic_visit(node)
        self._depth -= 1
        if is_cached:
            kept = f"{node.name} = cached({node.name}, {node.name!r})"
            return [node, ast.copy_location(ast.parse(kept).body[0], node)]
        return node

    def _is_cached(self, node: ast.FunctionDef) -> bool:
        """Whether the results of a function are cached, by its only decorator."""
        if len(node.decorator_list) != 1:
            return False
        (decorator,) = node.decorator_list
        if isinstance(decorator, ast.Call):
            if any(each.arg != "maxsize" for each in decorator.keywords) or len(decorator.args) > 1:
                return False  # `typed`
            decorator = decorator.func
        return ast.unparse(decorator) in self._caches

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                decorators = each.decorator_list
                is_of_class = "classmethod" in map(ast.unparse, decorators)
                self._of_class = {each.args.args[0].arg: node.name} if is_of_class else {}
                self.visit(each)
                each.decorator_list, self._of_class = decorators, {}
            elif isinstance(each, ast.AnnAssign):
                each.annotation = ast.Name("object", ast.Load())
                self.generic_visit(each)
        node.body = [each for each in node.body if not _is_constant(each)] or [ast.Pass()]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if node.attr in ("get", "items", "keys", "values"):
            node.value = self._members_shown(node.value)
        self.generic_visit(node)
        return _looking_up(node) if node.attr == "__getitem__" else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.value = self._members_shown(node.value)
        self.generic_visit(node)
        return node

    def _members_shown(self, node: ast.expr) -> ast.expr:
        """`Class.__members__` as a dict, where only its contents are seen; else the node."""
        of = node.value if isinstance(node, ast.Attribute) and node.attr == _MEMBERS else None
        kind = self._of_class.get(of.id, of.id) if isinstance(of, ast.Name) else ""
        if kind not in self._enumerations:
            return node
        made = ", ".join(f"{name!r}: {kind}.{name}" for name in self._enumerations[kind])
        return ast.copy_location(ast.parse(f"{{{made}}}", mode="eval").body, node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        if node.arg in self._patterns:
            raise NotData(f"{node.arg} is a pattern elsewhere")
        if node.arg in self._enumerations:
            raise NotData(f"{node.arg} is an enumeration elsewhere")
        node.annotation = None
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        node.iter = self._members_shown(_gone_over(node.iter))
        self.generic_visit(node)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter = self._members_shown(_gone_over(node.iter))
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operands = [node.left, *node.comparators]
        for op, *both in zip(node.ops, operands, operands[1:], strict=False):
            is_known = any(isinstance(each, ast.Constant) or self._is_member(each) for each in both)
            if isinstance(op, (ast.Is, ast.IsNot)) and not (is_known or self._is_live):
                raise NotData("whether two copies are the same object is not known")
        for n, each in enumerate(node.comparators):
            if isinstance(node.ops[n], (ast.In, ast.NotIn)):
                each = self._members_shown(each)
            if not isinstance(each, ast.Set):  # a comparison does not see a set's order
                node.comparators[n] = self.visit(each)
        node.left = self.visit(node.left)
        return node

    def of(self, tree: ast.AST) -> Any:
        """A part of a program, rewritten."""
        over = self._loops_over(tree)
        stores = Counter(
            each.id for each in ast.walk(tree)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        )  # fmt: skip
        self._members = {name for name, n in Counter(over).items() if stores[name] == n}
        self._members -= {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
        return self.visit(tree)

    def _loops_over(self, tree: ast.AST) -> Iterator[str]:
        """The targets of loops over enumerations."""
        for each in ast.walk(tree):
            if isinstance(each, (ast.For, ast.comprehension)) and isinstance(each.target, ast.Name):
                is_one = isinstance(each.iter, ast.Name) and each.iter.id in self._enumerations
                yield from [each.target.id] if is_one else []

    def _is_member(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name) and node.id in self._members:
            return True
        of = node.value if isinstance(node, ast.Attribute) else None
        return isinstance(of, ast.Name) and of.id in self._enumerations

    def visit_Set(self, node: ast.Set) -> ast.expr:
        self.generic_visit(node)
        if has_open_order(node):
            raise LostOrder("the order of a set of constants is seen: a list has one")
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._enumerations and not isinstance(node.ctx, ast.Load):
            raise NotData(f"{node.id} is an enumeration elsewhere")
        pattern = self._patterns.get(node.id)
        if pattern is None:
            return node
        if not isinstance(node.ctx, ast.Load):
            raise NotData(f"{node.id} is a pattern elsewhere")
        made = ast.parse(f"re.compile({pattern.pattern!r}, {int(pattern.flags)})", mode="eval")
        return ast.copy_location(made.body, node)
