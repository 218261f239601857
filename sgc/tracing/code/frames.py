"""The contents of the stacks of a running program's frames, by their bytecode."""

from __future__ import annotations

import builtins
import dis
import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, GeneratorType
from typing import Any

from sgc.tracing.code.bytecode import info_of
from sgc.tracing.code.calling import LateMethod, makes_first, noted_at, python_of
from sgc.tracing.code.operator_names import CONTAINS, ITEM
from sgc.tracing.code.stacks import Slot, Stack
from sgc.tracing.code.stacks import is_clean as is_clean_stack


class Opaque(Exception):
    """There is a value that cannot be inspected."""


def stack_of(frame: FrameType, is_innermost: bool) -> Stack | None:
    """The contents of a frame's stack, without the call that is under way."""
    info = info_of(frame.f_code)
    if is_innermost:
        return info.before(frame.f_lasti).stack
    stack = info.after(frame.f_lasti).stack
    return None if not stack else stack[:-1]


def is_clean(frames: list[FrameType], continues: Callable[[FrameType, FrameType], bool]) -> bool:
    """Whether the frames hold no hidden value: the innermost frame is at the beginning of a
    statement, and every other frame is at a statement that only calls the next frame, directly. A
    function such as `sorted` between two frames may hold hidden values.

    continues: whether a frame's loop takes its next item from a generator with the other frame.
    """
    for index, frame in enumerate(frames):
        if frame.f_code.co_flags & inspect.CO_COROUTINE or not _is_clean(frame, index == 0):
            return False
        if is_generator(frame) and index + 1 == len(frames):
            return False
        if index == 0 and frame.f_code.co_name == "__init__" and not _has_loop(frame.f_code):
            return False  # paths merge after the function; checking each of its lines costs more
        inner = frames[index - 1]
        if index and not (continues if is_generator(inner) else _calls)(frame, inner):
            return False
    return True


@lru_cache(maxsize=1024)
def _has_loop(code: CodeType) -> bool:
    return any("BACKWARD" in each.opname for each in dis.get_instructions(code))


def is_generator(frame: FrameType) -> bool:
    return bool(frame.f_code.co_flags & inspect.CO_GENERATOR)


def function_of(generator: GeneratorType[Any, Any, Any]) -> FunctionType | None:
    """The function that a generator runs: the first function to which its frame refers."""
    referents = gc.get_referents(generator)
    functions = (each for each in referents if type(each) is FunctionType)
    found = next(functions, None)
    return found if found is not None and found.__code__ is generator.gi_code else None


def waits_clean(generator: GeneratorType[Any, Any, Any]) -> bool:
    """Whether a generator that waits holds no hidden value."""
    frame = generator.gi_frame
    if frame is None or inspect.getgeneratorstate(generator) == inspect.GEN_CREATED:
        return True
    stack = stack_of(frame, is_innermost=False)
    is_in_loops = stack is not None and all(slot is Slot.ITERATOR for slot, _ in stack)
    return is_in_loops and info_of(frame.f_code).is_yield(frame.f_lasti)


def _is_clean(frame: FrameType, is_innermost: bool) -> bool:
    stack = stack_of(frame, is_innermost)
    return is_clean_stack(stack) and _keeps_methods(frame, info_of(frame.f_code).owners(stack))


def _calls(frame: FrameType, inner: FrameType) -> bool:
    """Whether a frame calls the inner one directly."""
    found = called(frame, inner.f_code)
    is_start = isinstance(found, FunctionType) and inner.f_code.co_name == "__init__"
    return found is not None and (not is_start or makes_first(inner))


def _keeps_methods(frame: FrameType, names: frozenset[str]) -> bool:
    """Whether the attributes of these variables' values are methods that nothing can replace."""
    local = frame.f_locals if names else {}
    return all(type(local.get(name)).__module__.partition(".")[0] in _OWN for name in names)


_OWN = frozenset({"builtins", "collections", "sgc"})


def called(frame: FrameType, code: CodeType) -> FunctionType | str | None:
    """The function with this code, if a frame is calling it; for a method, its name."""
    info = info_of(frame.f_code)
    loads, name = info.callee(frame.f_lasti) or ("", "")
    if loads in ("LOAD_METHOD", "LOAD_ATTR") and name == code.co_name:
        return name
    if code.co_name == _SPECIAL.get(name) and _is_pythons(frame, name):
        return code.co_name
    is_global = loads in ("LOAD_GLOBAL", "LOAD_NAME")
    value = (frame.f_globals if is_global else frame.f_locals).get(name)
    if isinstance(value, LateMethod) and value.name == code.co_name:
        return value.name
    found = python_of(value)
    if found is None or not _is_of(found.__code__, code):
        looks = info.looked_at(frame.f_lasti)
        found = noted_at(frame, lambda offset: info.start_of(offset) == looks)
    return found if found is not None and _is_of(found.__code__, code) else None


# Functions that call a special method at once and return its result.
_SPECIAL = {
    "str": "__str__", "len": "__len__", CONTAINS: "__contains__", ITEM: "__getitem__",
}  # fmt: skip


def _is_pythons(frame: FrameType, name: str) -> bool:
    """Whether a name refers to an operator, or to Python's own function of that name."""
    own, code = getattr(builtins, name, None), frame.f_code
    if own is None:
        return True
    is_local = name in code.co_varnames + code.co_cellvars + code.co_freevars
    return not is_local and frame.f_globals.get(name, own) is own


def _is_of(code: CodeType, running: CodeType) -> bool:
    """Whether the running code is a function's code, or its converted code."""
    places = ((each.co_filename, each.co_qualname, each.co_firstlineno) for each in (code, running))
    return code is running or len(set(places)) == 1


def sharing(frame: FrameType, value: Any) -> Iterator[FrameType]:
    """The frames outside a function's that share a variable with this value with it; the copy of
    its variables that each frame keeps refers to the value too."""
    free = {*frame.f_code.co_freevars}
    above = frame.f_back if free else None
    while above is not None:
        cells = free.intersection(above.f_code.co_cellvars + above.f_code.co_freevars)
        if cells and any(above.f_locals.get(name) is value for name in cells):
            yield above
        above = above.f_back


def is_running(frame: FrameType, name: str) -> bool:
    """Whether the enclosing function that made a variable is still running; then the variable is
    not older than the call."""
    code, value = frame.f_code, frame.f_locals.get(name)
    return any(
        name in above.f_code.co_cellvars
        and above.f_code.co_filename == code.co_filename
        and code.co_qualname.startswith(f"{above.f_code.co_qualname}.<locals>.")
        for above in sharing(frame, value)
    )


def _references_of_a_look() -> int:
    value: list[Any] = []
    before = sys.getrefcount(value)
    local = sys._getframe().f_locals
    assert local["value"] is value
    return sys.getrefcount(value) - before


# The references that a look at a frame's variables adds to each value: none from Python 3.13 on.
N_OF_LOOK = _references_of_a_look()
