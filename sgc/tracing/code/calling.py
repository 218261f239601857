"""Which functions converted code calls where its expressions do not name them: `table[key](x)`,
`partial(f, 1)(x)`. The operator that looks at each callee notes it at its instruction.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from functools import partial
from types import FrameType, FunctionType, MethodType
from typing import Any

from sgc.core.session import Session, current_session
from sgc.lang.definition import Definition
from sgc.lang.tools import Tool


class Calls:
    """The functions that a run's frames are about to call, by the instruction that looks at them.

    Functions alone: the object of a method must not get another reference.
    """

    def __init__(self) -> None:
        self._found: dict[int, dict[int, FunctionType | None]] = {}
        self._last: tuple[int, Any] = (0, None)

    def note(self, frame: FrameType, function: Any) -> None:
        noted = self._found.setdefault(id(frame), {})
        noted.pop(frame.f_lasti, None)  # so that the latest is the last
        is_plain = type(function) is FunctionType
        is_told = is_plain or isinstance(function, (type, Tool))
        self._last = (id(frame), function if is_told else None)
        noted[frame.f_lasti] = function if is_plain else python_of(function)

    def last(self, frame: FrameType) -> Any:
        """The plain function, class or tool that a frame has looked at, if none has looked at
        another since."""
        of, function = self._last
        return function if of == id(frame) else None

    def at(self, frame: FrameType, is_there: Callable[[int], bool]) -> FunctionType | None:
        """What an instruction has looked at last, in a frame that still runs."""
        noted = self._found.get(id(frame), {})  # an ended frame's are older, if any
        return next((noted[offset] for offset in reversed(noted) if is_there(offset)), None)


def note_call(session: Session, frame: FrameType, function: Any) -> None:
    """Notes what a frame of converted code is about to call, before its arguments."""
    calls = getattr(session, "calls", None)
    if isinstance(calls, Calls):
        calls.note(frame, function)


def noted_at(frame: FrameType, is_there: Callable[[int], bool]) -> FunctionType | None:
    """The function that an operator of a frame has looked at in the current trace. is_there: of an
    offset, which may be inside of the operator's instruction."""
    calls = getattr(current_session(), "calls", None)
    return calls.at(frame, is_there) if isinstance(calls, Calls) else None


def noted_last(frame: FrameType) -> Any:
    """The plain function, class or tool that a frame of the current trace has just looked at."""
    calls = getattr(current_session(), "calls", None)
    return calls.last(frame) if isinstance(calls, Calls) else None


def python_of(function: Any) -> FunctionType | None:
    """The function whose frame a call runs first, of the user's frames; of a class, its `__init__`
    if `made_by` calls it."""
    while type(function) is partial:
        function = function.func
    if isinstance(function, Definition):
        function = function.python
    if type(function) is MethodType:
        function = function.__func__
    if type(function) in (type, ABCMeta):
        function = start_of(function)
    return function if isinstance(function, FunctionType) else None


def start_of(of: type) -> FunctionType | None:
    """The `__init__` of a class of the user's; None if Python makes its objects otherwise."""
    start = getattr(of, "__init__", None)
    is_plain = type(of) in (type, ABCMeta) and getattr(of, "__new__", None) is object.__new__
    return start if is_plain and type(start) is FunctionType else None


def made_by(
    of: type,
    start: Callable[..., Any],
    begin: Callable[[type], Any] = object.__new__,
    grown: Callable[[Any, tuple[Any, ...], dict[str, Any]], None] | None = None,
) -> Callable[..., Any]:
    """What makes an object of a class by its `__init__`, or what takes the place of this. begin:
    makes it without attributes; grown: is called with what was given when `__init__` has ended."""

    def make(*args: Any, **kwargs: Any) -> Any:
        made: Any = begin(of)
        given = start(made, *args, **kwargs)
        if given is not None:
            raise TypeError(f"__init__() should return None, not '{type(given).__name__}'")
        if grown is not None:
            grown(made, args, kwargs)
        return made

    return make


def makes_first(inner: FrameType) -> bool:
    """Whether a frame is of an `__init__` whose first parameter still is the object that is made:
    it is the result of the call, which no other variable may refer to."""
    maker, code = inner.f_back, inner.f_code
    if maker is None or maker.f_code is not _MAKE or not code.co_argcount:
        return False
    return inner.f_locals.get(code.co_varnames[0]) is maker.f_locals["made"]


_MAKE = made_by(object, object.__init__).__code__
