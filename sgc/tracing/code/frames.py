"""What hides in the frames of a program that is running, as its bytecode says."""

from __future__ import annotations

import inspect
from types import CodeType, FrameType, FunctionType

from sgc.lang.definition import Definition
from sgc.tracing.code.bytecode import Stack, info_of
from sgc.tracing.code.bytecode import is_clean as is_clean_stack


class Opaque(Exception):
    """Something is there that cannot be looked into."""


def stack_of(frame: FrameType, is_innermost: bool) -> Stack | None:
    """What a frame's stack holds beside the call that it is in."""
    info = info_of(frame.f_code)
    if is_innermost:
        return info.before(frame.f_lasti).stack
    stack = info.after(frame.f_lasti).stack
    return None if not stack else stack[:-1]


def is_clean(frames: list[FrameType]) -> bool:
    """Whether nothing hides in the frames: the innermost is at the beginning of a statement, the
    others at one that is no more than the call of the next, and call it themselves: a function
    that is called for them, by `sorted` or the making of an object, say, has what nobody sees.
    """
    for index, frame in enumerate(frames):
        code = frame.f_code
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
            return False
        if not is_clean_stack(stack_of(frame, is_innermost=index == 0)):
            return False
        if index and called(frame, frames[index - 1].f_code) is None:
            return False
    return True


def called(frame: FrameType, code: CodeType) -> FunctionType | str | None:
    """The function of that code, if it is what a frame is calling; of a method, its name."""
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
    """Whether what runs is the code of a function, or made of it by conversion."""
    places = ((each.co_filename, each.co_qualname, each.co_firstlineno) for each in (code, running))
    return code is running or len(set(places)) == 1
