"""Abstract text: a `str` whose content is markers, with plain text around them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NoReturn, Self

from sgc.core.markers import has_marker
from sgc.core.places import is_ours
from sgc.core.stops import DECIDE, IN_A_TOOL, INTERPRET, stop
from sgc.core.symbols import has_symbol, symbol_in
from sgc.ir import types
from sgc.tracing.kinds.text_types import domain
from sgc.tracing.values.abstract_turns import is_for_of
from sgc.tracing.values.computing import (
    attempted,
    computed,
    formatted_by,
    symbol_of,
    whole,
)
from sgc.tracing.values.recorder import Recorder
from sgc.tracing.values.text_methods import METHODS, kept_names, refused_method

MAX_REPEATED = 100  # times that a text is written out, part by part


class AbstractText(str):
    """Text known only at run time: markers, with plain text around them."""

    __slots__ = ("_looked_up", "session")

    session: Recorder
    # The text decided on for a look-up in a dict, and the place of that look-up.
    _looked_up: tuple[str, int, int] | None

    def __new__(cls, content: str, session: Recorder) -> AbstractText:
        text = super().__new__(cls, content)
        text.session = session
        text._looked_up = None
        return text

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self) if is_ours(1) else str

    # -- what keeps the marker --------------------------------------------------------------

    def _joined(self, *parts: str) -> AbstractText:
        return AbstractText("".join(str.__str__(part) for part in parts), self.session)

    def __add__(self, other: Any) -> Any:
        return self._joined(self, other) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return self._joined(other, self) if isinstance(other, str) else NotImplemented

    def __format__(self, spec: str) -> str:
        if has_marker(spec):
            return formatted_by(self.session, self, spec)  # type: ignore[no-any-return]
        if not spec:
            # The text itself, so that a lone f"{x}" stays abstract; a longer f-string copies
            # the marker.
            return self
        format("", spec)  # raises Python's own error
        return AbstractText(self.session.formatted(self, spec), self.session)

    def __str__(self) -> str:
        return self

    def __repr__(self) -> str:
        shown: str = computed(self.session, "repr", self)
        return shown

    def __mul__(self, times: Any) -> Any:
        if isinstance(times, int) and not has_symbol(times) and times <= MAX_REPEATED:
            return self._joined(*[self] * times)
        return computed(self.session, "repeat", self, times) if _is_whole(times) else NotImplemented

    __rmul__ = __mul__

    # -- comparisons ------------------------------------------------------------------------

    def __eq__(self, other: object) -> Any:
        if self._looked_up is not None and self._looked_up[1:] == _caller():
            return self._looked_up[0] == other
        return self._compared("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("ne", other)

    def _compared(self, fn: str, other: object) -> Any:
        if isinstance(other, str):
            return computed(self.session, fn, self, other)
        return NotImplemented  # the other object's class may compare them

    def __lt__(self, other: Any) -> Any:
        return self._compared("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("ge", other)

    def __bool__(self) -> bool:
        return bool(computed(self.session, "truth", self))

    # -- look-ups ---------------------------------------------------------------------------

    def __hash__(self) -> int:
        """Decides which of its options the text is, because Python's look-ups call only this."""
        symbol = symbol_of(self)
        options = domain(symbol, self.session) if symbol is not None else None
        if options is None:
            stop(
                f"{self.shown()} is looked up in a dict or set",
                hint="wrap the dict, sgc.table({…})[x]; for a set, write `x in [ … ]`; or "
                + INTERPRET,
            )
        found = decided(self, options)
        self._looked_up = (found, *_caller())
        return hash(found)

    @property
    def as_key(self) -> str | None:
        """The option that a look-up has decided the text to be; None if no look-up has."""
        return None if self._looked_up is None else self._looked_up[0]

    def __contains__(self, part: Any) -> bool:
        if not isinstance(part, str):
            raise TypeError(
                f"'in <string>' requires string as left operand, not {type(part).__name__}"
            )
        return bool(computed(self.session, "in", part, self))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return sliced(self.session, self, key, types.TEXT)
        if not _is_whole(key):
            return ""[key]  # raises Python's own error
        return attempted(
            self.session, "item", self, whole(key), type_=types.TEXT, errors=("IndexError",)
        )

    # -- what stops the trace ---------------------------------------------------------------

    def shown(self) -> str:
        """The text for error messages, with the names of values in braces."""
        return self.session.shown(self)

    def __iter__(self) -> Iterator[str]:
        if is_for_of(sys._getframe(1)):
            return self.session.characters(self)
        stop(
            f"the characters of {self.shown()}, known only at run time, are needed while tracing",
            hint="write `for c in text:`, or use methods of the whole text; or " + INTERPRET,
        )

    def __len__(self) -> NoReturn:
        stop(
            f"the length of {self.shown()} is needed by code outside the program's module",
            hint="call len() in the program's own module; or " + INTERPRET,
        )

    def _needs_value(self, *args: Any) -> NoReturn:
        bind = ""
        if self.session.is_parameter(self.shown()):
            bind = f"give its value when compiling, --bind {self.shown()}=VALUE; or "
        stop(
            f"{self.shown()} is needed as a number by code outside the program's module",
            hint="call int() or float() in the program's own module; " + bind + INTERPRET,
        )

    __int__ = __float__ = __complex__ = __index__ = _needs_value

    def __mod__(self, values: Any) -> NoReturn:
        stop("a template known only at run time cannot be filled", DECIDE)

    def __copy__(self) -> Self:
        return self  # it never changes

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        stop("a value known only at run time cannot be pickled", IN_A_TOOL)


def decided(text: AbstractText, options: tuple[str, ...]) -> str:
    """The option that a text equals, by a decision for each but the last."""
    for option in options[:-1]:
        if computed(text.session, "eq", text, option):
            return option
    return options[-1]


def sliced(session: Recorder, value: Any, key: slice, type_: types.Type) -> Any:
    """The abstract slice of a text or a list; its ends may be abstract."""
    ends = [key.start, key.stop, key.step]
    if not all(end is None or _is_whole(end) for end in ends):
        return ""[key]  # raises Python's own error
    if key.step is not None and not has_symbol(key.step):
        ""[:: key.step]
        return computed(session, "slice", value, *map(whole, ends), type_=type_)
    slicing = computed if key.step is None else _slicing
    return slicing(session, "slice", value, *map(whole, ends), type_=type_)


def _slicing(session: Recorder, fn: str, *args: Any, type_: types.Type) -> Any:
    return attempted(session, fn, *args, type_=type_, errors=("ValueError",))


def _is_whole(value: Any) -> bool:
    """Whether Python takes a value as a whole number, abstract ones included."""
    symbol = symbol_in(value)
    if symbol is not None:
        return symbol.type.kind in (types.Kind.INT, types.Kind.BOOL)
    return hasattr(value, "__index__") and not isinstance(value, str)


def _caller() -> tuple[int, int]:
    """The program's current instruction, which is the same for a look-up's hash and its `==`."""
    frame = sys._getframe(2)
    return id(frame), frame.f_lasti


def _fill() -> None:
    """Sets the recorded methods; every other method, also of later Pythons, stops the trace."""
    for name, method in METHODS.items():
        setattr(AbstractText, name, method)
    for name in dir(str):
        if name not in kept_names and name not in vars(AbstractText):
            setattr(AbstractText, name, refused_method(name))


_fill()
