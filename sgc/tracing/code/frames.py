"""What the frames of a running program hold on their stacks, by their bytecode."""

from __future__ import annotations

import inspect
from types import CodeType, FrameType, FunctionType

from sgc.lang.definition import Definition
from sgc.tracing.code.bytecode import Stack, info_of
from sgc.tracing.code.bytecode import is_clean as is_clean_stack


class Opaque(Exception):
    """There is a value that cannot be inspected."""


def stack_of(frame: FrameType, is_innermost: bool) -> Stack | None:
    """The contents of a frame's stack, without the call that it is in."""
    info = info_of(frame.f_code)
    if is_innermost:
        return info.before(frame.f_lasti).stack
    stack = info.after(frame.f_lasti).stack
    return None if not stack else stack[:-1]


def is_clean(frames: list[FrameType]) -> bool:
    """Whether the frames hold no hidden value: the innermost is at the beginning of a statement,
    and each other one is at a statement that only calls the next, and calls it directly: if
    `sorted`, say, calls a function for a frame, it may hold hidden values.
    """
    for index, frame in enumerate(frames):
        code = frame.f_code
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
            return False
        stack = stack_of(frame, is_innermost=index == 0)
        if not is_clean_stack(stack) or not _keeps_methods(frame, info_of(code).owners(stack)):
            return False
        if index and called(frame, frames[index - 1].f_code) is None:
            return False
    return True


def _keeps_methods(frame: FrameType, names: frozenset[str]) -> bool:
    """Whether the attributes of these variables' values are methods that nothing can replace."""
    local = frame.f_locals if names else {}
    return all(type(local.get(name)).__module__.partition(".")[0] in _OWN for name in names)


_OWN = frozenset({"builtins", "collections", "sgc"})


def called(frame: FrameType, code: CodeType) -> FunctionType | str | None:
    """The function with this code, if a frame is calling it; for a method, its name."""
    callee = info_of(frame.f_code).callee(frame.f_lasti)
    if callee is None:
        return None
    loads, name = callee
    if loads in ("LOAD_METHOD", "LOAD_ATTR"):
        return name if name == code.co_name else None
    is_global = loads in ("LOAD_GLOBAL", "LOAD_NAME")
    found = (frame.f_globals if is_global else frame.f_locals).get(name)
    if isinstance(found, Definition):
        found = found.python
    is_it = isinstance(found, FunctionType) and _is_of(found.__code__, code)
    return found if is_it else None


def _is_of(code: CodeType, running: CodeType) -> bool:
    """Whether the running code is a function's code, or its converted code."""
    places = ((each.co_filename, each.co_qualname, each.co_firstlineno) for each in (code, running))
    return code is running or len(set(places)) == 1
