"""Infers the type of a result of code from its syntax: a text, a number, a list of texts.

If no type is certain, it is a value of any type. Errors here are safe: the executor refuses a
result that has another type than the graph says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import lru_cache, reduce

from sgc.ir import types
from sgc.ir.code import Code
from sgc.ir.types import Kind, Type
from sgc.tracing.pieces.changes import may_change
from sgc.tracing.pieces.names import parameters
from sgc.tracing.values.row_types import OBJECT

# The result types of methods, for any object that has a method of this name.
_OF_ANY = {
    **dict.fromkeys(
        ("most_common", "findall", "split", "rsplit", "splitlines"), types.list_of(OBJECT)
    ),
    **dict.fromkeys(("strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize",
                     "casefold", "swapcase", "zfill", "ljust", "rjust", "removeprefix",
                     "removesuffix", "isoformat", "strftime", "hexdigest"), types.TEXT),
    **dict.fromkeys(("startswith", "endswith", "isdigit", "isalpha", "isupper", "islower",
                     "isspace", "isalnum", "issubset", "issuperset", "isdisjoint"), types.BOOL),
}  # fmt: skip

Env = Mapping[str, Type | None]  # None: not known yet

MAX_DEPTH = 8
_NUMBERS = (types.INT, types.FLOAT)
_BUILTINS = {
    "str": types.TEXT, "repr": types.TEXT, "chr": types.TEXT, "format": types.TEXT,
    "ascii": types.TEXT, "len": types.INT, "int": types.INT, "ord": types.INT,
    "float": types.FLOAT, "bool": types.BOOL, "any": types.BOOL, "all": types.BOOL,
    "isinstance": types.BOOL, "callable": types.BOOL,
}  # fmt: skip
_TEXTS = frozenset({
    "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold", "swapcase",
    "center", "ljust", "rjust", "zfill", "removeprefix", "removesuffix", "replace", "expandtabs",
    "format", "join", "translate", "format_map",
})  # fmt: skip
_LISTS = frozenset({"split", "rsplit", "splitlines"})
_INTS = frozenset({"find", "rfind", "index", "rindex", "count"})
_BOOLS = frozenset({
    "startswith", "endswith", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit",
    "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper",
})  # fmt: skip


@lru_cache(maxsize=1024)  # repeated runs of a trace call it again
def result_type(code: Code, given: tuple[Type, ...]) -> Type:
    """The type of the code's result for arguments of these types."""
    return _returned(code, code.entry, given)


def _returned(code: Code, entry: ast.FunctionDef, given: tuple[Type, ...]) -> Type:
    functions = {each.name: each for each in code.functions[:-1]}
    found = _Inference(functions, set(code.imports)).called(entry, given, MAX_DEPTH) or OBJECT
    # Items of other types may have been put into a list.
    is_changed = found.kind is Kind.LIST and any(map(may_change, code.functions))
    return types.list_of(OBJECT) if is_changed else found


@lru_cache(maxsize=1024)
def output_types(code: Code, given: tuple[Type, ...]) -> tuple[Type, ...]:
    """The types of the items of the list that the code returns."""
    entry, last = code.entry, code.entry.body[-1]
    assert isinstance(last, ast.Return)
    assert isinstance(last.value, ast.List)
    found = []
    for item in last.value.elts:
        body = [*entry.body[:-1], ast.Return(item)]
        alone = ast.FunctionDef(entry.name, entry.args, body, [], None, None)
        found.append(_returned(code, alone, given))
    return tuple(found)


class _Inference:
    def __init__(self, functions: Mapping[str, ast.FunctionDef], bound: set[str]) -> None:
        self._functions = functions
        self._imported = bound

    def called(
        self, function: ast.FunctionDef, given: tuple[Type | None, ...], depth: int
    ) -> Type | None:
        """The type that a function returns."""
        args = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        is_odd = any(isinstance(each, ast.Nonlocal) for each in ast.walk(function))
        if is_odd or not depth or len(args) < len(given) or not _ends(function.body):
            return OBJECT
        env: dict[str, Type | None] = dict.fromkeys(parameters(function.args), OBJECT)
        env.update(zip(args, given, strict=False))
        for _ in range(6):
            before = dict(env)
            _Bindings(self, env, depth).of(function.body)
            if env == before:
                break
        else:
            return OBJECT
        found = [self.of(each.value, env, depth) for each in _returns(function.body)]
        return _joined(found)

    def of(self, node: ast.expr | None, env: Env, depth: int) -> Type | None:
        """The type of an expression; None if it is not known yet."""
        if isinstance(node, ast.Constant):
            return _OF_CONSTANTS.get(type(node.value), OBJECT)
        if isinstance(node, ast.Name):
            return env.get(node.id, OBJECT)
        if isinstance(node, ast.JoinedStr):
            return types.TEXT
        if isinstance(node, ast.Compare) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return types.BOOL
        if isinstance(node, ast.BoolOp):
            return _joined([self.of(each, env, depth) for each in node.values])
        if isinstance(node, ast.IfExp):
            return _joined([self.of(each, env, depth) for each in (node.body, node.orelse)])
        if isinstance(node, ast.BinOp):
            sides = self.of(node.left, env, depth), self.of(node.right, env, depth)
            return _operated(node.op, *sides)
        if isinstance(node, ast.UnaryOp):
            found = self.of(node.operand, env, depth)
            return found if found in (*_NUMBERS, None) else OBJECT
        if isinstance(node, ast.Subscript):
            return self._part(node, env, depth)
        if isinstance(node, ast.List):
            return types.list_of(OBJECT)
        if isinstance(node, ast.ListComp):
            return types.list_of(self._gathered(node, env, depth))
        if isinstance(node, ast.Call):
            return self._call(node, env, depth)
        return OBJECT

    def _gathered(self, node: ast.ListComp, env: Env, depth: int) -> Type:
        inside = dict(env)
        for each in node.generators:
            _bind(each.target, self._item(each.iter, inside, depth), inside)
        found = self.of(node.elt, inside, depth)
        return found if found in (types.TEXT, *_NUMBERS, types.BOOL) else OBJECT  # type: ignore[return-value]

    def _item(self, over: ast.expr, env: Env, depth: int) -> Type | None:
        """The type of the items of a loop over an expression."""
        named = over.func if isinstance(over, ast.Call) else None
        if isinstance(named, ast.Name) and named.id == "range" and "range" not in env:
            return types.INT
        found = self.of(over, env, depth)
        if found is None:
            return None
        if found.kind is Kind.LIST:
            return found.item or OBJECT
        return types.TEXT if found == types.TEXT else OBJECT

    def _part(self, node: ast.Subscript, env: Env, depth: int) -> Type | None:
        whole = self.of(node.value, env, depth)
        if whole is None or whole == types.TEXT:
            return whole
        if whole.kind is not Kind.LIST:
            return OBJECT
        return whole if isinstance(node.slice, ast.Slice) else whole.item or OBJECT

    def _call(self, node: ast.Call, env: Env, depth: int) -> Type | None:
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func, env, depth)
        if not isinstance(node.func, ast.Name) or node.func.id in env:
            return OBJECT
        name, args = node.func.id, node.args
        is_plain = not node.keywords and not any(isinstance(each, ast.Starred) for each in args)
        if name in self._functions:
            if not is_plain:
                return OBJECT
            given = tuple(self.of(each, env, depth) for each in args)
            if any(each is None for each in given):
                return None
            return self.called(self._functions[name], given, depth - 1)
        if name in self._imported:
            return OBJECT
        if name in _BUILTINS:
            return _BUILTINS[name]
        if name in ("list", "sorted") and args:
            item = self._item(args[0], env, depth)
            return None if item is None else types.list_of(item)
        if name == "list":
            return types.list_of(OBJECT)
        if name in ("max", "min", "abs", "round") and is_plain and args:
            return self._same(name, [self.of(each, env, depth) for each in args])
        return OBJECT

    def _same(self, name: str, given: list[Type | None]) -> Type | None:
        if name == "round" and len(given) == 1:
            return types.INT if given[0] in _NUMBERS else OBJECT
        if name == "round":
            return given[0] if given[0] in _NUMBERS else OBJECT
        if name in ("max", "min") and len(given) == 1:
            whole = given[0]
            item = whole.item if whole is not None and whole.kind is Kind.LIST else OBJECT
            return item or OBJECT
        found = _joined(given)
        return found if found in (*_NUMBERS, types.TEXT, None) else OBJECT

    def _method(self, function: ast.Attribute, env: Env, depth: int) -> Type | None:
        receiver = self.of(function.value, env, depth)
        if receiver is None:
            return None
        if receiver != types.TEXT:
            return _OF_ANY.get(function.attr, OBJECT)
        if function.attr in _TEXTS:
            return types.TEXT
        if function.attr in _LISTS:
            return types.list_of(types.TEXT)
        if function.attr in _INTS:
            return types.INT
        return types.BOOL if function.attr in _BOOLS else OBJECT


class _Bindings:
    """Gathers the types of all values that are bound to each name."""

    def __init__(self, inference: _Inference, env: dict[str, Type | None], depth: int) -> None:
        self._of, self._item, self._env = inference.of, inference._item, env
        self._depth = depth

    def of(self, body: Iterable[ast.stmt]) -> None:
        for top in body:
            for node in ast.walk(top):
                self._node(node)

    def _node(self, node: ast.AST) -> None:
        env, depth = self._env, self._depth
        if isinstance(node, ast.Assign):
            found = self._of(node.value, env, depth)
            for target in node.targets:
                _add(target, found, env)
        elif isinstance(node, ast.AugAssign):
            before = self._of(_loaded(node.target), env, depth)
            after = _operated(node.op, before, self._of(node.value, env, depth))
            _add(node.target, after, env)
        elif isinstance(node, ast.NamedExpr):
            _add(node.target, OBJECT, env)
        elif isinstance(node, ast.For):
            _add(node.target, self._item(node.iter, env, depth), env)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and node.name:
            env[node.name] = OBJECT
        elif isinstance(node, ast.MatchMapping) and node.rest:
            env[node.rest] = OBJECT


def _loaded(target: ast.expr) -> ast.expr:
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _add(target: ast.expr, found: Type | None, env: dict[str, Type | None]) -> None:
    """Adds the type of another value that is bound to a target."""
    if isinstance(target, ast.Name):
        before = env.get(target.id)
        env[target.id] = found if before is None else _joined([before, found])
    elif isinstance(target, (ast.Tuple, ast.List)):
        item = found.item if found is not None and found.kind is Kind.LIST else OBJECT
        for each in target.elts:
            inner = each.value if isinstance(each, ast.Starred) else each
            _add(inner, OBJECT if inner is not each else item or OBJECT, env)


def _bind(target: ast.expr, found: Type | None, env: dict[str, Type | None]) -> None:
    """Sets the type of a target in a scope of its own."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            env[node.id] = found if node is target else OBJECT


def _joined(found: list[Type | None]) -> Type | None:
    """A type that covers several; None if none is known yet."""
    known = [each for each in found if each is not None]
    return reduce(_both, known) if known else None


def _both(one: Type, other: Type) -> Type:
    if one == other:
        return one
    if one.kind is other.kind is Kind.LIST:
        return types.list_of(OBJECT)
    return OBJECT


def _operated(op: ast.operator, left: Type | None, right: Type | None) -> Type | None:
    if left is None or right is None:
        return None
    if isinstance(op, ast.Mod) and left == types.TEXT:
        return types.TEXT
    if isinstance(op, ast.Add) and left == right == types.TEXT:
        return types.TEXT
    if isinstance(op, ast.Add) and left.kind is right.kind is Kind.LIST:
        return _both(left, right)
    if left in _NUMBERS and right in _NUMBERS:
        if isinstance(op, ast.Div):
            return types.FLOAT
        if isinstance(op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)):
            return types.FLOAT if types.FLOAT in (left, right) else types.INT
    return OBJECT


def _returns(body: Iterable[ast.stmt]) -> list[ast.Return]:
    found = []
    for node in body:
        if isinstance(node, ast.Return):
            found.append(node)
        elif not isinstance(node, ast.FunctionDef):
            inner = [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr)]
            found += _returns(inner)  # type: ignore[arg-type]
    return found


def _ends(body: list[ast.stmt]) -> bool:
    """Whether a function always ends in a `return` or `raise`."""
    last = body[-1] if body else None
    if isinstance(last, (ast.Return, ast.Raise)):
        return True
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return False


_OF_CONSTANTS = {str: types.TEXT, bool: types.BOOL, int: types.INT, float: types.FLOAT}
