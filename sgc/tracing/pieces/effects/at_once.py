"""Whether a change is atomic: if the code raises an error, it has changed nothing."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from sgc.tracing.pieces.effects.changes import CHANGERS, CHANGING, is_read, method_of, root_of

# Methods and functions that change nothing if they raise an error.
_AT_ONCE = frozenset({
    "add", "append", "appendleft", "clear", "discard", "getrandbits", "insert", "insort",
    "insort_left", "insort_right", "intersection_update", "move_to_end", "pop", "popitem",
    "popleft", "randbytes", "randint", "random", "randrange", "remove", "reverse", "rotate",
    "seed", "setdefault",
})  # fmt: skip


def is_done_at_once(
    node: ast.AST, changed: Collection[str], may_add: bool, pythons: Mapping[str, bool]
) -> bool:
    """Whether a statement that ends in an error has done either nothing or all that it does.

    changed: the inputs that it may change, beside setting variables. may_add: whether reading a key
    of such an input may add the key, as in a defaultdict. pythons: the inputs of Python's own
    container types, each with whether all its contents are of Python's own types too; a method of
    another object may change something before it fails.
    """
    if isinstance(node, ast.expr):
        return True
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Expr)):
        return False
    parts = list(ast.walk(node))
    targets = _targets(node)
    if len(targets) > 1 or any(isinstance(each, ast.NamedExpr) for each in parts):
        return False
    is_plain = all(map(_is_name, (name for each in targets for name in _unpacked(each))))
    if not changed:
        return is_plain
    reads = [each for each in parts if isinstance(each, ast.Subscript) and is_read(each)]
    if may_add and any(root_of(each) in changed for each in reads):
        return False
    if not _is_of_python(node, changed, pythons):
        return False
    calls = [each for each in parts if isinstance(each, ast.Call) and _is_changing(each)]
    if isinstance(node, ast.AugAssign):
        return not calls and _adds_number(node)
    if isinstance(node, (ast.Assign, ast.Delete)) and not is_plain:
        return not calls and isinstance(targets[0], ast.Subscript)
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)):
        return False
    # Otherwise an expression around or beside the call may fail after the change.
    is_one = calls == [node.value] and all(map(_is_name, targets))
    return is_one and method_of(calls[0]) in _AT_ONCE


def _adds_number(node: ast.AugAssign) -> bool:
    """Whether an augmented assignment changes only its target, nothing in place. A list is extended
    or repeated in place before setting an item of a tuple fails."""
    if not isinstance(node.value, ast.Constant):
        return False
    is_text = isinstance(node.value.value, (str, bytes))
    return isinstance(node.target, ast.Name) or not (is_text or isinstance(node.op, ast.Mult))


def _is_of_python(node: ast.stmt, changed: Collection[str], pythons: Mapping[str, bool]) -> bool:
    """Whether a statement changes a single value, of one of Python's own types."""
    of: ast.expr | None = node.target if isinstance(node, ast.AugAssign) else None
    if isinstance(node, (ast.Assign, ast.Delete)) and isinstance(node.targets[0], ast.Subscript):
        of = node.targets[0].value
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)) and isinstance(
        node.value, ast.Call
    ):
        function, args = node.value.func, node.value.args
        of = function.value if isinstance(function, ast.Attribute) else next(iter(args), None)
        is_module = isinstance(of, ast.Name) and of.id not in changed
        of = args[0] if is_module and args else of
    if of is None or set(changed) != {root_of(of)}:
        return False
    (name,) = changed
    return pythons.get(name, False) if not isinstance(of, ast.Name) else name in pythons


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, (ast.Assign, ast.Delete)):
        return node.targets
    return [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else []


def _is_changing(node: ast.Call) -> bool:
    return method_of(node) in CHANGING | CHANGERS


def _unpacked(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _is_name(node: ast.expr) -> bool:
    return isinstance(node.value if isinstance(node, ast.Starred) else node, ast.Name)
