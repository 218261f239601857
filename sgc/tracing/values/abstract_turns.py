"""The loops of the language while they are traced: what they count is an abstract number."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sgc.ir import types
from sgc.tracing.code.bytecode import info_of
from sgc.tracing.values.recorder import Recorder

_IS_BEFORE = {True: "lt", False: "gt"}  # by whether it counts up
MAX_PREFIXED = 4  # instructions: one with its prefixes


class Counted(Iterator[Any]):
    """Counts by `step` to before `end`, which may be abstract; every turn but a sure first is a
    test.
    """

    def __init__(
        self, session: Recorder, start: Any, end: Any, step: int = 1, is_first_sure: bool = False
    ) -> None:
        self._session = session
        self._start, self._end, self._step = start, end, step
        self._is_first_sure = is_first_sure
        self.index: Any = None

    def __next__(self) -> Any:
        session = self._session
        if self.index is None:
            self.index = session.compute("int", self._start, type_=types.INT)
            is_sure = self._is_first_sure
        else:
            self.index = session.compute("add", self.index, self._step, type_=types.INT)
            is_sure = False
        if not is_sure and not session.compute(_IS_BEFORE[self._step > 0], self.index, self._end):
            raise StopIteration
        return self.index


def counted(session: Recorder, n: Any) -> Iterator[Any]:
    """Counts from 0 to a number; no turns at all are known to be none."""
    is_known = isinstance(n, int)
    return iter(()) if is_known and n == 0 else Counted(session, 0, n, is_first_sure=is_known)


def is_for_of(frame: FrameType) -> bool:
    """Whether a frame begins a `for` statement, and no comprehension, over what it has."""
    code = frame.f_code.co_code[frame.f_lasti :]
    first, *after = [dis.opname[op] for op in code[: 2 * (1 + MAX_PREFIXED) : 2]]
    following = next((op for op in after if op != "EXTENDED_ARG"), "")
    is_begun = first == "GET_ITER" and following == "FOR_ITER"
    return is_begun and info_of(frame.f_code).after(frame.f_lasti).is_clean
