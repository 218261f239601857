"""Finds out whether a method of a plain text is called with an abstract argument.

The profile hook gets the method but not its arguments. The bytecode shows which names the program
loads for the arguments: an argument is abstract if a name's value is abstract or a stream.
"""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from sgc.lang.state import ProgramState
from sgc.tracing.code.opcodes import locals_of
from sgc.tracing.values.abstract import is_abstract

_LOADS = frozenset({"LOAD_DEREF", "LOAD_CLOSURE", "LOAD_GLOBAL", "LOAD_NAME"})
_SILENT = frozenset({"CACHE", "NOP", "PRECALL", "KW_NAMES", "RESUME", "EXTENDED_ARG"})


def takes_abstract(frame: FrameType) -> bool:
    """Whether the frame's current call loads an abstract value, or a stream."""
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


@lru_cache(maxsize=1024)
def _instructions(code: CodeType) -> tuple[list[dis.Instruction], dict[int, int]]:
    found = list(dis.get_instructions(code))
    return found, {each.offset: n for n, each in enumerate(found)}


@lru_cache(maxsize=8192)
def _loaded(code: CodeType, offset: int) -> tuple[str, ...]:
    """The names that are loaded for the arguments of a call; empty for another instruction."""
    instructions, places = _instructions(code)
    at = places.get(offset)
    if at is None or not instructions[at].opname.startswith("CALL"):
        return ()
    call = instructions[at]
    n_open = (call.arg or 0) + (call.opname == "CALL_KW")  # with the names of keywords
    names: list[str] = []
    for each in reversed(instructions[:at]):
        if n_open <= 0:
            break
        if each.opname not in _SILENT:
            n_open -= dis.stack_effect(each.opcode, each.arg, jump=False)
            names += _names(each)
    return tuple(names)


def _names(instruction: dis.Instruction) -> list[str]:
    """The variables that an instruction loads."""
    found = instruction.argval
    if instruction.opname in _LOADS:
        return [found]
    return [name for name, is_read in locals_of(instruction) if is_read]
