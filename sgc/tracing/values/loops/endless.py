"""`cycle`, `count` and `repeat` while they are traced, and the functions that take their items in
step with lists: `zip`, `islice` and `enumerate`.

Each iterator counts its items in an attribute. The count may be a value of the graph after the
turns of a loop merge.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from operator import is_
from typing import Any

from sgc.core.stops import INTERPRET, stop
from sgc.ir.types import INT
from sgc.tracing.values.abstract_loops import Loop
from sgc.tracing.values.abstract_turns import is_for_of
from sgc.tracing.values.recorder import Recorder

Picked = Callable[[Any, Any], Any]


class Endless(Loop):
    """An iterator of Python's own; `next` may take its items too."""

    def __iter__(self) -> Iterator[Any]:
        return self._session.looped(self) if is_for_of(sys._getframe(1)) else self


class Cycle(Endless):
    """`cycle` of a text, tuple or list. picked: gives the item at a number that is among them."""

    made_by = "cycle"

    def __init__(self, session: Recorder, items: Any, picked: Picked) -> None:
        self._session, self._picked = session, picked
        self._begun: Any = tuple(items) if type(items) is list else getattr(items, "symbol", None)
        self._at: Any = 0
        self._held, self._is_filled = (items,), (False,)  # in a tuple, nothing is widened

    @property
    def index(self) -> Any:
        return self._at

    def __next__(self) -> Any:
        (items,) = self._held
        self._refuse_changed(items)
        n = items.n_items() if hasattr(type(items), "sure_item") else len(items)
        if not self._is_filled[0] and not n > 0:
            raise StopIteration
        self._is_filled = (True,)
        item = self._picked(items, self._at)
        following = self._at + 1
        is_known = type(n) is int and type(following) is int
        self._at = (
            following % n if is_known else self._session.compute("mod", following, n, type_=INT)
        )
        return item

    def _refuse_changed(self, items: Any) -> None:
        """Stops the trace if the list has changed: Python keeps the items of the first round."""
        if type(items) is list:
            is_same = len(items) == len(self._begun) and all(map(is_, items, self._begun))
        else:
            is_same = getattr(items, "symbol", None) == self._begun
        if not is_same:
            stop(
                "a list is changed after cycle() of it was made",
                hint="give it a copy, cycle(list(xs)); or " + INTERPRET,
            )


class Count(Endless):
    """`count` of whole numbers."""

    made_by = "count"

    def __init__(self, session: Recorder, start: Any, step: Any) -> None:
        self._session, self._at, self._step = session, start, step

    @property
    def index(self) -> Any:
        return self._at

    def __next__(self) -> Any:
        found = self._at
        self._at = found + self._step
        return found


class Repeat(Endless):
    """`repeat` of one object."""

    made_by = "repeat"

    def __init__(self, session: Recorder, item: Any) -> None:
        self._session, self._item = session, item

    @property
    def index(self) -> Any:
        return 0

    def __next__(self) -> Any:
        return self._item


class Stepping(Loop):
    """A loop whose turns are counted in an attribute."""

    def __init__(self, session: Recorder) -> None:
        self._session = session
        self._at: Any = 0

    @property
    def index(self) -> Any:
        return self._at - 1

    def __next__(self) -> Any:
        item = self._item(self._at)
        self._at = self._at + 1
        return item

    @abstractmethod
    def _item(self, at: Any) -> Any:
        """The item of a turn."""


class Sequential(Stepping):
    """The items of a text, tuple, list or range that is known while tracing."""

    def __init__(self, session: Recorder, items: Sequence[Any], picked: Picked) -> None:
        super().__init__(session)
        self._held, self._picked = (items,), picked  # in a tuple, the list is never widened

    def _item(self, at: Any) -> Any:
        (items,) = self._held
        if not at < len(items):
            raise StopIteration
        return self._picked(items, at)


class Limited(Stepping):
    """`islice` of another loop, up to a number that may be known only at run time."""

    made_by = "islice"

    def __init__(self, session: Recorder, loop: Loop, end: Any) -> None:
        super().__init__(session)
        self._loop, self._end = loop, end

    def _item(self, at: Any) -> Any:
        if not at < self._end:
            raise StopIteration
        return next(self._loop)


class Together(Stepping):
    """`zip` of loops, which takes an item of each in turn. made_by: the called function's name."""

    def __init__(self, session: Recorder, loops: Sequence[Any], made_by: str = "zip") -> None:
        super().__init__(session)
        self._loops, self.made_by = tuple(loops), made_by

    def _item(self, at: Any) -> tuple[Any, ...]:
        return tuple([next(each) for each in self._loops])
