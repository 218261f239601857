"""Bounds on the turns of loops: `sgc.turns`, and `max_turns` of a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sgc.core.places import here
from sgc.core.session import current_session
from sgc.errors import TurnsExceeded, UsageError


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


def turn(n: Any) -> Any:
    """Counts one more turn of a loop in which `max_turns` allows some; converted code calls it
    first in each turn. n: the turns before. Raises TurnsExceeded."""
    session = current_session()
    most = None if session is None else session.stack.max_turns
    if most is None:  # a function made in the program, which runs without it
        return n
    n = n + 1
    if n < most + 1:
        return n
    raise TurnsExceeded(f"a loop goes on beyond max_turns={most}", where=here())
