"""Python's `xs += ys` on a list `xs` that is known, and `ys` only at run time.

Python extends the list in place, for all its holders. But a plain list cannot get items that are
known only at run time; a new list can replace it only in a single variable.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType, FrameType
from typing import Any

from sgc.core.stops import INTERPRET, stop


def refuse_extended(left: Any, name: str, frame: FrameType, is_typed: bool = True) -> bool:
    """Whether a frame's operator changes the list `left` in place.

    Stops the trace if it may, and not only the variable that the operator sets holds the list.
    name: of the value that is added; is_typed: whether this value is a list.
    """
    op, following = _operation(frame.f_code, frame.f_lasti)
    if op is not None and op < _FIRST_IN_PLACE:
        return False
    is_set_alone = is_typed and following in _SETS_VARIABLE
    if is_set_alone and n_held(left, frame) <= _N_HELD_ALONE:
        return True
    stop(
        f"a list is changed in place by {name}, which is known only at run time",
        hint="change a copy of it that only one variable has; or write `xs = xs + …`, which makes "
        "a new list; or " + INTERPRET,
    )


def is_in_place(frame: FrameType) -> bool:
    """Whether a frame's operator is that of `a += b` or the like, whose errors name it so."""
    op, _ = _operation(frame.f_code, frame.f_lasti)
    return op is not None and op >= _FIRST_IN_PLACE


def n_held(value: Any, frame: FrameType) -> int:
    """The number of references to a value, including one by the dict of the frame's variables, but
    not those by converted code's names for parts of earlier statements."""
    local = frame.f_locals  # in Python 3.11 and 3.12, a dict that the frame keeps
    n_own = sum(name.startswith(_OWN) and local[name] is value for name in local)
    return sys.getrefcount(value) - n_own * _N_OF_NAME


def _operation(code: CodeType, offset: int) -> tuple[int | None, str]:
    """The argument of the BINARY_OP at an offset, and the name of the instruction after it; None
    and an empty name for another instruction, which calls C code that may do anything."""
    text = code.co_code
    if text[offset] != _BINARY_OP:
        return None, ""
    following = offset + 2
    while text[following] == _CACHE:
        following += 2
    return text[offset + 1], dis.opname[text[following]]


def _argument(statement: str) -> int:
    (found,) = (
        each.arg
        for each in dis.get_instructions(compile(statement, "", "exec"))
        if each.opcode == _BINARY_OP and each.arg is not None
    )
    return found


_BINARY_OP, _CACHE = dis.opmap["BINARY_OP"], dis.opmap["CACHE"]
_FIRST_IN_PLACE = _argument("a += b")  # the arguments of all such operators follow
# Not with other targets, `pair[0] += xs`: other holders of the list would not see a new list.
_SETS_VARIABLE = frozenset({"STORE_FAST", "STORE_FAST_LOAD_FAST", "STORE_DEREF"})


class _Counted:
    """Counts the references to the list that is its left operand."""

    def __radd__(self, left: Any) -> int:
        return _seen(left)


def _seen(left: Any) -> int:
    return n_held(left, sys._getframe(2))


def _held_alone() -> int:
    """The number of references to a list that one variable holds, seen while it is extended."""
    alone: Any = []
    alone += _Counted()
    return int(alone)


def _held_by_own() -> int:
    """The number of further references that such a name adds."""
    __sgc_part: Any = []
    alone = __sgc_part
    alone += _Counted()
    return int(alone) - _N_HELD_ALONE


_OWN = "__sgc_"
_N_OF_NAME = 0
_N_HELD_ALONE = _held_alone()
_N_OF_NAME = _held_by_own()
