"""Finds operations in a traced program that call no method of a value, such as patterns."""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType, FrameType


def program_has(names: frozenset[str]) -> bool:
    """Whether a running function of the traced program has one of these instructions."""
    from sgc.core.places import is_users

    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "sgc.tracing.trace":
        if is_users(frame) and names & _instructions(frame.f_code):
            return True
        frame = frame.f_back
    return False


def function_has(code: CodeType, names: frozenset[str]) -> bool:
    """Whether a function, or one inside it, has one of these instructions."""
    return bool(names & _instructions(code))


@lru_cache(maxsize=4096)
def _instructions(code: CodeType) -> frozenset[str]:
    """The names of the instructions of a function and of the functions inside it."""
    # dis.get_instructions would run Python code of its own inside the trace.
    found = {dis.opname[op] for op in code.co_code[::2]}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _instructions(constant)
    return frozenset(found)
