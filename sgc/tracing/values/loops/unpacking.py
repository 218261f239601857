"""Statements that unpack a list known only at run time, `a, b = xs`."""

from __future__ import annotations

import dis
from types import FrameType
from typing import Any

from sgc.ir import types
from sgc.tracing.values.computing import attempted, computed
from sgc.tracing.values.recorder import Recorder


def unpacked_by(frame: FrameType) -> int | None:
    """The number of items that `a, b = xs` takes, if the frame is at such a statement."""
    code = frame.f_code.co_code[frame.f_lasti :][:2]
    is_unpacking = len(code) == 2 and dis.opname[code[0]] == "UNPACK_SEQUENCE"
    return code[1] if is_unpacking else None


def unpacked(session: Recorder, items: Any, n: int, type_: types.Type) -> list[Any]:
    """The `n` items of `a, b = xs`; raises Python's error if there are more or fewer."""
    attempted(session, "unpack", items, n, type_=items.symbol.type)
    return [computed(session, "item", items, index, type_=type_) for index in range(n)]
