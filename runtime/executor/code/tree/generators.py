"""Statements of functions that yield: each is a generator of the values that it yields, and returns
the result of a statement (`Do`). Statements without a yield are in `statements.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from sgc.runtime.executor.code.fuel import NotAllowed, spent
from sgc.runtime.executor.code.tree.compiling import (
    BREAK,
    CONTINUE,
    Context,
    compile_expression,
    compile_statement,
    has_yield,
    head_weight,
    weight_of,
)
from sgc.runtime.executor.code.tree.driving import (
    CAUGHT,
    UNCATCHABLE,
    Steps,
    delegated,
    raised_by_code,
    while_handled,
)
from sgc.runtime.executor.code.tree.handling import (
    Handler,
    compile_handlers,
    find_handler,
    forget_error,
)
from sgc.runtime.executor.code.tree.matching import compile_match
from sgc.runtime.executor.code.tree.scopes import Frame
from sgc.runtime.executor.code.tree.targets import compile_store, compile_stores

Lazy = Callable[[Frame], Steps]
_INSIDE = "yield inside an expression is not allowed in a graph's code"


def compile_lazy_block(body: Sequence[ast.stmt], at: Context) -> Lazy:
    """Successive statements, some of which yield."""
    statements = [(has_yield(each), _lazy_or_plain(each, at)) for each in body]
    cost = 2 + sum(head_weight(each) for each in body)

    def block(f: Frame) -> Steps:
        run = f[0]
        run.left -= cost
        if run.left < 0:
            raise spent()
        for is_lazy, statement in statements:
            # A `match` of which no case fits gives no steps.
            result = (yield from statement(f) or ()) if is_lazy else statement(f)
            if result is not None:
                return result
        return None

    return block


def _lazy_or_plain(node: ast.stmt, at: Context) -> Callable[[Frame], Any]:
    if not has_yield(node):
        return compile_statement(node, at)
    found = _LAZY.get(type(node))
    if found is None:
        raise NotAllowed(f"yield in {type(node).__name__} is not allowed in a graph's code")
    return found(node, at)


def _yielding(node: ast.expr | None, at: Context, then: Callable[[Frame, Any], Any]) -> Lazy:
    """A yield. then: makes the statement's result from the value of the yield."""
    if not isinstance(node, (ast.Yield, ast.YieldFrom)):
        raise NotAllowed(_INSIDE)
    value = _plain_value(node.value, at)

    def yield_one(f: Frame) -> Steps:
        return then(f, (yield value(f)))

    def yield_from(f: Frame) -> Steps:
        return then(f, (yield from delegated([iter(value(f))])))

    return yield_one if isinstance(node, ast.Yield) else yield_from


def _plain_value(node: ast.expr | None, at: Context) -> Callable[[Frame], Any]:
    if node is None:
        return lambda f: None
    if has_yield(node):
        raise NotAllowed(_INSIDE)
    return compile_expression(node, at)


def _expression(node: ast.Expr, at: Context) -> Lazy:
    return _yielding(node.value, at, lambda f, value: None)


def _return(node: ast.Return, at: Context) -> Lazy:
    return _yielding(node.value, at, lambda f, value: (value,))


def _assign(node: ast.Assign, at: Context) -> Lazy:
    return _yielding(node.value, at, compile_stores(node.targets, at))


def _if(node: ast.If, at: Context) -> Lazy:
    test, body = _plain_value(node.test, at), compile_lazy_block(node.body, at)
    orelse = compile_lazy_block(node.orelse, at)
    return lambda f: body(f) if test(f) else orelse(f)


def _while(node: ast.While, at: Context) -> Lazy:
    test, body = _plain_value(node.test, at), compile_lazy_block(node.body, at)
    orelse = compile_lazy_block(node.orelse, at)
    cost = 1 + weight_of(node.test)

    def do(f: Frame) -> Steps:
        while test(f):
            f[0].left -= cost
            result = yield from body(f)
            if result is not None and result is not CONTINUE:
                return None if result is BREAK else result
        return (yield from orelse(f))

    return do


def _for(node: ast.For, at: Context) -> Lazy:
    items, store = _plain_value(node.iter, at), compile_store(node.target, at)
    body, orelse = compile_lazy_block(node.body, at), compile_lazy_block(node.orelse, at)

    def do(f: Frame) -> Steps:
        box = [iter(items(f))]
        try:
            while True:
                try:
                    item = next(box[0])
                except StopIteration:
                    break
                store(f, item)
                item = None
                result = yield from body(f)
                if result is not None and result is not CONTINUE:
                    return None if result is BREAK else result
        finally:
            box.clear()  # otherwise an error would keep the iterator and its frames alive
        return (yield from orelse(f))

    return do


def _try(node: ast.Try, at: Context) -> Lazy:
    body = compile_lazy_block(node.body, at)
    handlers = compile_handlers(node, at, compile_lazy_block)
    handling = _handling(body, handlers, compile_lazy_block(node.orelse, at))
    if not node.finalbody:
        return handling
    return _finally(handling, compile_lazy_block(node.finalbody, at))


def _handling(body: Lazy, handlers: list[Handler], orelse: Lazy) -> Lazy:
    def do(f: Frame) -> Steps:
        try:
            result = yield from body(f)
        except CAUGHT as error:
            error = raised_by_code(error)
            f[0].handled.append(error)
            try:
                handler = find_handler(handlers, error, f)
            finally:
                f[0].handled.pop()
            if handler is None:
                raise
            try:
                return (yield from while_handled(f[0], error, handler.body(f)))
            finally:
                forget_error(handler, f)
        return (yield from orelse(f)) if result is None else result

    return do


def _finally(body: Lazy, last: Lazy) -> Lazy:
    def do(f: Frame) -> Steps:
        try:
            result = yield from body(f)
        except GeneratorExit:
            raise  # freed by Python after `driven` has closed it, or after the run
        except BaseException as error:
            if isinstance(error, UNCATCHABLE) or f[0].left < 0:
                raise
            found = yield from while_handled(f[0], raised_by_code(error), last(f))
            if found is None:
                raise
            return found
        found = yield from last(f)
        return result if found is None else found

    return do


def _match(node: ast.Match, at: Context) -> Lazy:
    return compile_match(node, _plain_value(node.subject, at), at, compile_lazy_block)


_LAZY: dict[type[ast.AST], Callable[..., Lazy]] = {
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Assign: _assign,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.Try: _try,
    ast.Match: _match,
}
