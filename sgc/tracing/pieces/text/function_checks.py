"""Checks the syntax of functions, so that code can be judged and made by it; and finds by syntax
what a function changes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from sgc.tracing.code.trees import source_of
from sgc.tracing.pieces.effects.changes import (
    CHANGERS,
    DECIDING,
    changed_roots,
    made_inside,
    root_of,
)
from sgc.tracing.pieces.names import bound_by, called_in, called_variables, parameters
from sgc.tracing.pieces.text.constants import NotData
from sgc.tracing.pieces.text.functions import asked_of
from sgc.tracing.pieces.text.library import known_library

Part = ast.FunctionDef | ast.ClassDef

# Names that would tell which fields of a model were given, or skip their validation.
_OF_MODELS = frozenset({"model_fields_set", "model_construct", "model_extra", "exclude_unset"})


def refuse_hidden(node: ast.AST) -> None:
    """Refuses a part of a program that rebinds one of Python's names by which code is judged, or
    imports such a function under another name."""
    for name in called_variables(node) & DECIDING:
        raise NotData(f"{name} is not Python's {name}")
    for each in ast.walk(node):
        used = each.attr if isinstance(each, ast.Attribute) else getattr(each, "arg", None)
        if used in _OF_MODELS:
            raise NotData(f"{used} of a model is not known to code")
        if isinstance(each, ast.alias) and each.asname and each.name in CHANGERS | DECIDING:
            raise NotData(f"{each.name} is called {each.asname}")


def with_callers(methods: Sequence[ast.FunctionDef], left: frozenset[str]) -> frozenset[str]:
    """Methods that are left out of a class, with those that may call them. Special methods stay."""
    while left:
        callers = {
            method.name
            for method in methods
            if not method.name.startswith("__")
            and any(isinstance(n, ast.Attribute) and n.attr in left for n in ast.walk(method))
        }
        if callers <= left:
            break
        left |= callers
    return left


def refuse_methods(parts: Sequence[Part], left: Set[str]) -> None:
    """Refuses code that may call a method that was left out."""
    for part in parts if left else ():
        own = [each for each in part.body if getattr(each, "name", "") not in left]
        for each in (inner for node in own for inner in ast.walk(node)):
            if isinstance(each, ast.Attribute) and each.attr in left:
                raise NotData(f"{each.attr} is no code")


def refuse_made(parts: Sequence[Part], abstract: Set[str]) -> None:
    """Refuses code that makes an object of an abstract class, which is an error in Python."""
    for part in parts if abstract else ():
        for each in ast.walk(part):
            if isinstance(each, ast.Call) and getattr(each.func, "id", "") in abstract:
                raise NotData("it makes an object of an abstract class")


def refuse_attributes(parts: Sequence[Part], bound: Mapping[str, Any]) -> None:
    """Refuses attributes of functions, which code does not have. bound: the values of names."""
    nodes = [node for part in parts for node in ast.walk(part)]
    # For the parts themselves, `bound` tells: a variable may have the same name as the entry.
    methods = {id(n) for part in parts if isinstance(part, ast.ClassDef) for n in part.body}
    inner = {
        n.name
        for n in nodes
        if isinstance(n, ast.FunctionDef) and n not in parts and id(n) not in methods
    }
    for name in filter(None, map(asked_of, nodes)):
        if name in inner or isinstance(bound.get(name), FunctionType):
            raise NotData(f"an attribute of the function {name} is used")


def refuse_defaults(node: ast.FunctionDef | ast.Lambda, function: FunctionType) -> None:
    """Refuses a function whose defaults are not constants, or differ from its source."""
    defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
    if not all(map(_is_constant, defaults)):
        raise NotData("a default is no constant")
    if _defaults_of(function) != _constants(node.args):
        raise NotData(f"the defaults of {function.__name__} are not what its source says")


def _is_constant(node: ast.expr) -> bool:
    """Whether an expression is a constant, a number with a sign, or a tuple of such."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_constant, node.elts))
    inner = node.operand if isinstance(node, ast.UnaryOp) else None
    is_signed = isinstance(inner, ast.Constant) and type(inner.value) in (int, float)
    return isinstance(node, ast.Constant) or (
        is_signed and isinstance(node.op, (ast.UAdd, ast.USub))  # type: ignore[attr-defined]
    )


def _defaults_of(function: FunctionType) -> tuple[str, dict[str, str]]:
    named = function.__kwdefaults__ or {}
    return repr(function.__defaults__ or ()), {name: repr(each) for name, each in named.items()}


def _constants(args: ast.arguments) -> tuple[str, dict[str, str]]:
    """The defaults in a function's source, which are constants."""
    pairs = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    named = {arg.arg: ast.literal_eval(each) for arg, each in pairs if each is not None}
    plain = tuple(ast.literal_eval(each) for each in args.defaults)
    return repr(plain), {name: repr(each) for name, each in named.items()}


# -- what functions change ----------------------------------------------------------------------

Values = Callable[[str], Any]  # returns the value of a name
# From a traced function's globals to the globals of the user's own module.
Originals = Callable[[dict[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Changer:
    """A function of the program that may change its arguments. params: its positional parameters;
    changed: the names of the parameters that it may change."""

    params: tuple[str, ...]
    changed: frozenset[str]

    def __call__(self, call: ast.Call) -> Iterator[ast.expr]:
        """The arguments of a call that the function may change; all arguments if `*` or `**` hides
        which argument is which."""
        are_spread = any(isinstance(each, ast.Starred) for each in call.args)
        is_any = are_spread or any(each.arg is None for each in call.keywords)
        for name, arg in zip((*self.params, *("" for _ in call.args)), call.args, strict=False):
            if is_any or name in self.changed:
                yield arg.value if isinstance(arg, ast.Starred) else arg
        for each in call.keywords:
            if is_any or each.arg in self.changed:
                yield each.value


class FoundChangers:
    """Finds functions that may change their arguments, and keeps them for one trace."""

    def __init__(self) -> None:
        self._found: dict[FunctionType, Changer | None] = {}
        # By node and code, with the globals for which it was found.
        self._called: dict[
            tuple[ast.AST, int], tuple[CodeType, Mapping[str, Any], dict[str, Changer]]
        ] = {}

    def called(
        self, node: ast.AST, code: CodeType, names: Mapping[str, Any], originals: Originals
    ) -> dict[str, Changer]:
        """The changers among the globals of code that a node of it calls, directly or indirectly;
        found once in a trace, since no code in it may change a global."""
        key = (node, id(code))
        if key not in self._called or self._called[key][1] is not names:
            local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}

            def value(name: str) -> Any:
                return None if name in local else names.get(name)

            self._called[key] = code, names, self.among(node, value, originals)
        return self._called[key][2]

    def among(
        self,
        node: ast.AST,
        values: Values,
        originals: Originals,
    ) -> dict[str, Changer]:
        """The changers that a part of the program calls, directly or indirectly, by name, without
        those whose name stands for two functions."""
        reached = _reached(node, values, originals)
        self._judge({each for each in reached.values() if each is not None}, originals)
        return self._known(reached)

    def _known(self, functions: Mapping[str, FunctionType | None]) -> dict[str, Changer]:
        """The functions, among these, that may change their arguments."""
        found = {
            name: self._found.get(each) for name, each in functions.items() if each is not None
        }
        return {name: each for name, each in found.items() if each is not None and each.changed}

    def _judge(
        self,
        functions: set[FunctionType],
        originals: Originals,
    ) -> None:
        """Judges functions that may call each other, up to a fixed point: at first, calls of them
        count as changing nothing."""
        new = {each: _plain_source(each) for each in functions if each not in self._found}
        for each, node in new.items():
            self._found[each] = None if node is None else _changer(node, {})
        is_settled = False
        while not is_settled:
            is_settled = True
            for function, node in new.items():
                if node is None or self._found[function] is None:
                    continue
                called = _reached(node, _values_of(function, originals), originals, is_deep=False)
                found = _changer(node, self._known(called))
                is_settled = is_settled and found == self._found[function]
                self._found[function] = found


def _reached(
    node: ast.AST,
    values: Values,
    originals: Originals,
    is_deep: bool = True,
) -> dict[str, FunctionType | None]:
    """The functions of the program that a part of it calls by name, directly or, if `is_deep`,
    indirectly; None for a name of two functions."""
    found: dict[str, FunctionType | None] = {}
    left, seen = [(node, values)], set[FunctionType]()
    while left:
        part, named = left.pop()
        for name in called_in(part):
            function = named(name)
            if not isinstance(function, FunctionType) or id(function) in known_library():
                continue
            found[name] = function if found.get(name, function) is function else None
            if is_deep and function not in seen:
                seen.add(function)
                source = _plain_source(function)
                left += [] if source is None else [(source, _values_of(function, originals))]
    return found


def _values_of(function: FunctionType, originals: Originals) -> Values:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    names = originals(function.__globals__)

    def value(name: str) -> Any:
        if name not in cells:
            return names.get(name)
        try:
            return cells[name].cell_contents
        except ValueError:  # it is not set yet
            return None

    return value


def _plain_source(function: FunctionType) -> ast.FunctionDef | None:
    """The source of a function; None for a generator, a lambda or an unknown source."""
    node = source_of(function)
    return node if isinstance(node, ast.FunctionDef) and not _yields(node) else None


@lru_cache(maxsize=4096)
def _yields(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node))


def _changer(node: ast.FunctionDef, changers: Mapping[str, Changer]) -> Changer | None:
    """A function as a changer, if it changes only its parameters and it is clear which ones."""
    args, made = node.args, made_inside(node)
    own = parameters(args)
    roots = set(changed_roots(node, made, (), changers))
    rest = {each.arg for each in (args.vararg, args.kwarg) if each is not None}
    if not roots <= own | made or not rest.isdisjoint(roots):
        return None
    changed = {name for name in own if name in roots}
    if any(_is_other(node, name) for name in changed):
        return None
    places = tuple(each.arg for each in (*args.posonlyargs, *args.args))
    return Changer(places, frozenset(changed))


def _is_other(function: ast.FunctionDef, name: str) -> bool:
    """Whether a parameter may be set to anything but the argument or a part of it."""
    parts = [*ast.walk(function)]
    kept = {id(target) for each in parts for target in _kept_targets(each, name)}
    args = {id(each) for each in ast.walk(function.args)}
    return any(
        name in bound_by(each) and id(each) not in kept | args
        for each in parts
        if each is not function
    )


def _kept_targets(node: ast.AST, name: str) -> list[ast.expr]:
    """The targets that are set to a part of the variable's own value, `node = node[key]`, or that a
    statement changes in place."""
    if isinstance(node, ast.AugAssign):
        return [node.target]
    return node.targets if isinstance(node, ast.Assign) and root_of(node.value) == name else []
