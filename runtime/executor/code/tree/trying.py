"""`raise` and `try` as closures over a frame."""

from __future__ import annotations

import ast
from typing import Any

from sgc.runtime.executor.code.tree.compiling import (
    Context,
    Do,
    compile_block,
    compile_expression,
    on_statement,
)
from sgc.runtime.executor.code.tree.driving import CAUGHT, UNCATCHABLE
from sgc.runtime.executor.code.tree.handling import (
    Handler,
    compile_handlers,
    find_handler,
    forget_error,
)
from sgc.runtime.executor.code.tree.scopes import Frame


@on_statement(ast.Raise)
def _raise(node: ast.Raise, at: Context) -> Do:
    if node.exc is None:
        return _raise_again
    error = compile_expression(node.exc, at)
    cause = compile_expression(node.cause, at) if node.cause else None

    def do(f: Frame) -> None:
        raised = error(f)
        is_error = isinstance(raised, type) and issubclass(raised, BaseException)
        if not is_error and not isinstance(raised, BaseException):
            raise TypeError("exceptions must derive from BaseException")
        try:
            if cause is None:
                raise raised
            raise raised from cause(f)
        finally:
            del raised  # otherwise the error would refer to itself, and keep its frames alive

    return do


# A bare `raise` raises again the last of the exceptions that are being handled.
def _raise_again(f: Frame) -> None:
    handled = f[0].handled
    if not handled:
        raise RuntimeError("No active exception to reraise")
    raise handled[-1]


@on_statement(ast.Try)
def _try(node: ast.Try, at: Context) -> Do:
    body = compile_block(node.body, at)
    handlers = compile_handlers(node, at, compile_block)
    handling = _handling(body, handlers, compile_block(node.orelse, at))
    return _finally(handling, compile_block(node.finalbody, at)) if node.finalbody else handling


def _handling(body: Do, handlers: list[Handler], orelse: Do) -> Do:
    def do(f: Frame) -> Any:
        try:
            result = body(f)
        except CAUGHT as error:
            handler = None
            f[0].handled.append(error)
            try:
                handler = find_handler(handlers, error, f)
                if handler is None:
                    raise
                return handler.body(f)
            finally:
                f[0].handled.pop()
                forget_error(handler, f)
        return orelse(f) if result is None else result

    return do


def _finally(body: Do, last: Do) -> Do:
    def do(f: Frame) -> Any:
        try:
            result = body(f)
        except BaseException as error:
            if isinstance(error, UNCATCHABLE) or f[0].left < 0:
                raise
            f[0].handled.append(error)
            try:
                found = last(f)
            finally:
                f[0].handled.pop()
            # A `return` or a `break` in the `finally` drops the error.
            if found is None:
                raise
            return found
        found = last(f)
        return result if found is None else found

    return do
