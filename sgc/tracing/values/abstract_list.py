"""Abstract lists: lists whose length is known only at run time."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn

from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.tracing.values.abstract_loops import Backwards, Items
from sgc.tracing.values.abstract_text import sliced
from sgc.tracing.values.abstract_turns import is_for_of
from sgc.tracing.values.computing import attempted, computed, is_ours, whole
from sgc.tracing.values.recorder import Recorder
from sgc.tracing.values.text_types import known_of


class AbstractList:
    """A list whose length is known only at run time; it cannot be changed."""

    __slots__ = ("session", "symbol")

    def __init__(self, symbol: Symbol, session: Recorder) -> None:
        self.symbol = symbol
        self.session = session

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self) if is_ours(1) else list

    @property
    def item_type(self) -> types.Type:
        return self.symbol.type.item or types.JSON

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return sliced(self.session, self, key, self.symbol.type)
        index = whole(key)
        n_sure = known_of(self.symbol, self.session).min_items
        is_sure = isinstance(index, int) and -n_sure <= index < n_sure
        if is_sure:
            return computed(self.session, "item", self, index, type_=self.item_type)
        return attempted(
            self.session, "item", self, index, type_=self.item_type, errors=("IndexError",)
        )

    def __contains__(self, item: Any) -> bool:
        return bool(computed(self.session, "has", self, item))

    def __bool__(self) -> bool:
        if known_of(self.symbol, self.session).min_items:
            return True
        return bool(computed(self.session, "truth", self))

    def __eq__(self, other: object) -> Any:
        return self._compared("eq", other, False)

    def __ne__(self, other: object) -> Any:
        return self._compared("ne", other, True)

    def _compared(self, fn: str, other: object, otherwise: bool) -> Any:
        is_list = isinstance(other, (list, AbstractList))
        return computed(self.session, fn, self, other) if is_list else otherwise

    def __str__(self) -> str:
        text: str = computed(self.session, "str", self)
        return text

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        format([], spec)  # raises what Python would
        return str(self)

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        n = unpacked_by(frame)
        if n is not None:
            return iter(unpacked(self.session, self, n, self.item_type))
        if not is_for_of(frame):
            self._needs_items()
        return self.session.looped(Items(self.iterated()))

    def __reversed__(self) -> Iterator[Any]:
        return Backwards(self.iterated())

    def iterated(self) -> AbstractList:
        """The list whose items a loop over it gives."""
        return self

    def sure_item(self, index: Any) -> Any:
        """The item at an index that it has."""
        return computed(self.session, "item", self, index, type_=self.item_type)

    def _needs_items(self, *args: Any, **kwargs: Any) -> NoReturn:
        name = self.session.name_of(self.symbol)
        bind = f"give the list when compiling: --bind {name}='[…]'; or "
        stop(
            f"the items or the length of {name} are needed while tracing",
            hint="write `for x in xs:`, also over enumerate(xs), reversed(xs) or zip(xs, ys), "
            "outside of `except`; or use xs[i], len(xs), `x in xs`, sgc.join(sep, xs); or "
            + (bind if self.session.is_parameter(name) else "")
            + INTERPRET,
        )

    __len__ = __add__ = __radd__ = __mul__ = __rmul__ = _needs_items
    __lt__ = __le__ = __gt__ = __ge__ = _needs_items

    def _changed(self, *args: Any, **kwargs: Any) -> NoReturn:
        stop(
            f"{self.session.name_of(self.symbol)}, a list known only at run time, is changed",
            hint="make a list of the items you need, [xs[0], xs[1]]; or " + INTERPRET,
        )

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = extend = insert = remove = _changed
    pop = clear = sort = reverse = _changed
    count = index = copy = _needs_items

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'list'")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        stop("a value known only at run time cannot be copied or pickled")


Sequence.register(AbstractList)  # so that `case [a, b]` asks for its length, and stops


def unpacked_by(frame: FrameType) -> int | None:
    """How many items `a, b = xs` takes, if that is what the frame is doing."""
    code = frame.f_code.co_code[frame.f_lasti :][:2]
    is_unpacking = len(code) == 2 and dis.opname[code[0]] == "UNPACK_SEQUENCE"
    return code[1] if is_unpacking else None


def unpacked(session: Recorder, items: Any, n: int, type_: types.Type) -> list[Any]:
    """The items of `a, b = xs`, which must be that many."""
    attempted(session, "unpack", items, n, type_=items.symbol.type)
    return [computed(session, "item", items, index, type_=type_) for index in range(n)]
