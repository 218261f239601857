"""The loops of the language while they are traced: what they count is an abstract number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sgc.ir import types

if TYPE_CHECKING:
    from sgc.tracing.tracer import TraceSession


class Counted(Iterator[Any]):
    """Counts from 0 to a number that may be abstract; every turn but a sure first is a test."""

    def __init__(self, session: TraceSession, n: Any) -> None:
        self._session = session
        self._n = n
        self._index: Any = None

    def __next__(self) -> Any:
        session = self._session
        if self._index is None:
            self._index = session.compute("int", 0)
            is_sure = isinstance(self._n, int)
            if is_sure and self._n == 0:
                raise StopIteration
        else:
            self._index = session.compute("add", self._index, 1, type_=types.INT)
            is_sure = False
        if not is_sure and not session.compute("lt", self._index, self._n):
            raise StopIteration
        return self._index
