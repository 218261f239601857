"""The text of a module that a piece of a program becomes: its function, and all that it uses."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from sgc.core.markers import has_marker
from sgc.core.watching import unwatched
from sgc.ir.code_names import BUILTINS, LIBRARY
from sgc.tracing.pieces.changes import changes_outside
from sgc.tracing.pieces.names import free_names, names_of
from sgc.tracing.pieces.trees import Function, function_of, tree_of

MAX_FUNCTIONS = 50
MAX_CONSTANT = 4000  # characters
MISSING = object()


@lru_cache(maxsize=1024)  # a trace that repeats asks again
def _text(node: ast.AST) -> str:
    return ast.unparse(node)


class NotData(Exception):
    """A part of a program is more than computing with data, or nobody can tell."""


# What a name is, by the globals of a function: those of the user's module itself.
Originals = Callable[[dict[str, Any]], Mapping[str, Any]]


class ModuleText:
    """Collects what a piece uses. originals: the user's own globals, where a trace runs others."""

    def __init__(self, originals: Originals) -> None:
        self._originals = originals
        self._bound: dict[str, Any] = {}
        self._imports: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        self.changes_outside = False

    def text(self, entry: ast.FunctionDef) -> str:
        """The module, which ends with the entry."""
        parts = [*self._imports.values(), *self._constants.values(), *self._functions.values()]
        return "\n".join([*parts, ast.unparse(entry)])

    def free_name(self, name: str) -> str:
        """A name for the entry, which nothing else has."""
        while name in self._bound or hasattr(builtins, name):
            name += "_"
        return name

    def rewritten(self, node: ast.AST) -> Any:
        """A copy of a part of the program, as code that is data."""
        return _Plainer(self._patterns()).visit(ast.parse(_text(node)))

    def _patterns(self) -> dict[str, re.Pattern[str]]:
        return {n: v for n, v in self._bound.items() if type(v) is re.Pattern}

    def need(self, name: str, names: Mapping[str, Any]) -> None:
        """Takes in what a name stands for, by a function's globals."""
        value = names.get(name, MISSING)
        if value is MISSING:
            if name not in BUILTINS:
                raise NotData(f"{name} is no builtin of such code")
            value = getattr(builtins, name)
        self.bind(name, value)

    def bind(self, name: str, value: Any) -> None:
        """Takes in a value under a name."""
        if name in self._bound:
            if self._bound[name] is not value:
                raise NotData(f"{name} stands for two things")
            return
        self._bound[name] = value
        if isinstance(value, ModuleType):
            self._module(name, value)
        elif isinstance(value, FunctionType):
            self._function(name, value)
        elif isinstance(value, functools._lru_cache_wrapper):
            self._function(name, value.__wrapped__)  # type: ignore[arg-type]
        elif isinstance(value, (type, BuiltinFunctionType)):
            self._known(name, value)
        elif type(value) is re.Pattern:
            self._need_import("re", re)
        else:
            self._constant(name, value)

    def _module(self, name: str, module: ModuleType) -> None:
        if module.__name__ not in LIBRARY:
            raise NotData(f"{module.__name__} is no module of such code")
        as_name = "" if name == module.__name__ else f" as {name}"
        self._imports[name] = f"import {module.__name__}{as_name}"

    def _need_import(self, name: str, module: ModuleType) -> None:
        if name not in self._bound:
            self._bound[name] = module
            self._module(name, module)
        elif self._bound[name] is not module:
            raise NotData(f"{name} stands for two things")

    def _known(self, name: str, value: Any) -> None:
        if getattr(builtins, name, MISSING) is value and name in BUILTINS:
            return
        found = _library().get(id(value))
        if found is None:
            raise NotData(f"{name} is not known to such code")
        module, own = found
        as_name = "" if own == name else f" as {name}"
        self._imports[name] = f"from {module} import {own}{as_name}"

    def _function(self, name: str, function: FunctionType) -> None:
        known = _library().get(id(function))
        if known is not None:
            self._known(name, function)
            return
        if len(self._functions) >= MAX_FUNCTIONS:
            raise NotData("it calls too many functions")
        tree = tree_of(function.__code__.co_filename)
        node = None if tree is None else function_of(function.__code__, tree)
        if node is None:
            raise NotData(f"the source of {name} is not known")
        self._functions[name] = ""  # it may call itself
        self.needs_of(node, function)
        self._functions.pop(name)
        made = _named(name, self.rewritten(node))
        self.changes_outside = self.changes_outside or changes_outside(made, is_entry=False)
        self._functions[name] = ast.unparse(made)

    def needs_of(self, node: Function, function: FunctionType) -> None:
        """Takes in what a function uses."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        names = self._originals(function.__globals__)
        for name in sorted(free_names(node) | _in_defaults(node)):
            if name in cells:
                try:
                    self.bind(name, cells[name].cell_contents)
                except ValueError:
                    raise NotData(f"{name} is not set") from None
            else:
                self.need(name, names)
        defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        if not all(isinstance(each, ast.Constant) for each in defaults):
            raise NotData("a default is no constant")

    def _constant(self, name: str, value: Any) -> None:
        text = literal(value)
        if len(text) > MAX_CONSTANT:
            raise NotData(f"{name} is too large")
        self._constants[name] = f"{name} = {text}"

    @property
    def changeable(self) -> set[str]:
        """What it takes in that a function might change: lists, dicts and sets of outside."""
        return {name for name in self._constants if type(self._bound[name]) in _CHANGEABLE}

    @property
    def has_changeable(self) -> bool:
        return bool(self.changeable)

    @property
    def has_nested(self) -> bool:
        """Whether one of them holds another."""
        return any(_holds(self._bound[name]) for name in self._constants)


_CHANGEABLE = (list, dict, set)


def _holds(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    return isinstance(value, (list, tuple, dict)) and any(
        type(each) in _CHANGEABLE or _holds(each) for each in parts
    )


def literal(value: Any) -> str:
    """Plain data as Python writes it, the same in each process."""
    kind = type(value)
    if kind is str and has_marker(value):
        raise NotData("a text is known only at run time")
    if value is None or kind in (bool, int, str):
        return repr(value)
    if kind is float and value == value and value not in (float("inf"), float("-inf")):
        return repr(value)
    if kind is list:
        return f"[{', '.join(map(literal, value))}]"
    if kind is tuple:
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if kind is set and value:
        return "{" + ", ".join(sorted(map(literal, value))) + "}"
    if kind is dict:
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    raise NotData(f"a {kind.__name__} is no plain data")


@lru_cache(maxsize=1)
def _library() -> dict[int, tuple[str, str]]:
    """What such code may import, by identity."""
    found = {}
    for module, names in LIBRARY.items():
        with unwatched():  # what a library reads as it is loaded is its own affair
            there = importlib.import_module(module)
        for name in sorted(names):
            value = getattr(there, name)
            if callable(value):
                found[id(value)] = (module, name)
    return found


def _in_defaults(node: Function) -> set[str]:
    defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
    return names_of(defaults).reads


def _named(name: str, module: ast.Module) -> ast.FunctionDef:
    """The one function of a module, by a name; a lambda becomes one."""
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


class _Plainer(ast.NodeTransformer):
    """Without decorators, annotations and docstrings; patterns that are known are written out."""

    def __init__(self, patterns: Mapping[str, re.Pattern[str]]) -> None:
        self._patterns = patterns
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if node.decorator_list and self._depth:
            raise NotData("a function inside of another is decorated")
        node.decorator_list, node.returns = [], None
        self._depth += 1
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        self.generic_visit(node)
        self._depth -= 1
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        if node.arg in self._patterns:
            raise NotData(f"{node.arg} is a pattern elsewhere")
        node.annotation = None
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operands = [node.left, *node.comparators]
        for op, *both in zip(node.ops, operands, operands[1:], strict=False):
            is_known = any(isinstance(each, ast.Constant) for each in both)
            if isinstance(op, (ast.Is, ast.IsNot)) and not is_known:
                raise NotData("whether two are the same object is not known of copies")
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        pattern = self._patterns.get(node.id)
        if pattern is None:
            return node
        if not isinstance(node.ctx, ast.Load):
            raise NotData(f"{node.id} is a pattern elsewhere")
        made = ast.parse(f"re.compile({pattern.pattern!r}, {int(pattern.flags)})", mode="eval")
        return ast.copy_location(made.body, node)
