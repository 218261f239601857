"""`sgc.map`: calls a program once for each item of a list, a bounded number at a time.

In an interpreted program, each call is a run of its own, within the calling run
(`interpreter/maps.py`). `tracing/maps.py` says how maps are traced.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from sgc.core.places import here, placed
from sgc.core.session import Session, Stream, current_session
from sgc.errors import ArgumentError, UsageError
from sgc.ir.limits import MAX_WIDTH
from sgc.lang.append import shown
from sgc.lang.definition import Definition

DEFAULT_WIDTH = 16


@dataclass(frozen=True, slots=True)
class MapCall:
    """A call of `sgc.map`. element: the parameter that takes the items; fixed: the other arguments;
    where: the user's line.
    """

    function: Definition
    items: Any
    width: int
    element: str
    fixed: Mapping[str, Any]
    where: str

    def arguments(self, item: Any) -> dict[str, Any]:
        """All arguments of one call by name."""
        return self.function.signature.bind((), {**self.fixed, self.element: item})

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raises ArgumentError for values that are not of an annotated parameter's type."""
        try:
            self.function.signature.check_types(arguments)
        except ArgumentError as error:
            error.where = self.where
            raise


def map(function: Any, xs: Any, /, *, width: int = DEFAULT_WIDTH, **fixed: Any) -> MappedStates:
    """Calls an sgc function once for each item of a list, at most `width` calls at a time.

    Each item is passed as the function's first parameter that is neither in `fixed` nor bound. The
    results are in the items' order: `states["name"]` and `states.returns` are lists. Special tokens
    in the calls' arguments are plain text. If calls fail, the error is that of the first failed
    call in order; the calls after it are cancelled.
    """
    session = current_session()
    if session is None:
        raise UsageError(
            "sgc.map is called outside a program",
            where=here(),
            hint="a function is run for many rows by f.run_batch",
        )
    states: MappedStates = session.map(_checked(session, function, xs, width, fixed))
    return states


def _checked(
    session: Session, function: Any, xs: Any, width: Any, fixed: Mapping[str, Any]
) -> MapCall:

    if not isinstance(function, Definition):
        raise UsageError(f"sgc.map calls an @sgc.function, found {shown(function)}", where=here())
    is_count = isinstance(width, int) and not isinstance(width, bool) and 1 <= width <= MAX_WIDTH
    if session.is_abstract(width) or not is_count:
        raise UsageError(
            f"sgc.map takes a width from 1 to {MAX_WIDTH}, found {shown(width)}", where=here()
        )
    signature = function.signature
    given = {**function.bind_arguments, **fixed}
    unknown = [name for name in fixed if name not in signature.names]
    if unknown and signature.options is None:
        raise ArgumentError(f"{function.name} has no argument {unknown[0]!r}", where=here())
    free = [
        name for name in signature.names
        if name not in given and name not in (signature.rest, signature.options)
    ]  # fmt: skip
    if not free:
        raise ArgumentError(
            f"{function.name} has no parameter that could take the items", where=here()
        )
    return MapCall(function, xs, width, free[0], given, here())


class MappedStates(ABC):
    """The results of a map's calls, in order."""

    def __getitem__(self, key: str | int) -> Any:
        """A variable's values, as a list; or one call, by its index."""
        return self.values(key) if isinstance(key, str) else self.call(key)

    @abstractmethod
    def values(self, name: str) -> Any:
        """A variable's value in each call; UnknownVariable if a call has not set it."""

    @abstractmethod
    def call(self, index: int) -> MappedState:
        """One call, by its index."""

    @property
    @abstractmethod
    def returns(self) -> Any:
        """What the calls returned, as a list."""

    @abstractmethod
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[MappedState]:
        return (self.call(index) for index in range(len(self)))


class KnownStates(MappedStates):
    """The results of calls whose streams are known."""

    def __init__(self, session: Session, states: Sequence[Stream]) -> None:
        self._session = session
        self._states = list(states)

    def values(self, name: str) -> list[Any]:
        return [self.value(index, name) for index in range(len(self._states))]

    def call(self, index: int) -> MappedState:
        return MappedState(self, range(len(self._states))[index])

    @property
    def returns(self) -> list[Any]:
        return [self.returned(index) for index in range(len(self._states))]

    def returned(self, index: int) -> Any:
        return self._session.as_value(self._session.returned(self._states[index].ret_value))

    def value(self, index: int, name: str) -> Any:
        return self._session.as_value(self._states[index][name])

    def text(self, index: int) -> Any:
        return self._session.as_value(self._states[index].text())

    def __len__(self) -> int:
        return len(self._states)


class MappedState:
    """One finished call of a map: it can be read but not extended."""

    __slots__ = ("_index", "_states")

    def __init__(self, states: Any, index: int) -> None:
        self._states = states
        self._index = index

    def __getitem__(self, name: str) -> Any:
        return self._states.value(self._index, name)

    @property
    def ret_value(self) -> Any:
        """What the function returned."""
        return self._states.returned(self._index)

    def text(self) -> Any:
        """The whole text of its stream."""
        return self._states.text(self._index)

    def __iadd__(self, other: Any) -> NoReturn:
        raise UsageError(
            "a call of sgc.map is over; its stream can be read but not extended", where=here()
        )


def plain_items(items: Any) -> list[Any]:
    """The items of a known list; raises UsageError at the user's line for anything else."""
    from sgc.runtime.executor.ops.maps import checked_items

    with placed():
        return builtins.list(checked_items(items))
