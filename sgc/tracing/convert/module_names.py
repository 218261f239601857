"""The names that a module binds and sets anywhere, which decide how each of its functions is
rewritten.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sgc.tracing.code.process_names import NAMES_OF_PROCESS

_SETTING = frozenset({"setattr", "delattr", "vars"})  # they set any attribute


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """bound: the names that the module binds, in any scope; rebound: those that functions assign by
    `nonlocal` or `global`; replaced: the attributes that it sets on objects; generators: those that
    mean a generator function of the module, everywhere in it; yields: whether any of its functions
    is a generator; of_process: those that it imports
    and that may mean a module with names of the process, or, with its name, such a name;
    properties: those of its properties that branch, loop or call.
    """

    bound: frozenset[str]
    rebound: frozenset[str]
    replaced: frozenset[str]
    generators: frozenset[str]
    yields: bool
    of_process: Mapping[str, tuple[str, str]]
    properties: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tree: ast.Module) -> ModuleNames:
        nodes, declares = list(ast.walk(tree)), (ast.Nonlocal, ast.Global)
        rebound = {name for each in nodes if isinstance(each, declares) for name in each.names}
        attributes = [each for each in nodes if isinstance(each, ast.Attribute)]
        sets_by_name = _SETTING & {each.id for each in nodes if isinstance(each, ast.Name)}
        is_open = bool(sets_by_name) or any(each.attr == "__dict__" for each in attributes)
        replaced = {
            each.attr for each in attributes if is_open or not isinstance(each.ctx, ast.Load)
        }
        n_bound = Counter(bound_in(tree))
        generators = frozenset(name for name in _generators(tree) if n_bound[name] == 1)
        return cls(
            frozenset(n_bound), frozenset(rebound), frozenset(replaced), generators,
            any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in nodes),
            dict(_of_process(nodes)), frozenset(_properties(nodes)),
        )  # fmt: skip


def _properties(nodes: Iterable[ast.AST]) -> Iterator[str]:
    functions = [each for each in nodes if isinstance(each, ast.FunctionDef)]
    for each in functions:
        inside = (inner for stmt in each.body for inner in ast.walk(stmt))
        is_one = any(map(_is_property, each.decorator_list))
        if is_one and any(isinstance(inner, _DECIDING) for inner in inside):
            yield each.name


_DECIDING = (
    ast.If, ast.IfExp, ast.BoolOp, ast.Compare, ast.For, ast.While, ast.Match, ast.Try, ast.Call,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Subscript,
)  # fmt: skip


def _is_property(decorator: ast.expr) -> bool:
    name = decorator.attr if isinstance(decorator, ast.Attribute) else decorator
    name = name.id if isinstance(name, ast.Name) else name
    return name in ("property", "cached_property")


def bound_in(tree: ast.AST) -> Iterator[str]:
    """The names that code binds, in any scope."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest


def _of_process(nodes: list[ast.AST]) -> Iterator[tuple[str, tuple[str, str]]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name in NAMES_OF_PROCESS:
                    yield each.asname or each.name, (each.name, "")
        elif isinstance(node, ast.ImportFrom) and node.module in NAMES_OF_PROCESS:
            for each in node.names:
                if each.name in NAMES_OF_PROCESS[node.module]:
                    yield each.asname or each.name, (node.module, each.name)


def _generators(tree: ast.Module) -> Iterator[str]:
    """The names of the generator functions at the top of a module."""
    for each in tree.body:
        if isinstance(each, ast.FunctionDef) and not each.decorator_list:
            yield from [each.name] if any(map(_yields, each.body)) else []


def _yields(node: ast.AST) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return False
    is_yield = isinstance(node, (ast.Yield, ast.YieldFrom))
    return is_yield or any(map(_yields, ast.iter_child_nodes(node)))
