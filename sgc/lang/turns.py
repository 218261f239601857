"""Loops with a bounded number of turns, which compile to a loop whatever the number is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sgc.core.places import here
from sgc.core.session import current_session
from sgc.errors import UsageError


class turns:
    """`for turn in sgc.turns(8)`: counts from 0 to 7; compiled, `turn` is known at run time."""

    def __init__(self, n: Any) -> None:
        session = current_session()
        if session is None or not session.is_abstract(n):
            is_count = isinstance(n, int) and not isinstance(n, bool) and n >= 0
            if not is_count:
                raise UsageError(f"turns takes a whole number from 0 on, found {n!r}", where=here())
        self._n = n

    def __iter__(self) -> Iterator[Any]:
        session = current_session()
        if session is None or not session.is_tracing:
            return iter(range(self._n))
        return session.counted(self._n)

    def __repr__(self) -> str:
        return f"sgc.turns({self._n!r})"
