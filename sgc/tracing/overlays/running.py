"""Builtins that run a text as Python, or read something outside of the program."""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.tracing.values.abstract import is_abstract, marked


def ambient(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        stop(
            f"{name}() while tracing: a compiled program would keep what it gave",
            hint="pass what it reads as an argument of the program",
        )

    return call


def running(name: str) -> Callable[..., Any]:
    """`eval` or the like, which refuses abstract texts, because it would run their markers."""
    builtin = getattr(builtins, name)

    def function(source: Any, *args: Any, **kwargs: Any) -> Any:
        if is_abstract(source) or marked(source):
            stop(f"{name}() of a value known only at run time", _EVALUATE)
        caller = sys._getframe(1)
        if name != "compile":
            _watch_code(source, name, args[0] if args and args[0] else caller.f_globals)
        if not args and not kwargs and name != "compile":  # the default is its caller's names
            return builtin(source, caller.f_globals, caller.f_locals)
        return builtin(source, *args, **kwargs)

    function.__name__ = name
    return function


def _watch_code(source: Any, name: str, names: dict[str, Any]) -> None:
    """Watches what the Python in a text reads outside of the program, as for its functions."""
    session: Any = current_session()
    if session is None or not session.is_tracing:
        return
    with contextlib.suppress(SyntaxError, ValueError):  # Python itself raises them next
        text = source.lstrip(" \t") if name == "eval" and isinstance(source, str) else source
        is_code = isinstance(source, CodeType)
        session.watch_code(source if is_code else compile(text, "<string>", name), names)


def opened(file: Any, *args: Any, **kwargs: Any) -> Any:
    if is_abstract(file) or marked(file):
        stop(
            "open() of a file that is named by a value known only at run time",
            hint="read it in a tool, a function with @sgc.tool that the program calls; or "
            + INTERPRET,
        )
    return open(file, *args, **kwargs)


_EVALUATE = (
    "what a model writes should not be run as Python; make what is to be done with it a tool, a "
    "function with @sgc.tool that the program calls; or " + INTERPRET
)
