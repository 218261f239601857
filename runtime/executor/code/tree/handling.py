"""Which handler of a `try` catches an error."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from sgc.runtime.executor.code.tree.compiling import Context, Ev, compile_expression
from sgc.runtime.executor.code.tree.driving import UNCATCHABLE
from sgc.runtime.executor.code.tree.scopes import UNSET, Frame
from sgc.runtime.executor.code.tree.targets import Store, place_of, store_name


class Handler(NamedTuple):
    """kinds: the classes of errors that it catches, None for all. store: stores the error."""

    kinds: Ev | None
    store: Store | None
    body: Callable[[Frame], Any]


def compile_handlers(node: ast.Try, at: Context, compile_body: Callable[..., Any]) -> list[Handler]:
    """The handlers of a try."""
    return [
        Handler(
            compile_expression(each.type, at) if each.type else None,
            store_name(place_of(each.name, at)) if each.name else None,
            compile_body(each.body, at),
        )
        for each in node.handlers
    ]


def find_handler(handlers: list[Handler], error: BaseException, f: Frame) -> Handler | None:
    """The handler that catches an error, after storing the error under the handler's name; or None.

    The error already counts as handled while it is compared with the classes of handlers.
    """
    if isinstance(error, UNCATCHABLE):
        return None
    for handler in handlers:
        kinds, store, _ = handler
        if kinds is None or isinstance(error, _caught_types(kinds(f))):
            error.__traceback__ = None  # it keeps many frames alive
            if store is not None:
                store(f, error)
            return handler
    return None


def forget_error(handler: Handler | None, f: Frame) -> None:
    """Deletes a handler's name for its error, at the end of the handler."""
    if handler is not None and handler.store is not None:
        handler.store(f, UNSET)


def _caught_types(found: Any) -> Any:
    for each in found if isinstance(found, tuple) else (found,):
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise TypeError(
                "catching classes that do not inherit from BaseException is not allowed"
            )
    return found
