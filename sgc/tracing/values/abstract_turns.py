"""The loops of the language while they are traced: what they count is an abstract number."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from sgc.ir import types
from sgc.tracing.code.bytecode import info_of
from sgc.tracing.values.recorder import Recorder

if TYPE_CHECKING:
    pass

MAX_PREFIXED = 4  # instructions: one with its prefixes


class Counted(Iterator[Any]):
    """Counts from 0 to a number that may be abstract; every turn but a sure first is a test."""

    def __init__(self, session: Recorder, n: Any, is_first_sure: bool) -> None:
        self._session = session
        self._n = n
        self._is_first_sure = is_first_sure
        self.index: Any = None

    def __next__(self) -> Any:
        session = self._session
        if self.index is None:
            self.index = session.compute("int", 0)
            is_sure = self._is_first_sure
        else:
            self.index = session.compute("add", self.index, 1, type_=types.INT)
            is_sure = False
        if not is_sure and not session.compute("lt", self.index, self._n):
            raise StopIteration
        return self.index


def counted(session: Recorder, n: Any) -> Iterator[Any]:
    """Counts from 0 to a number; no turns at all are known to be none."""
    is_known = isinstance(n, int)
    return iter(()) if is_known and n == 0 else Counted(session, n, is_first_sure=is_known)


def is_for_of(frame: FrameType) -> bool:
    """Whether a frame begins a `for` statement, and no comprehension, over what it has."""
    code = frame.f_code.co_code[frame.f_lasti :]
    first, *after = [dis.opname[op] for op in code[: 2 * (1 + MAX_PREFIXED) : 2]]
    following = next((op for op in after if op != "EXTENDED_ARG"), "")
    is_begun = first == "GET_ITER" and following == "FOR_ITER"
    return is_begun and info_of(frame.f_code).after(frame.f_lasti).is_clean
