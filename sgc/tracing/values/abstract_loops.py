"""Iterators of `for` loops whose number of turns is known only at run time."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator
from types import GeneratorType
from typing import Any, ClassVar, Protocol

from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.tracing.kinds.text_types import known_of
from sgc.tracing.values.abstract_turns import Counted, is_for_of
from sgc.tracing.values.computing import computed
from sgc.tracing.values.recorder import Recorder


class Listed(Protocol):
    """An abstract list."""

    session: Recorder
    symbol: Symbol

    def sure_item(self, index: Any) -> Any: ...


class Loop(Iterator[Any]):
    """An iterator whose state is its turn; the session notes it when a `for` begins."""

    made_by: ClassVar = ""
    _session: Recorder

    def __iter__(self) -> Iterator[Any]:
        if not is_for_of(sys._getframe(1)):
            stop(
                f"{self.made_by}() of a list known only at run time is used by no `for`",
                hint=f"write `for … in {self.made_by}(xs):`; or " + INTERPRET,
            )
        return self._session.looped(self)

    @property
    @abstractmethod
    def index(self) -> Any:
        """The number of turns before the current one."""


class Items(Loop):
    """The items of an abstract list, or `zip` of several."""

    made_by = "zip"

    def __init__(self, *lists: Listed, is_zipped: bool = False) -> None:
        session = self._session = lists[0].session
        lengths = [session.compute("len", each) for each in lists]
        n = lengths[0] if len(lengths) == 1 else computed(session, "min", *lengths, type_=types.INT)
        is_sure = all(known_of(each.symbol, session).min_items > 0 for each in lists)
        self._lists, self._is_zipped = lists, is_zipped
        self._begun = [each.symbol for each in lists]
        self._turns = Counted(session, 0, n, is_first_sure=is_sure)

    @property
    def index(self) -> Any:
        return self._turns.index

    def __next__(self) -> Any:
        if [each.symbol for each in self._lists] != self._begun:
            stop(
                "a list known only at run time is changed while a loop goes over it",
                hint="loop over a copy of it, list(xs); or " + INTERPRET,
            )
        index = next(self._turns)
        items = tuple(each.sure_item(index) for each in self._lists)
        return items if self._is_zipped else items[0]


class Backwards(Loop):
    """`reversed` of an abstract list."""

    made_by = "reversed"

    def __init__(self, items: Listed) -> None:
        self._session, self._items = items.session, items
        self._turns = Counted(self._session, 0, self._session.compute("len", items))

    @property
    def index(self) -> Any:
        return self._turns.index

    def __next__(self) -> Any:
        return self._items.sure_item(-1 - next(self._turns))


class Numbered(Loop):
    """`enumerate` of another loop."""

    made_by = "enumerate"

    def __init__(self, session: Recorder, loop: Loop, start: Any) -> None:
        self._session, self._loop, self._start = session, loop, start

    @property
    def index(self) -> Any:
        return self._loop.index

    def __next__(self) -> tuple[Any, Any]:
        item = next(self._loop)
        is_from_0 = type(self._start) is int and self._start == 0
        return self.index if is_from_0 else self.index + self._start, item


class NumberedItems(Loop):
    """`enumerate` of a generator; the number is abstract after the loop's turns merge."""

    made_by = "enumerate"

    def __init__(self, session: Recorder, generator: GeneratorType[Any, Any, Any], start: Any):
        self._session, self.generator, self._start = session, generator, start
        self._index: Any = None

    def __iter__(self) -> Iterator[Any]:
        is_loop = is_for_of(sys._getframe(1))
        plain = enumerate(self.generator, self._start)
        return self._session.looped(self) if is_loop else plain

    @property
    def index(self) -> Any:
        return self._index

    def __next__(self) -> tuple[Any, Any]:
        item = next(self.generator)
        self._index = self._start if self._index is None else self._index + 1
        return self._index, item
