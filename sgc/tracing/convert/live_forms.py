"""What the parts of a program whose data are live objects may be, by their source: streams, words
of the language, lists of maps, and what tracing knows anyway.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from sgc.tracing.pieces.live import OF_PYTHON
from sgc.tracing.pieces.names import bound_by, names_of

# What tells that a variable is a stream.
_OF_STREAMS = frozenset({
    "assistant", "fork", "set_var", "system", "text", "user", "var_scope", "variables",
})  # fmt: skip
_WORDS = frozenset({
    "assistant", "assistant_begin", "assistant_end", "gen", "gen_int", "gen_string", "image", "map",
    "role", "select", "separate_reasoning", "system", "user", "user_begin", "user_end", "video",
})  # fmt: skip


def is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)


def is_known(node: ast.AST) -> bool:
    """Whether it is a constant, or only names what is there: tracing knows it, or it is live."""
    if isinstance(node, ast.Expr):
        return is_known(node.value)
    if isinstance(node, ast.Assign):
        are_names = all(isinstance(each, ast.Name) for each in node.targets)
        return are_names and is_known(node.value)
    if isinstance(node, ast.UnaryOp):
        return is_known(node.operand)
    if isinstance(node, ast.Tuple):
        return all(map(is_known, node.elts))
    if isinstance(node, ast.JoinedStr):
        return all(isinstance(each, ast.Constant) for each in node.values)
    return isinstance(node, (ast.Constant, ast.Name))


def is_looked_up_first(node: ast.Call) -> bool:
    """Whether a method is looked up that the arguments of its call may replace."""
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr not in OF_PYTHON
    if not is_method or is_word(node) or node.func.attr in _OF_STREAMS:  # type: ignore[attr-defined]
        return False
    args = [*node.args, *(each.value for each in node.keywords)]
    return any(isinstance(each, ast.Call) for arg in args for each in ast.walk(arg))


def is_fixed(node: ast.AST) -> bool:
    """Whether a display has constants alone."""
    return isinstance(node, (ast.List, ast.Set, ast.Tuple, ast.Dict)) and not any(
        isinstance(each, (ast.Name, ast.Call)) for each in ast.walk(node)
    )


def is_word(node: ast.AST) -> bool:
    """Whether a node calls a word of the language."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name == "map" and not isinstance(function, ast.Attribute):
        return False  # Python's own
    return name in _WORDS


def may_ask(node: ast.AST, streams: frozenset[str]) -> bool:
    """Whether a part uses a stream otherwise than to read a variable of it, or asks."""
    used = names_of([node]).reads & streams
    if used:
        parts = [*ast.walk(node)]
        read = {id(each.value) for each in parts if is_read(each)}  # type: ignore[attr-defined]
        named = (each for each in parts if isinstance(each, ast.Name) and each.id in used)
        if any(id(each) not in read for each in named):
            return True
    return any(map(is_word, ast.walk(node)))


def streams_of(function: ast.FunctionDef) -> frozenset[str]:
    """The variables of a function that may be streams, or hold them. That one is missing here costs
    a look at its value."""
    args = function.args.args
    found = {args[0].arg} if args and function.decorator_list else set()
    for node in ast.walk(function):
        of = node.func.value if _is_method(node) else None  # type: ignore[attr-defined]
        if isinstance(of, ast.Name) and node.func.attr in _OF_STREAMS:  # type: ignore[attr-defined]
            found.add(of.id)
        target = node.target if isinstance(node, ast.AugAssign) else None
        if isinstance(target, ast.Name) and any(map(is_word, ast.walk(node.value))):  # type: ignore[attr-defined]
            found.add(target.id)
    while True:
        more = found | {name for node in ast.walk(function) for name in _given(node, found)}
        if more == found:
            return frozenset(found)
        found = more


def is_of_map(node: ast.expr) -> bool:
    """Whether it may be a list that a map gives, `states.returns`, which is a new one each time."""
    return isinstance(node, ast.Attribute) and node.attr == "returns"


def is_plain(node: ast.JoinedStr) -> bool:
    """Whether a text begins with a known part, and shows its values as they are."""
    shown = [each for each in node.values if isinstance(each, ast.FormattedValue)]
    is_known = isinstance(node.values[0], ast.Constant) if node.values else False
    return is_known and all(each.conversion < 0 and each.format_spec is None for each in shown)


def variables_bound(node: ast.AST) -> Iterable[str]:
    """The variables that a node binds."""
    if isinstance(node, ast.Nonlocal):
        return node.names
    return [name for name in bound_by(node) if name is not None]


def is_cached(node: ast.FunctionDef) -> bool:
    """Whether a function seems to be under `functools.lru_cache` or `cache` alone."""
    if len(node.decorator_list) != 1:
        return False
    (of,) = node.decorator_list
    of = of.func if isinstance(of, ast.Call) else of
    return getattr(of, "attr", getattr(of, "id", "")) in ("cache", "lru_cache")


def _is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def _given(node: ast.AST, streams: set[str]) -> Iterable[str]:
    """The variables that get streams by a node."""
    if isinstance(node, ast.Assign) and _gives(node.value, streams):
        for target in node.targets:
            yield from _names_in(target)
    elif isinstance(node, ast.withitem) and _gives(node.context_expr, streams):
        if node.optional_vars is not None:
            yield from _names_in(node.optional_vars)
    elif isinstance(node, (ast.For, ast.comprehension)):
        over = node.iter
        is_call = isinstance(over, ast.Call) and isinstance(over.func, ast.Name)
        parts = over.args if is_call else [over]  # type: ignore[attr-defined]
        if any(_gives(each, streams) or _is_one(each, streams) for each in parts):
            yield from _names_in(node.target)


def _gives(node: ast.expr, streams: set[str]) -> bool:
    """Whether an expression gives a stream, or several."""
    if isinstance(node, ast.IfExp):
        return _gives(node.body, streams) or _gives(node.orelse, streams)
    if isinstance(node, ast.Subscript):
        return _gives(node.value, streams)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("fork", "copy") and _is_one(node.func.value, streams)
    return False


def _is_one(node: ast.expr, streams: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in streams


def _names_in(target: ast.expr) -> Iterable[str]:
    return (each.id for each in ast.walk(target) if isinstance(each, ast.Name))
