"""Whether the program that is being traced uses operations that reach no hook of a value."""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType, FrameType


def program_has(names: frozenset[str]) -> bool:
    """Whether a function of the traced program that is running has one of these instructions."""
    from sgc.core.places import is_users

    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "sgc.tracing.tracer":
        if is_users(frame) and names & _instructions(frame.f_code):
            return True
        frame = frame.f_back
    return False


def function_has(code: CodeType, names: frozenset[str]) -> bool:
    """Whether a function, or one inside it, has one of these instructions."""
    return bool(names & _instructions(code))


@lru_cache(maxsize=4096)
def _instructions(code: CodeType) -> frozenset[str]:
    """The names of instructions of a function and of those inside it."""
    # Not by dis.get_instructions, which runs Python code of its own inside the trace.
    found = {_plain(dis.opname[op]) for op in code.co_code[::2]}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _instructions(constant)
    return frozenset(found)


def _plain(name: str) -> str:
    """Jumps on None are `is None`."""
    return "IS_OP" if name.startswith("POP_JUMP") and "NONE" in name else name
