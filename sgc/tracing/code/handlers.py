"""Finds the exception classes that the handlers around a place in a program distinguish.

The classes are read from the bytecode: `except` loads classes and matches them. Loaded names are
looked up as Python does; computed classes stop the trace.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import _GeneratorContextManager, nullcontext, suppress
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FrameType, FunctionType
from typing import Any

from sgc.core.places import COMPREHENSIONS, is_users, program_frames
from sgc.core.stops import INTERPRET, stop
from sgc.tracing.code.bytecode import info_of
from sgc.tracing.code.frames import called, is_generator
from sgc.tracing.code.opcodes import locals_of
from sgc.tracing.code.operator_names import OR_NONE

_SKIPPED = frozenset({"EXTENDED_ARG", "NOP", "CACHE", "PUSH_EXC_INFO"})
# Instructions that end a statement; a `finally` or bare `except` reaches one before any match.
_ENDS = ("POP_", "STORE_", "DELETE_", "RETURN_", "RAISE_", "RERAISE", "JUMP", "FOR_ITER", "YIELD_")
Load = tuple[str, Any]


def is_caught(may_be: Callable[[type], bool] | None = None) -> bool:
    """Whether a handler in the program may handle an error raised at its current place. may_be:
    whether the error may be of a class."""
    targets = (found for frame in program_frames() for found in _targets(frame))
    return any(may_be is None or _may_handle(*found, may_be) for found in targets)


def _may_handle(frame: FrameType, target: int, may_be: Callable[[type], bool]) -> bool:
    classes = [*_matched(frame, target)]
    return not classes or any(map(may_be, classes))


def ends_program() -> bool:
    """Whether an error raised at the program's current place surely ends the program: nothing
    handles the error, and each frame is called by a call that names its function. Python itself
    handles some errors of other calls: a loop over an object ends at an IndexError of the object's
    `__getitem__`.
    """
    inner: FrameType | None = None
    for frame in program_frames():
        is_plain = is_users(frame) and not frame.f_code.co_flags & _SUSPENDED
        if not is_plain or any(True for _ in _targets(frame)):
            return False
        if inner is not None and not _is_called(frame, inner):
            return False
        inner = frame
    return inner is not None


_SUSPENDED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


def _is_called(frame: FrameType, inner: FrameType) -> bool:
    return inner.f_code.co_name in COMPREHENSIONS or called(frame, inner.f_code) is not None


def handled_classes() -> list[type]:
    """The classes that the handlers of an error raised here match, innermost first."""
    found: dict[type, None] = {}
    for frame in program_frames():
        for each, target in _targets(frame):
            found.update(dict.fromkeys(_matched(each, target)))
    return list(found)


def _targets(frame: FrameType) -> Iterator[tuple[FrameType, int]]:
    """The handlers around a frame's current place, innermost first: frames and offsets. For a
    `with` block of a generator, the handlers are those around the generator's `yield`."""
    if frame.f_code in _PASSING:
        return
    for target in info_of(frame.f_code).handlers(frame.f_lasti):
        manager = _manager_at(frame, target)
        if type(manager) is _GeneratorContextManager:
            waiting: FrameType | None = manager.gen.gi_frame  # type: ignore[attr-defined]
            yield from () if waiting is None else _targets(waiting)
        elif type(manager) is not nullcontext:
            yield frame, target


# Managers that pass an error of any class on unchanged to and from their generator.
_PASSING = frozenset({
    _GeneratorContextManager.__enter__.__code__, _GeneratorContextManager.__exit__.__code__,
})  # fmt: skip


def _manager_at(frame: FrameType, target: int) -> Any:
    """The context manager of the `with` block to which a handler belongs; None if the handler is of
    another kind of block, or the manager is not known."""
    name = info_of(frame.f_code).manager_at(target)
    return None if name is None else frame.f_locals.get(name)


def _matched(frame: FrameType, target: int) -> Iterator[type]:
    """The classes that a handler distinguishes."""
    manager = _manager_at(frame, target)
    if type(manager) is suppress:
        yield from _flat(manager._exceptions)  # type: ignore[attr-defined]
    elif manager is None or _asks_for_class(getattr(type(manager), "__exit__", None)):
        for loads in _matches(frame.f_code, target):
            yield from _evaluated(loads, frame)


def _asks_for_class(leave: Any) -> bool:
    """Whether an `__exit__` may use its error for more than a test whether there is one."""
    if not isinstance(leave, FunctionType):
        return True
    code = leave.__code__
    given = set(_parameters(code)[bool(code.co_argcount) :])  # without `self`
    ops = [op for op in dis.get_instructions(code) if op.opname not in _SKIPPED]
    return any(
        bool(given & _loaded(op)) and not _is_none_test(ops[n - 1], ops[n + 1 :])
        for n, op in enumerate(ops)
    )


def _loaded(op: dis.Instruction) -> set[Any]:
    """The names that an instruction loads."""
    names = {name for name, is_read in locals_of(op) if is_read}
    is_other = op.opname.startswith("LOAD_") and op.opname != "LOAD_CONST"
    return names or ({op.argval} if is_other else set())


def _parameters(code: CodeType) -> tuple[str, ...]:
    n_more = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + n_more]


def _is_none_test(before: dis.Instruction, after: list[dis.Instruction]) -> bool:
    """Whether the instructions around a load compare the loaded value with None; converted code
    calls an operator for the comparison."""
    if before.argval == OR_NONE:
        after = [op for op in after if op.opname not in ("PRECALL", "CALL")]
    if after[0].opname.startswith("POP_JUMP") and after[0].opname.endswith("NONE"):
        return True
    is_none = after[0].opname == "LOAD_CONST" and after[0].argval is None
    return is_none and after[1].opname == "IS_OP"


@functools.lru_cache(maxsize=4096)
def _matches(code: CodeType, target: int) -> tuple[tuple[Load, ...] | None, ...]:
    """The loads of each `except` of a handler; None for an `except` with computed classes."""
    ops = _ops(code)
    index = {op.offset: n for n, op in enumerate(ops)}
    if ops[index[target] + 1].opname == "WITH_EXCEPT_START":
        return (None,)
    found: list[tuple[Load, ...] | None] = []
    at: int | None = index[target]
    while at is not None:
        loads, at = _match(ops, at)
        if at is not None:
            found.append(loads)
            jump = next(op for op in ops[at:] if op.opname.startswith("POP_JUMP"))
            at = index[jump.argval]
    return tuple(found)


@functools.lru_cache(maxsize=256)  # a function may have many handlers
def _ops(code: CodeType) -> list[dis.Instruction]:
    return list(dis.get_instructions(code))


def _match(ops: list[dis.Instruction], at: int) -> tuple[tuple[Load, ...] | None, int | None]:
    """The loads of the next `except`, and the index of its match; None if there is none."""
    loads: list[Load] | None = []
    for n in range(at, len(ops)):
        name = ops[n].opname
        if name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH"):
            is_plain = loads is not None and name == "CHECK_EXC_MATCH"
            return (tuple(loads or ()) if is_plain else None), n
        if name.startswith(_ENDS):
            return None, None
        if name in _LOADS and loads is not None:
            reads = [variable for variable, is_read in locals_of(ops[n]) if is_read]
            loads += [(name, each) for each in reads or [ops[n].argval]]
        elif name not in _SKIPPED:
            loads = None
    return None, None


_LOADS = frozenset({
    "LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST", "LOAD_DEREF",
    "LOAD_ATTR", "BUILD_TUPLE",
})  # fmt: skip


def _evaluated(loads: tuple[Load, ...] | None, frame: FrameType) -> tuple[type, ...]:
    stack: list[Any] = []
    try:
        for name, argument in loads or _computed():
            if name == "BUILD_TUPLE":
                stack[len(stack) - argument :] = [tuple(stack[len(stack) - argument :])]
            elif name == "LOAD_ATTR":
                stack.append(getattr(stack.pop(), argument))
            else:
                stack.append(_looked_up(argument, frame))
        classes = tuple(_flat(stack.pop()))
    except (LookupError, AttributeError):
        _computed()
    return classes


def _looked_up(name: str, frame: FrameType) -> Any:
    for space in (frame.f_locals, frame.f_globals, frame.f_builtins):
        if name in space:
            return space[name]
    raise LookupError(name)


def _flat(value: Any) -> Iterator[type]:
    """The classes of an `except`: a class, or a tuple of classes and tuples."""
    if isinstance(value, tuple):
        for each in value:
            yield from _flat(each)
    elif isinstance(value, type) and issubclass(value, BaseException):
        yield value
    else:
        _computed()


def _computed() -> Any:
    stop(
        "what handles a tool's failure here cannot be told: it is an `except` of computed classes, "
        "an `except*`, or a `with` block of others",
        hint="write try: … except (ValueError, KeyError):, inside the block; or " + INTERPRET,
    )


MAX_ERRORS = 64  # each raised while another was handled


def forget_ended() -> None:
    """Drops the variables of functions that an error has ended, while the error is handled: its
    traceback keeps their frames, which would count as holders."""
    error = sys.exc_info()[1]
    for _ in range(MAX_ERRORS):
        if error is None:
            return
        place = error.__traceback__
        while place is not None:
            if not is_generator(place.tb_frame):
                with suppress(RuntimeError):  # the frame still runs
                    place.tb_frame.clear()
            place = place.tb_next
        error = error.__context__
