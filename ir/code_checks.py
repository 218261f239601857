"""Checks that a graph's code stays within its subset of Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from sgc.ir.code_classes import check_class
from sgc.ir.code_errors import CodeError, Import, refuse
from sgc.ir.code_names import BUILTINS, LIBRARY, SPECIAL_METHODS

__all__ = ["MODULES", "Checker", "CodeError", "Import", "name_of", "refuse"]
MODULES = frozenset(LIBRARY)
_ALLOWED = (
    ast.FunctionDef, ast.Return, ast.Delete, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For,
    ast.While, ast.If, ast.Match, ast.match_case, ast.Raise, ast.Try, ast.Assert, ast.Nonlocal,
    ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.BoolOp, ast.NamedExpr, ast.BinOp,
    ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.Yield, ast.YieldFrom, ast.Compare, ast.Call,
    ast.FormattedValue, ast.JoinedStr, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred,
    ast.Name, ast.List, ast.Tuple, ast.Slice, ast.expr_context, ast.boolop, ast.operator,
    ast.unaryop, ast.cmpop, ast.comprehension, ast.ExceptHandler, ast.arguments, ast.arg,
    ast.keyword, ast.MatchValue, ast.MatchSingleton, ast.MatchSequence, ast.MatchMapping,
    ast.MatchClass, ast.MatchStar, ast.MatchAs, ast.MatchOr,
)  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp,
              ast.DictComp)  # fmt: skip
_CONSTANTS = (str, bytes, int, float, bool, type(None))
_MATCHED = frozenset({"bool", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str",
                      "tuple"})  # fmt: skip


class Checker:
    """Checks each node of the code."""

    def __init__(self, imports: dict[str, Import], bound: set[str]) -> None:
        self._imports, self._bound = imports, bound
        self.classes: set[str] = set()
        self.defined: set[str] = set()  # the classes defined so far
        self._of_class: set[str] = set()  # the names of the enclosing class so far
        self._in_method = False
        shadowed = imports.keys() & bound
        if shadowed:
            raise CodeError(f"expected that imports stay, found {sorted(shadowed)[0]} bound again")
        for name in imports:
            self.check_name(ast.Module([], []), name.partition(".")[0])

    def check(self, body: list[ast.stmt]) -> None:
        self.classes |= {node.name for node in body if isinstance(node, ast.ClassDef)}
        for node in body:
            if isinstance(node, ast.Assign) and not all(
                isinstance(target, ast.Name) for target in node.targets
            ):
                raise refuse(node, "a constant with a name", "another target")
            if isinstance(node, ast.AnnAssign) and not isinstance(node.target, ast.Name):
                raise refuse(node, "a constant with a name", "another target")
            if isinstance(node, ast.ClassDef):
                check_class(node, self)
            else:
                self.see(node)
        _check_bound_once(body)

    def see(self, node: ast.AST, of_class: set[str] | None = None) -> None:
        """Checks a node outside of functions. of_class: the names of the enclosing class."""
        self._of_class = of_class or set()
        self._see(node, False)
        self._of_class = set()

    def see_method(self, node: ast.FunctionDef, of_class: set[str]) -> None:
        """Checks a method, except its name and decorators, which were checked before."""
        self._of_class = of_class
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self._see(default, False)
        self._of_class = set()
        self._in_method = bool([*node.args.posonlyargs, *node.args.args])
        for child in _seen(node):
            self._see(child, True)
        self._in_method = False

    def _see(self, node: ast.AST, in_function: bool, in_loop: bool = False) -> None:
        if isinstance(node, (ast.Break, ast.Continue)) and not in_loop:
            raise refuse(node, "a loop around it", name_of(node).lower())
        if not isinstance(node, _ALLOWED) or isinstance(node, ast.MatMult):
            raise refuse(node, "the subset of Python", name_of(node))
        check = getattr(self, f"_on_{type(node).__name__.lower()}", None)
        if check is not None:
            check(node)
        if isinstance(node, (ast.Yield, ast.YieldFrom)) and not in_function:
            raise refuse(node, "yield in a function", "yield outside")
        if isinstance(node, ast.Attribute):
            if self.path(node) is not None:
                return
            if is_super(node.value) and self._in_method:
                return
        was_in_method = self._in_method
        if isinstance(node, _FUNCTIONS):
            self._in_method = False
        is_function = in_function or isinstance(node, ast.FunctionDef)
        is_loop, outer = isinstance(node, (ast.For, ast.While)), in_loop
        in_loop = (in_loop or is_loop) and not isinstance(node, ast.FunctionDef)
        for child in _seen(node):
            is_after = isinstance(node, (ast.For, ast.While)) and child in node.orelse
            may_yield = is_function and not isinstance(node, ast.Lambda)
            self._see(child, may_yield, outer if is_after else in_loop)
        self._in_method = was_in_method

    def path(self, node: ast.expr) -> Import | None:
        """The item of a module that a chain of attributes names; None if it names none."""
        names: list[str] = []
        inner = node
        while isinstance(inner, ast.Attribute):
            names.insert(0, inner.attr)
            inner = inner.value
        if not (isinstance(inner, ast.Name) and inner.id in self._imports):
            return None
        found = self._imports[inner.id]
        if found.item is not None or not names:
            return None
        module = ".".join([found.module, *names[:-1]])
        if module not in MODULES:
            return None
        if names[-1] not in LIBRARY[module]:
            raise refuse(node, "a name of the whitelist", f"{module}.{names[-1]}")
        return Import(module, names[-1])

    def imported(self, node: ast.expr) -> Import | None:
        """The item of a module that an expression names; None if it names none."""
        if isinstance(node, ast.Name):
            return self._imports.get(node.id)
        return self.path(node)

    def is_bound(self, name: str) -> bool:
        """Whether the code itself binds a name."""
        return name in self._bound or name in self._imports

    def check_name(self, node: ast.AST, name: str) -> None:
        if name.startswith("__"):
            raise refuse(node, "a name that does not begin with __", repr(name))

    def _on_name(self, node: ast.Name) -> None:
        self.check_name(node, node.id)
        found = self._imports.get(node.id)
        if found is not None and found.item is None:
            raise refuse(node, "a name of the module", f"the module {node.id} as a value")
        if node.id == "super":
            raise refuse(node, "super().name in a method", "another super")
        is_bound = node.id in self._bound or node.id in self._of_class
        known = found is not None or is_bound or node.id in BUILTINS
        if isinstance(node.ctx, ast.Load) and not known:
            raise refuse(node, "a name of the code or of the whitelist", repr(node.id))

    def _on_attribute(self, node: ast.Attribute) -> None:
        if is_super(node.value) and not isinstance(node.ctx, ast.Load):
            raise refuse(node, "super().name that is read", "a change of it")
        of_super = is_super(node.value) and isinstance(node.ctx, ast.Load)
        is_name = node.attr == "__name__" and isinstance(node.ctx, ast.Load)  # of a class
        if (
            node.attr.startswith("__")
            and not is_name
            and not (of_super and node.attr in SPECIAL_METHODS)
        ):
            raise refuse(node, "an attribute that does not begin with __", repr(node.attr))

    def _on_functiondef(self, node: ast.FunctionDef) -> None:
        self.check_name(node, node.name)
        if node.decorator_list:
            raise refuse(node, "a function without decorators", f"a decorator of {node.name}")

    def _on_arguments(self, node: ast.arguments) -> None:
        args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        names = [each.arg for each in [*args, node.vararg, node.kwarg] if each is not None]
        if len(set(names)) < len(names):
            raise refuse(args[0], "arguments with names of their own", "a name twice")

    def _on_nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            self.check_name(node, name)

    def _on_arg(self, node: ast.arg) -> None:
        self.check_name(node, node.arg)

    def _on_keyword(self, node: ast.keyword) -> None:
        self.check_name(node, node.arg or "")

    def _on_constant(self, node: ast.Constant) -> None:
        if type(node.value) not in _CONSTANTS:
            raise refuse(node, "a constant that is data", repr(node.value))

    def _on_excepthandler(self, node: ast.ExceptHandler) -> None:
        self.check_name(node, node.name or "")

    def _on_matchas(self, node: ast.MatchAs) -> None:
        self.check_name(node, node.name or "")

    def _on_matchstar(self, node: ast.MatchStar) -> None:
        self.check_name(node, node.name or "")

    def _on_matchmapping(self, node: ast.MatchMapping) -> None:
        self.check_name(node, node.rest or "")

    def _on_matchclass(self, node: ast.MatchClass) -> None:
        name = node.cls.id if isinstance(node.cls, ast.Name) else ""
        if name in self.classes:
            for attribute in node.kwd_attrs:
                self.check_name(node, attribute)
            return
        if name not in _MATCHED - self._bound or node.kwd_patterns or len(node.patterns) > 1:
            expected = "a class of the code, or a builtin type with one pattern at most"
            raise refuse(node, expected, "another class pattern")


def is_super(node: ast.AST) -> bool:
    """Whether an expression is `super()`."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return isinstance(node.func, ast.Name) and node.func.id == "super"


def _check_bound_once(body: list[ast.stmt]) -> None:
    """Refuses a class whose name the module binds to something else, too."""
    classes = {node.name for node in body if isinstance(node, ast.ClassDef)}
    seen: set[str] = set()
    for node in body:
        names = [each.id for each in ast.walk(node) if _is_stored(each)]
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        for name in names:
            if name in seen & classes:
                raise refuse(node, f"the class {name} alone by its name", "another definition")
            seen.add(name)


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _seen(node: ast.AST) -> Iterator[ast.AST]:
    """The children that are evaluated, without annotations."""
    skipped = {"annotation", "returns", "decorator_list", "type_comment"}
    for name, value in ast.iter_fields(node):
        if name in skipped:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield each


def name_of(node: ast.AST) -> str:
    return type(node).__name__
