"""Inputs of a piece that are not Python variables: variables of streams, attributes of objects, and
hoisted expressions of a statement.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from sgc.tracing.code.trees import COMPREHENSIONS, surely
from sgc.tracing.pieces.first import comprehensions_first
from sgc.tracing.pieces.known import known_parts
from sgc.tracing.pieces.names import names_of, parameters
from sgc.tracing.pieces.text.function_checks import Changer


@dataclass(frozen=True, slots=True)
class Outer:
    """What is known of a piece's function. free: variables of enclosing functions; streams:
    variables that are streams or matches; attributes: pairs of a variable that is a user's object
    and one of its data attributes; defaulting: variables that may be `defaultdict`s; changers: the
    program's functions that may change their arguments, by their names; objects: variables that are
    a library's objects; own: names of Python's functions that the function or its module rebinds.
    """

    free: frozenset[str]
    streams: frozenset[str]
    attributes: frozenset[tuple[str, str]]
    defaulting: frozenset[str] = frozenset()
    changers: frozenset[tuple[str, Changer]] = frozenset()
    objects: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    is_live: bool = False  # whether inputs are live, and so changed in place
    are_set: bool = False  # whether all variables that are read of streams are set


class Holes(ast.NodeTransformer):
    """Replaces such inputs by names. given: the expression for each name; hoisted: the expressions
    that are evaluated once, before the piece.
    """

    def __init__(self, outer: Outer, hoisted: list[ast.expr]) -> None:
        self._outer = outer
        self._hoisted = {id(node): n for n, node in enumerate(hoisted)}
        self.n_hoisted = len(hoisted)
        self.given: dict[str, ast.expr] = {}
        self.hoisted: dict[str, ast.expr] = {}
        self._attributes: dict[str, str] = {}  # names of attributes, with their objects' variables
        self._names: dict[str, str] = {}
        self._used: set[str] = set()
        self._hidden: set[int] = set()

    def filled(self, node: ast.stmt | ast.expr) -> ast.AST:
        """A copy of a node with these inputs replaced by names."""
        self._used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        memo: dict[int, Any] = {}
        copied = copy.deepcopy(node, memo)
        self._hoisted = {id(memo[key]): n for key, n in self._hoisted.items() if key in memo}
        self._hidden = {id(each) for each in _of_inner_names(copied)}
        filled: ast.AST = self.visit(copied)
        return filled

    @property
    def names(self) -> set[str]:
        return {*self.given, *self.hoisted}

    def sure(self, node: ast.AST) -> set[str]:
        """The names whose expressions may be evaluated before the piece."""
        streams = self._outer.streams
        if self._outer.are_set:
            return self.names
        read = {
            self._names.get(ast.unparse(each), "")
            for each in surely(node)
            if is_stream_read(each, streams)
        }
        return read | self.hoisted.keys() | self._attributes.keys()

    def is_writable(self, names: Collection[str]) -> bool:
        """Whether these names can be set: variables, or attributes of a single object."""
        holes = self.names & set(names)
        if not holes:
            return True
        return holes <= self._attributes.keys() and len(set(self._attributes.values())) == 1

    def visit(self, node: ast.AST) -> ast.AST:
        number = self._hoisted.get(id(node))
        if number is None:
            visited: ast.AST = super().visit(node)
            return visited
        name = self._free(f"value_{number:03}_")
        assert isinstance(node, ast.expr)
        self.hoisted[name] = node
        return _named(name, node)

    def _given(self, node: ast.expr) -> str:
        """The name for an expression; equal expressions have one name."""
        text = ast.unparse(node)
        if text not in self._names:
            name = self._free(re.sub(r"\W", "_", text).strip("_") + "_")
            self._names[text] = name
            self.given[name] = copy.deepcopy(node)
        return self._names[text]

    def _free(self, name: str) -> str:
        while name in self._used:
            name += "_"
        self._used.add(name)
        return name

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if is_stream_read(node, self._outer.streams) and id(node) not in self._hidden:
            return _named(self._given(node), node)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        of = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_hidden = of is not None and id(node.func) in self._hidden
        if is_stream_read(node, self._outer.streams) and not is_hidden:
            return _named(self._given(node), node)
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        of = node.value.id if isinstance(node.value, ast.Name) else ""
        if (of, node.attr) not in self._outer.attributes or id(node) in self._hidden:
            self.generic_visit(node)
            return node
        read = ast.Attribute(ast.Name(of, ast.Load()), node.attr, ast.Load())
        name = self._given(ast.copy_location(read, node))
        self._attributes[name] = of
        return ast.copy_location(ast.Name(name, node.ctx), node)


def _of_inner_names(node: ast.AST) -> Iterator[ast.expr]:
    """Attributes and parts of variables of lambdas and comprehensions; these variables hide the
    function's variables of the same names."""
    for scope in ast.walk(node):
        if isinstance(scope, ast.Lambda):
            bound = set(parameters(scope.args))
        elif isinstance(scope, COMPREHENSIONS):
            bound = names_of([each.target for each in scope.generators]).writes
        else:
            continue
        for each in ast.walk(scope):
            if isinstance(each, (ast.Attribute, ast.Subscript)) and (
                getattr(each.value, "id", "") in bound
            ):
                yield each


class Hoisting(Enum):
    """Which expressions of a statement are evaluated before the piece that the statement is."""

    NOTHING = auto()
    VALUES = auto()
    KEYS = auto()  # values and keys
    COMPREHENSIONS = auto()  # those that are evaluated first; they may read streams or ask
    KNOWN = auto()  # the parts computed from a library's objects, which are not data


def hoisted_of(
    node: ast.AST, hoisting: Hoisting, outer: Outer, defaulting: Collection[str]
) -> list[ast.expr]:
    """The expressions of a statement that can be evaluated first: those that it puts into a list or
    dict, their key, or the iterable of the comprehension that it assigns.

    defaulting: variables of which no part is missing, so that `d[k].append(f())` cannot fail
    before it calls `f`.
    """
    if hoisting is Hoisting.NOTHING:
        return []
    if hoisting is Hoisting.KEYS:
        return _with_key(node)
    if hoisting is Hoisting.COMPREHENSIONS:
        return comprehensions_first(node)
    if hoisting is Hoisting.KNOWN:
        return known_parts(node, outer.objects, outer.own)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return [] if len(node.targets) > 1 else [node.value]
    if isinstance(node, ast.Assign) and isinstance(node.value, COMPREHENSIONS):
        over = node.value.generators[0].iter
        return [] if isinstance(over, (ast.Constant, ast.Name)) or _is_lazy(over) else [over]
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return []
    whole = call.func.value
    args = [*call.args, *(each.value for each in call.keywords)]
    if is_part(whole) and getattr(whole.value, "id", "") in defaulting:  # type: ignore[attr-defined]
        whole = whole.value  # type: ignore[attr-defined]
        if any(_sees(arg, whole.id) for arg in args):  # type: ignore[attr-defined]
            return []
    if not isinstance(whole, (ast.Name, ast.Attribute)):
        return []
    return [each for each in args if not isinstance(each, (ast.Constant, ast.Name, ast.Starred))]


def _is_lazy(node: ast.expr) -> bool:
    """Whether an expression returns an iterator, which is not data."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in LAZY


LAZY = frozenset({"zip", "map", "filter", "enumerate", "reversed", "iter", "range"})


def _with_key(node: ast.AST) -> list[ast.expr]:
    """The assigned value and the key, where a statement sets an item of a variable or attribute by
    a key that contains a call: `counts[ask(q)] += 1`."""
    targets: list[ast.expr] = [node.target] if isinstance(node, ast.AugAssign) else []
    if isinstance(node, ast.Assign):
        targets = node.targets
    target = targets[0] if len(targets) == 1 else None
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, _WHOLE):
        return []
    parts = [*ast.walk(target.slice)]
    is_called = any(isinstance(each, ast.Call) for each in parts)
    if not is_called or any(isinstance(each, _SETTING) for each in parts):
        return []
    is_set = isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant)
    return [node.value, target.slice] if is_set else [target.slice]  # type: ignore[attr-defined]


_WHOLE = (ast.Name, ast.Attribute)
_SETTING = (ast.NamedExpr, ast.Slice)


def _sees(node: ast.expr, name: str) -> bool:
    """Whether an expression reads the dict of that name, to which the new key has been added by
    then, or sets a variable, which may be the key."""
    return any(
        isinstance(each, ast.NamedExpr) or (isinstance(each, ast.Name) and each.id == name)
        for each in ast.walk(node)
    )


def is_part(node: ast.expr) -> bool:
    """Whether an expression is `d[k]` of variables or constants."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, (ast.Name, ast.Constant))
    )


def is_stream_read(node: ast.AST, streams: Collection[str]) -> bool:
    """Whether an expression reads a variable of a stream, or a group of a match."""
    if isinstance(node, ast.Call):
        of = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_group = of is not None and node.func.attr == "group"  # type: ignore[attr-defined]
        is_group = is_group and isinstance(of, ast.Name) and of.id in streams
        are_known = all(isinstance(each, ast.Constant) for each in node.args)
        return is_group and are_known and len(node.args) < 2 and not node.keywords
    return (
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name) and node.value.id in streams
        and isinstance(node.slice, (ast.Name, ast.Constant))
    )  # fmt: skip


def _named(name: str, at: ast.expr) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), at)
