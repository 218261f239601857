"""Triton's interpreter, without the work that it repeats at each call.

It replaces functions of `triton.language` while a kernel runs. It looks for them anew among all
members of the package, at each launch and at each call of a function by a kernel: two fifths of the
time of our kernels.
"""

from __future__ import annotations

import inspect
import os
from functools import cache
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

_replace_for = interpreter._patch_lang


def replace_once() -> None:
    """A launch replaces what all functions need that its kernel calls. Stays for the rest of the
    process."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        interpreter._patch_builtin = _replaced
        interpreter._patch_lang = _replaced_for_all
        interpreter.InterpretedFunction.__call__ = _called


def _replaced(package: Any, builder: Any, scope: Any) -> None:
    for name in _builtins(package):
        interpreter._patch_attr(package, name, getattr(package, name), builder, scope)


@cache
def _builtins(package: Any) -> list[str]:
    """Is asked first when nothing is replaced."""
    return [name for name, member in inspect.getmembers(package) if tl.core.is_builtin(member)]


def _replaced_for_all(kernel: Any) -> Any:
    """Our kernels call functions of `tl`, and these such of `tl.core`."""
    scope = _replace_for(kernel)
    _replaced(tl.core, interpreter.interpreter_builder, scope)
    interpreter._patch_lang_core(tl.core, scope)
    return scope


def _called(self: interpreter.InterpretedFunction, *args: Any, **kwargs: Any) -> Any:
    try:
        return self.rewrite()(*args, **kwargs)
    except Exception as error:
        raise interpreter.InterpreterError(repr(error)) from error
