"""Which handler of a `try` takes an error."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from sgc.errors import SgcError
from sgc.runtime.executor.code.tree.compiling import Context, Do, Ev, compile_expression
from sgc.runtime.executor.code.tree.scopes import Frame
from sgc.runtime.executor.code.tree.targets import place_of, store_name

# What the code cannot catch: its own limits.
UNCATCHABLE = (SgcError, RecursionError, MemoryError)
Handler = tuple[Ev | None, Any, Do]


def compile_handlers(
    node: ast.Try, at: Context, compile_body: Callable[..., Any]
) -> list[tuple[Ev | None, Any, Any]]:
    """The handlers of a try: what each takes, where it keeps it, and its body."""
    return [
        (
            compile_expression(each.type, at) if each.type else None,
            store_name(place_of(each.name, at)) if each.name else None,
            compile_body(each.body, at),
        )
        for each in node.handlers
    ]


def handler_of(handlers: list[Any], error: BaseException, f: Frame) -> Any:
    """Returns the handler that takes an error, or None."""
    if isinstance(error, UNCATCHABLE) or not isinstance(error, Exception):
        return None
    for handler in handlers:
        if handler[0] is None or isinstance(error, caught_types(handler[0](f))):
            return handler
    return None


def caught_types(found: Any) -> Any:
    for each in found if isinstance(found, tuple) else (found,):
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise TypeError(
                "catching classes that do not inherit from BaseException is not allowed"
            )
    return found
