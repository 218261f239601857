"""Iterators of `for` loops whose number of turns is known only at run time."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from types import GeneratorType
from typing import Any, NoReturn, Protocol

from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.tracing.values.abstract_turns import Counted, is_for_of
from sgc.tracing.values.computing import computed
from sgc.tracing.values.recorder import Recorder


class Listed(Protocol):
    """An abstract list, or an open fork."""

    session: Recorder

    @property
    def symbol(self) -> Symbol: ...

    @property
    def is_filled(self) -> bool:
        """Whether the list certainly has an item."""

    def n_items(self) -> Any: ...

    def sure_item(self, index: Any) -> Any:
        """The item at an index that is certain to exist."""

    def end_turn(self) -> None:
        """Called before the next item is taken, or found to be missing."""

    def end_loop(self, is_whole: bool) -> None:
        """Called when a loop has no next turn. is_whole: whether the loop has taken all items."""


class Loop(Iterator[Any]):
    """An iterator whose state is its turn; the session notes the iterator when a `for` begins."""

    made_by: str = ""
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

    def __init__(self, *lists: Listed, is_zipped: bool = False, is_strict: bool = False) -> None:
        session = self._session = lists[0].session
        lengths = [each.n_items() for each in lists]
        self._is_whole = all(_is_same(session, lengths[0], each) for each in lengths)
        n = lengths[0]
        if not self._is_whole:
            n = computed(session, "min", *lengths, type_=types.INT)
        is_sure = (any if self._is_whole else all)(each.is_filled for each in lists)
        self._lists, self._is_zipped, self._is_strict = lists, is_zipped, is_strict
        self._lengths = lengths
        self._begun = [each.symbol for each in lists]
        self._changed = (False,)  # in a tuple, it is never widened
        self._turns = Counted(session, 0, n, is_first_sure=is_sure)

    @property
    def index(self) -> Any:
        return self._turns.index

    @unhooked
    def __next__(self) -> Any:
        if self._is_changed():
            self._turns.end = self._n_now()
        for each in self._lists:
            each.end_turn()
        try:
            index = next(self._turns)
        except StopIteration:
            for each in self._lists:
                each.end_loop(self._is_whole)
            if self._is_strict and not self._is_whole:
                _refuse_unequal(self._lengths)
            raise
        items = tuple(each.sure_item(index) for each in self._lists)
        return items if self._is_zipped else items[0]

    def _is_changed(self) -> bool:
        """Whether the list has changed since the loop began; the loop sees such changes."""
        now = [each.symbol for each in self._lists]
        if now != self._begun:
            if len(now) > 1 or self._is_strict or now[0].type.item is None:
                _refuse_changed()
            self._begun, self._changed = now, (True,)
        return self._changed[0]

    def _n_now(self) -> Any:
        """How many turns there would be with the lists as they are now."""
        lengths = [each.n_items() for each in self._lists]
        if len(lengths) == 1:
            return lengths[0]
        return computed(self._session, "min", *lengths, type_=types.INT)


def _refuse_changed() -> NoReturn:
    stop(
        "a list known only at run time is changed while a loop goes over it",
        hint="loop over a copy of it, list(xs); or " + INTERPRET,
    )


class Iterated(Items):
    """`iter` of an abstract list: a loop and `next` take its items in turn."""

    made_by = "iter"


def _refuse_unequal(lengths: Sequence[Any]) -> None:
    """Raises the error of `zip(…, strict=True)` for unequal lists, by decisions."""
    for n, length in enumerate(lengths[1:], 2):
        before = "argument 1" if n == 2 else f"arguments 1-{n - 1}"
        if length != lengths[0]:
            how = "shorter" if length < lengths[0] else "longer"
            raise ValueError(f"zip() argument {n} is {how} than {before}")


class Mixed(Loop):
    """`zip` of several iterables, some known while tracing: its turns are traced one by one."""

    made_by = "zip"

    def __init__(self, session: Recorder, parts: Sequence[Any], is_strict: bool) -> None:
        self._session, self._parts, self._is_strict = session, tuple(parts), is_strict
        self._turn = (0,)  # in a tuple, it is never widened

    @property
    def index(self) -> Any:
        return self._turn[0] - 1

    def __next__(self) -> tuple[Any, ...]:
        (turn,) = self._turn
        listed = [each for each in self._parts if _is_listed(each)]
        for each in listed:
            each.end_turn()
        lengths = [each.n_items() if _is_listed(each) else len(each) for each in self._parts]
        if not all(turn < length for length in lengths):
            for each in listed:
                each.end_loop(is_whole=False)
            if self._is_strict:
                _refuse_unequal(lengths)
            raise StopIteration
        self._turn = (turn + 1,)
        return tuple(
            each.sure_item(turn) if _is_listed(each) else each[turn] for each in self._parts
        )


def _is_listed(part: Any) -> bool:
    return hasattr(type(part), "sure_item")


def _is_same(session: Recorder, one: Any, other: Any) -> bool:
    """Whether two numbers are equal because they are computed in the same way."""
    made = session.made
    both = made.get(one.symbol.name), made.get(other.symbol.name)
    return one.symbol == other.symbol or (both[0] is not None and both[0] == both[1])


class Backwards(Loop):
    """`reversed` of an abstract list."""

    made_by = "reversed"

    def __init__(self, items: Listed) -> None:
        self._session, self.items = items.session, items
        self._begun = items.symbol
        self._turns = Counted(self._session, 0, self._session.compute("len", items))

    @property
    def index(self) -> Any:
        return self._turns.index

    def __next__(self) -> Any:
        turn, items = next(self._turns), self.items
        if items.symbol != self._begun:
            _refuse_changed()
        return items.sure_item(-1 - turn)


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
