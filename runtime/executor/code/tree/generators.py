"""Statements of functions that yield: each is a generator of what it yields, and gives what a
statement gives (`Do`). Statements without a yield are those of `statements.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
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
from sgc.runtime.executor.code.tree.handling import UNCATCHABLE, compile_handlers, handler_of
from sgc.runtime.executor.code.tree.matching import compile_cases
from sgc.runtime.executor.code.tree.scopes import UNSET, Frame
from sgc.runtime.executor.code.tree.targets import compile_store

Steps = Generator[Any, Any, Any]
Lazy = Callable[[Frame], Steps]


def compile_lazy_block(body: Sequence[ast.stmt], at: Context) -> Lazy:
    """Statements one after the other, some of which yield."""
    statements = [(has_yield(each), _lazy_or_plain(each, at)) for each in body]
    cost = 2 + sum(head_weight(each) for each in body)

    def block(f: Frame) -> Steps:
        run = f[0]
        run.left -= cost
        if run.left < 0:
            raise spent()
        for is_lazy, statement in statements:
            result = (yield from statement(f)) if is_lazy else statement(f)
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


def _yielded(node: ast.expr | None, at: Context) -> Lazy:
    """An expression that is a yield, or has none."""
    if isinstance(node, ast.YieldFrom):
        items = _plain_value(node.value, at)

        def yield_from(f: Frame) -> Steps:
            return (yield from _delegated([iter(items(f))]))

        return yield_from
    if isinstance(node, ast.Yield):
        value = _plain_value(node.value, at)

        def yield_one(f: Frame) -> Steps:
            return (yield value(f))

        return yield_one
    value = _plain_value(node, at)

    def no_yield(f: Frame) -> Steps:
        return value(f)
        yield

    return no_yield


def _delegated(box: list[Any]) -> Steps:
    """`yield from`; the iterator is held in a list, as `driven` says."""
    takes_values = hasattr(box[0], "send")
    box.append(None)
    while True:
        sent = box.pop()
        try:
            box.append(box[0].send(sent) if takes_values else next(box[0]))
        except StopIteration as ended:
            return ended.value
        sent = None
        box.append((yield box.pop()))


def _plain_value(node: ast.expr | None, at: Context) -> Callable[[Frame], Any]:
    if node is None:
        return lambda f: None
    if has_yield(node):
        raise NotAllowed("yield inside an expression is not allowed in a graph's code")
    return compile_expression(node, at)


def _expression(node: ast.Expr, at: Context) -> Lazy:
    value = _yielded(node.value, at)

    def do(f: Frame) -> Steps:
        yield from value(f)

    return do


def _return(node: ast.Return, at: Context) -> Lazy:
    value = _yielded(node.value, at)

    def do(f: Frame) -> Steps:
        return ((yield from value(f)),)

    return do


def _assign(node: ast.Assign, at: Context) -> Lazy:
    value = _yielded(node.value, at)
    stores = [compile_store(target, at) for target in node.targets]

    def do(f: Frame) -> Steps:
        result = yield from value(f)
        for store in stores:
            store(f, result)

    return do


def _if(node: ast.If, at: Context) -> Lazy:
    test, body = _plain_value(node.test, at), compile_lazy_block(node.body, at)
    orelse = compile_lazy_block(node.orelse, at)

    def do(f: Frame) -> Steps:
        return (yield from body(f) if test(f) else orelse(f))

    return do


def _while(node: ast.While, at: Context) -> Lazy:
    test, body = _plain_value(node.test, at), compile_lazy_block(node.body, at)
    orelse = compile_lazy_block(node.orelse, at)
    cost = 1 + weight_of(node.test)

    def do(f: Frame) -> Steps:
        while test(f):
            f[0].left -= cost
            result = yield from body(f)
            if result is BREAK:
                return None
            if result is not None and result is not CONTINUE:
                return result
        return (yield from orelse(f))

    return do


def _for(node: ast.For, at: Context) -> Lazy:
    items, store = _plain_value(node.iter, at), compile_store(node.target, at)
    body = compile_lazy_block(node.body, at)
    orelse = compile_lazy_block(node.orelse, at)

    def do(f: Frame) -> Steps:
        box = [iter(items(f))]
        while True:
            try:
                item = next(box[0])
            except StopIteration:
                break
            store(f, item)
            item = None
            result = yield from body(f)
            if result is BREAK:
                return None
            if result is not None and result is not CONTINUE:
                return result
        return (yield from orelse(f))

    return do


def _try(node: ast.Try, at: Context) -> Lazy:
    body = compile_lazy_block(node.body, at)
    handlers = compile_handlers(node, at, compile_lazy_block)
    orelse = compile_lazy_block(node.orelse, at)
    handling = _handling(body, handlers, orelse)
    if not node.finalbody:
        return handling
    return _finally(handling, compile_lazy_block(node.finalbody, at))


def _handling(body: Lazy, handlers: list[Any], orelse: Lazy) -> Lazy:
    def do(f: Frame) -> Steps:
        try:
            result = yield from body(f)
        except Exception as error:
            handler = handler_of(handlers, error, f)
            if handler is None:
                raise
            return (yield from _handle(handler, error, f))
        if result is None:
            return (yield from orelse(f))
        return result

    return do


def _handle(handler: Any, error: Exception, f: Frame) -> Steps:
    _, store, body = handler
    error.__traceback__ = None  # it holds on to many frames
    f[0].handled.append(error)
    if store is not None:
        store(f, error)
    try:
        return (yield from body(f))
    finally:
        f[0].handled.remove(error)
        if store is not None:
            store(f, UNSET)


def _finally(body: Lazy, last: Lazy) -> Lazy:
    def do(f: Frame) -> Steps:
        try:
            result = yield from body(f)
        except BaseException as error:
            if isinstance(error, UNCATCHABLE) or f[0].left < 0:
                raise
            found = yield from last(f)
            if found is None:
                raise
            return found
        found = yield from last(f)
        return result if found is None else found

    return do


def _match(node: ast.Match, at: Context) -> Lazy:
    subject = _plain_value(node.subject, at)
    cases = compile_cases(node, at, compile_lazy_block)

    def do(f: Frame) -> Steps:
        value = subject(f)
        for matches, body in cases:
            if matches(f, value):
                return (yield from body(f))
        return None

    return do


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
