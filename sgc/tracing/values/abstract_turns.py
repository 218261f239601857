"""The language's loops while they are traced: they count in abstract numbers."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sgc.ir import types
from sgc.tracing.code.bytecode import info_of
from sgc.tracing.values.recorder import Recorder

_IS_BEFORE = {True: "lt", False: "gt"}  # the test, by whether the loop counts up
MAX_PREFIXED = 4  # the number of instructions in one with its prefixes


class Counted(Iterator[Any]):
    """Counts by `step` up or down to, but without, `end`, which may be abstract. Every turn is a
    test, except the first turn if it is certain.
    """

    def __init__(
        self,
        session: Recorder,
        start: Any,
        end: Any,
        step: Any = 1,
        is_up: bool = True,
        is_first_sure: bool = False,
    ) -> None:
        self._session = session
        self._start, self.end, self._step = start, end, step
        self._is_up, self._is_first_sure = is_up, is_first_sure
        self.index: Any = None

    def __next__(self) -> Any:
        session = self._session
        if self.index is None:
            self.index = session.compute("int", self._start, type_=types.INT)
            is_sure = self._is_first_sure
        else:
            self.index = session.compute("add", self.index, self._step, type_=types.INT)
            is_sure = False
        if not is_sure and not session.compute(_IS_BEFORE[self._is_up], self.index, self.end):
            raise StopIteration
        return self.index


def counted(session: Recorder, n: Any) -> Iterator[Any]:
    """Counts from 0 up to a number; a known 0 gives no turns."""
    is_known = isinstance(n, int)
    return iter(()) if is_known and n == 0 else Counted(session, 0, n, is_first_sure=is_known)


def is_for_of(frame: FrameType) -> bool:
    """Whether a frame begins a `for` statement, not a comprehension."""
    code = frame.f_code.co_code[frame.f_lasti :]
    first, *after = [dis.opname[op] for op in code[: 2 * (1 + MAX_PREFIXED) : 2]]
    following = next((op for op in after if op != "EXTENDED_ARG"), "")
    is_begun = first == "GET_ITER" and following == "FOR_ITER"
    return is_begun and info_of(frame.f_code).after(frame.f_lasti).is_clean
