"""Whether a method of a plain text is called with an abstract argument.

The profile hook is shown the method but not its arguments. What the program loads for them can be
read from its bytecode: a name whose value is abstract, or a part of a stream, is one.
"""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from sgc.lang.state import ProgramState
from sgc.tracing.values.abstract import is_abstract

_WIDTH = 2  # bytes of an instruction
_LOADS_LOCAL = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF", "LOAD_CLOSURE"})
_LOADS_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_SILENT = frozenset({"CACHE", "NOP", "PRECALL", "KW_NAMES", "RESUME", "EXTENDED_ARG"})


def takes_abstract(frame: FrameType) -> bool:
    """Whether the call that the frame is making loads an abstract value, or a stream's."""
    names = _loaded(frame.f_code, frame.f_lasti)
    if not names:
        return False
    local = frame.f_locals
    for name in names:
        value = local[name] if name in local else frame.f_globals.get(name)
        if is_abstract(value) or _is_stream(value):
            return True
    return False


def _is_stream(value: Any) -> bool:
    return type(value) is ProgramState


@lru_cache(maxsize=8192)
def _loaded(code: CodeType, offset: int) -> tuple[str, ...]:
    """The names that are loaded for the arguments of a call; none for what is no call."""
    raw = code.co_code
    if offset < 0 or not dis.opname[raw[offset]].startswith("CALL"):
        return ()
    n_open, at = raw[offset + 1], offset - _WIDTH
    names: list[str] = []
    while n_open > 0 and at >= 0:
        op, arg = raw[at], raw[at + 1]
        name = dis.opname[op]
        if name not in _SILENT:
            n_open -= _effect(op, arg)
            names += _name(code, name, arg)
        at -= _WIDTH
    return tuple(names)


def _effect(op: int, arg: int) -> int:
    """How many values an instruction leaves on the stack more than it found."""
    return dis.stack_effect(op, arg if op >= dis.HAVE_ARGUMENT else None, jump=False)


def _name(code: CodeType, op: str, arg: int) -> list[str]:
    if op in _LOADS_GLOBAL:
        index = arg >> 1 if op == "LOAD_GLOBAL" else arg
        return [code.co_names[index]] if index < len(code.co_names) else []
    if op == "LOAD_FAST" or op == "LOAD_FAST_CHECK":
        return [code.co_varnames[arg]] if arg < len(code.co_varnames) else []
    if op in _LOADS_LOCAL:
        return _cell_name(code, arg)
    return []


def _cell_name(code: CodeType, arg: int) -> list[str]:
    """The variable of a closure: cells that are arguments too are counted with the locals."""
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    names = (*code.co_varnames, *cells, *code.co_freevars)
    return [names[arg]] if arg < len(names) else []
