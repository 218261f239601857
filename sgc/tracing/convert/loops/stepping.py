"""Where a program takes items of a generator that it has: as a loop, in which paths may merge.

    x = next(g, d)        it, default = g, d
                          if is_generator(it):
                              for item in it:
                                  break
                              else:
                                  item = default
                          else:
                              item = next(it, default)
                          x = item

    f([a, *g])            first, it = a, g
                          if is_generator(it):
                              items = []
                              for item in it:
                                  items.append(item)
                          else:
                              items = it
                          f([first, *items])  # of a list: items, which begins with `first`

The same is done for `list(g)` and the like of what may be a generator.
"""

from __future__ import annotations

import ast
import copy
from typing import NamedTuple, Protocol

from sgc.tracing.code.operator_names import GENERATES
from sgc.tracing.convert.loops.looping import FIRST, Names, assigned, loaded, placed


class Taken(NamedTuple):
    """before: the statements before the one that takes items; value: what it has in their place."""

    before: list[ast.stmt]
    value: ast.expr


def stepped(node: ast.Call, names: Names) -> Taken | None:
    """The first item of what may be a generator; None if this is no call of `next`."""
    is_next = isinstance(node.func, ast.Name) and node.func.id == FIRST and not node.keywords
    if not is_next or len(node.args) not in (1, 2):
        return None
    if any(isinstance(each, (ast.Starred, ast.GeneratorExp)) for each in node.args):
        return None
    item = names.fresh()
    given = [names.fresh() for _ in node.args]
    before = [assigned(name, arg, arg) for name, arg in zip(given, node.args, strict=True)]
    args = [loaded(name, node) for name in given]
    plain = placed(ast.Call(node.func, args, []), node)
    # An ended generator says so again.
    none_left = loaded(given[1], node) if len(given) > 1 else copy.deepcopy(plain)
    stop = placed(ast.Break(), node)
    loop = placed(
        ast.For(
            _stored(item, node), loaded(given[0], node), [stop], [assigned(item, none_left, node)]
        ),
        node,
    )
    before.append(_choice(given[0], [node.func], loop, assigned(item, plain, node), node))
    before += [assigned(name, placed(ast.Constant(None), node), node) for name in given]
    return Taken(before, loaded(item, node))


class GeneratorNames(Names, Protocol):
    """generators: names that mean a generator function, everywhere in the module."""

    generators: frozenset[str]


def may_be_generator(node: ast.expr, names: GeneratorNames) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in names.generators
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))


def used_up(node: ast.expr, by: ast.expr | None, names: GeneratorNames) -> Taken | None:
    """All items of what may be a generator; None if this is surely none. by: the function that
    takes them."""
    taking = by.value if isinstance(by, ast.Attribute) else by
    if not may_be_generator(node, names):
        return None
    if not isinstance(taking, (ast.Name, ast.Constant, type(None))):
        return None
    over, items = names.fresh(), names.fresh()
    function: list[ast.expr] = [] if taking is None else [taking]
    other = assigned(items, loaded(over, node), node)
    return Taken(_going_over(node, over, items, [], function, other, names), loaded(items, node))


def listed(node: ast.List, at: int, names: Names) -> Taken:
    """A list of items that can be read twice, all those of what may be a generator, which is `at`
    that place, and others."""
    first, star, rest = node.elts[:at], node.elts[at], node.elts[at + 1 :]
    assert isinstance(star, ast.Starred)
    over, items = names.fresh(), names.fresh()
    given = placed(ast.Starred(loaded(over, star), ast.Load()), star)
    plain = assigned(items, placed(ast.List([*first, given], ast.Load()), node), node)
    before = _going_over(star.value, over, items, copy.deepcopy(first), [], plain, names)
    value = loaded(items, node)
    if rest:
        others = placed(ast.List(rest, ast.Load()), node)
        value = placed(ast.BinOp(value, ast.Add(), others), node)
    return Taken(before, value)


def _going_over(
    node: ast.expr,
    over: str,
    items: str,
    first: list[ast.expr],
    function: list[ast.expr],
    other: ast.stmt,
    names: Names,
) -> list[ast.stmt]:
    """Statements that give `items` those of a generator, after the first ones, or do the other."""
    item = names.fresh()
    append = placed(ast.Attribute(loaded(items, node), "append", ast.Load()), node)
    adds = placed(ast.Expr(placed(ast.Call(append, [loaded(item, node)], []), node)), node)
    loop = placed(ast.For(_stored(item, node), loaded(over, node), [adds], []), node)
    choice = _choice(over, function, loop, other, node)
    choice.body.insert(0, assigned(items, placed(ast.List(first, ast.Load()), node), node))
    ended = assigned(over, placed(ast.Constant(None), node), node)
    return [assigned(over, node, node), choice, ended]


def _choice(
    over: str, function: list[ast.expr], loop: ast.stmt, other: ast.stmt, at: ast.expr
) -> ast.If:
    given = [loaded(over, at), *(copy.deepcopy(each) for each in function)]
    test = placed(ast.Call(loaded(GENERATES, at), given, []), at)
    return placed(ast.If(test, [loop], [other]), at)


def _stored(name: str, at: ast.AST) -> ast.Name:
    return placed(ast.Name(name, ast.Store()), at)
