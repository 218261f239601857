"""`range` with abstract bounds: a loop over it is a loop of the graph."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from sgc.core.stops import INTERPRET, stop
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_loops import Loop
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.abstract_turns import Counted, is_for_of
from sgc.tracing.values.recorder import Recorder


class AbstractRange:
    """The numbers from `start` up or down to, but without, `end`; `step` is not 0."""

    def __init__(self, session: Recorder, start: Any, end: Any, step: Any, is_up: bool) -> None:
        self._session = session
        self._start, self._end, self._step, self._is_up = start, end, step, is_up

    def __iter__(self) -> Iterator[Any]:
        if not is_for_of(sys._getframe(1)):
            self._needs_numbers()
        return self._session.looped(self.counted())

    def counted(self) -> Counted:
        """The numbers, for a loop over the range or beside another iterable."""
        return Counted(self._session, self._start, self._end, self._step, self._is_up)

    def __reversed__(self) -> AbstractRange:
        step = self._step
        if isinstance(step, AbstractNumber) or abs(step) != 1:
            self._needs_numbers()
        start, end = self._end - step, self._start - step
        return AbstractRange(self._session, start, end, -step, not self._is_up)

    def _needs_numbers(self, *args: Any) -> NoReturn:
        name = next(
            self._session.name_of(each.symbol)
            for each in (self._end, self._start, self._step)
            if isinstance(each, AbstractNumber)
        )
        bind = f"give its value when compiling, --bind {name}=N; or "
        stop(
            f"the numbers of a range to {name}, known only at run time, are needed while tracing",
            hint="loop over it, `for i in range(n):`; or "
            + (bind if self._session.is_parameter(name) else "")
            + INTERPRET,
        )

    __len__ = __bool__ = __getitem__ = __contains__ = index = count = _needs_numbers
    __eq__ = __hash__ = _needs_numbers  # type: ignore[assignment]


class Numbers(Loop):
    """The numbers of a known `range`; the current one is abstract after the loop's turns merge."""

    made_by = "range"

    def __init__(self, session: Recorder, numbers: range) -> None:
        self._session, self._numbers = session, numbers
        self._index: Any = None

    def __iter__(self) -> Iterator[Any]:
        """Iterates Python's own numbers where paths cannot merge, as in a library's block."""
        is_loop = is_for_of(sys._getframe(1))
        return self._session.looped(self) if is_loop else iter(self._numbers)

    @property
    def index(self) -> Any:
        return self._index

    def __next__(self) -> Any:
        numbers = self._numbers
        following = numbers.start if self._index is None else self._index + numbers.step
        is_one = following < numbers.stop if numbers.step > 0 else following > numbers.stop
        if not is_one:
            raise StopIteration
        self._index = following
        return following


def range_of(*args: Any) -> Any:
    """`range`, also of abstract numbers."""
    numbers = [_number(each) for each in args]
    found = next((each for each in numbers if isinstance(each, AbstractNumber)), None)
    if found is None or len(numbers) > 3:
        return range(*args)  # raises Python's own error
    start, end, step = (0, *numbers, 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    if step == 0:  # a decision, if it is abstract
        return range(0, 0, 0)  # raises Python's own error
    return AbstractRange(found.session, start, end, step, is_up=bool(step > 0))


def _number(value: Any) -> Any:
    """A whole number, plain or abstract; raises Python's own error for anything else."""
    if isinstance(value, AbstractNumber) and value.python is not float:
        return value
    stands_for = value.python() if isinstance(value, AbstractNumber) else value
    return operator.index([] if isinstance(value, AbstractList) else stands_for)  # type: ignore[arg-type]
