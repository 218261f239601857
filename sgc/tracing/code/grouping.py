"""Loops over `itertools.groupby` whose groups can be lists: each group is used up in its own turn.

    for key, group in groupby(xs):        groups = [(key, [*items]) for key, items in groupby(xs)]
        rows = list(group)                for key, group in groups:
        …                                     rows = list(group)
                                              …

All keys are then computed before the first turn, which makes no difference if no key can fail.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from sgc.tracing.code.trees import Function, Tree, surely
from sgc.tracing.code.using_up import places_in, places_inside

_MADE = "[(key, [*items]) for key, items in made]"


def as_lists(plain: ast.Call, node: ast.expr, function: Function, tree: Tree) -> ast.expr | None:
    """A call of `groupby`, with a list for each group; None if a group may be used otherwise.

    plain: the call as it is to be written; node: the call in its tree.
    """
    loop = tree.parents.get(node)
    if not isinstance(loop, (ast.For, ast.comprehension)) or not _is_used_up(loop, function, tree):
        return None
    if not _stays(plain, loop.body if isinstance(loop, ast.For) else [tree.parents[loop]]):
        return None
    made = ast.parse(_MADE, mode="eval").body
    assert isinstance(made, ast.ListComp)
    made.generators[0].iter = plain
    for each in ast.walk(made):
        if isinstance(each, ast.expr) and each is not plain:
            ast.copy_location(each, node)
    return ast.copy_location(made, node)


def key_of(call: ast.Call) -> ast.expr | None:
    """The key of a call of `groupby` or `sorted`; None if it has none."""
    named = next((each.value for each in call.keywords if each.arg == "key"), None)
    return call.args[1] if len(call.args) > 1 else named


def is_sorted_by(call: ast.Call, tree: Tree) -> bool:
    """Whether the grouped list was just sorted by a key that is, or contains, the groups' key: then
    the groups' key has been computed for each item."""
    key, over = key_of(call), call.args[0] if call.args else None
    if key is None or over is None:
        return False
    return any(_has(other, key) for other in _sorting(over, call, tree))


def _sorting(over: ast.expr, node: ast.expr, tree: Tree) -> Iterator[ast.expr]:
    """The key by which a list is sorted where it is grouped, or in the statement before that."""
    if isinstance(over, ast.Call) and _called(over) == "sorted":
        yield from filter(None, [key_of(over)])
    before = _before(node, tree)
    if not isinstance(over, ast.Name) or before is None:
        return
    call = before.value if isinstance(before, (ast.Assign, ast.Expr)) else None
    if not isinstance(call, ast.Call):
        return
    if isinstance(before, ast.Assign) and _called(call) == "sorted":
        targets = [each.id for each in before.targets if isinstance(each, ast.Name)]
        yield from [found for found in [key_of(call)] if found is not None and over.id in targets]
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "sort":
        is_it = isinstance(call.func.value, ast.Name) and call.func.value.id == over.id
        yield from [each.value for each in call.keywords if is_it and each.arg == "key"]


def _before(node: ast.AST, tree: Tree) -> ast.stmt | None:
    """The statement before that of an expression, in its block."""
    while not isinstance(node, ast.stmt):
        node = tree.parents[node]
    around = tree.parents.get(node)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(around, field, None)
        if isinstance(block, list) and node in block:
            n = block.index(node)
            return block[n - 1] if n else None
    return None


def _has(whole: ast.expr, part: ast.expr) -> bool:
    """Whether one key computes another key of the same item."""
    if ast.dump(whole) == ast.dump(part):
        return True
    if not isinstance(whole, ast.Lambda) or not isinstance(part, ast.Lambda):
        return False
    ours, theirs = ([each.arg for each in key.args.args] for key in (whole, part))
    if len(ours) != 1 or len(theirs) != 1:
        return False
    wanted = ast.dump(_Renamed(theirs[0], ours[0]).visit(copy.deepcopy(part.body)))
    return any(ast.dump(each) == wanted for each in surely(whole.body))


class _Renamed(ast.NodeTransformer):
    def __init__(self, before: str, now: str) -> None:
        self._before, self._now = before, now

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._now, node.ctx) if node.id == self._before else node


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _is_used_up(loop: ast.For | ast.comprehension, function: Function, tree: Tree) -> bool:
    """Whether each of a loop's groups is used once, and completely, in its turn."""
    target = loop.target
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return False
    group = target.elts[1]
    if not isinstance(group, ast.Name) or isinstance(target.elts[0], ast.Starred):
        return False
    name = group.id
    loads = [each for each in ast.walk(function) if isinstance(each, ast.Name)
             and each.id == name and isinstance(each.ctx, ast.Load)]  # fmt: skip
    if isinstance(loop, ast.comprehension):
        return _is_used_up_by(tree.parents[loop], loop, name)
    places = [place.part for place in places_in(loop.body, name)]
    if len(loads) < 2:
        return all(each in places for each in loads)
    inside = {id(each) for stmt in loop.body for each in ast.walk(stmt)}
    if not all(id(each) in inside for each in loads):
        return False
    first = min(loads, key=lambda each: (each.lineno, each.col_offset), default=None)
    return first is not None and any(_is_replaced(stmt, name, first) for stmt in loop.body)


def _stays(call: ast.Call, body: Sequence[ast.AST]) -> bool:
    """Whether the grouped list is new, or is that of a variable that the turns do not use. Tracing
    sees whether the list has other names."""
    over = call.args[0] if call.args else None
    if not isinstance(over, ast.Name):
        return isinstance(over, ast.Call) and _is_new(over.func)
    parts = (each for stmt in body for each in ast.walk(stmt) if isinstance(each, ast.Name))
    is_comprehension = len(body) == 1 and not isinstance(body[0], ast.stmt)
    return sum(each.id == over.id for each in parts) <= is_comprehension  # itself, in the call


def _is_new(function: ast.expr) -> bool:
    """Whether a call returns a list to which nothing else refers, by the name of the function."""
    if isinstance(function, ast.Attribute):
        return function.attr in ("rsplit", "split", "splitlines")
    return isinstance(function, ast.Name) and function.id in ("list", "sorted", "tuple")


def _is_replaced(stmt: ast.stmt, name: str, first: ast.Name) -> bool:
    """Whether a statement replaces a group by a list of its items: `rows = list(rows)`; first: the
    first use of the group's variable."""
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) > 1:
        return False
    is_same = isinstance(stmt.targets[0], ast.Name) and stmt.targets[0].id == name
    return is_same and [first] == [place.part for place in places_inside(stmt.value, name)]


def _is_used_up_by(made: ast.AST, loop: ast.comprehension, name: str) -> bool:
    """Whether each of a comprehension's groups is used once, and completely, in its turn."""
    generators: list[ast.comprehension] = made.generators  # type: ignore[attr-defined]
    if generators[0] is not loop:
        return False
    results = [getattr(made, field, None) for field in ("elt", "key", "value")]
    parts = [each for each in results if each is not None] + loop.ifs
    rest = generators[1:]
    uses = [each for part in (*parts, *rest) for each in ast.walk(part)
            if isinstance(each, ast.Name) and each.id == name]  # fmt: skip
    if len(uses) > 1:
        return False
    if rest:
        return all(rest[0].iter is each for each in uses)
    places = [place.part for part in parts for place in places_inside(part, name)]
    return all(each in places for each in uses)
