"""Which functions converted code calls where its expressions do not name them: `table[key](x)`,
`partial(f, 1)(x)`. The operator that looks at each callee notes the callee at its own instruction.
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

    Only functions are noted: the object of a method must not get another reference.
    """

    def __init__(self) -> None:
        self._found: dict[int, dict[int, FunctionType | None]] = {}
        self._last: tuple[int, Any] = (0, None)

    def note(self, frame: FrameType, function: Any) -> None:
        noted = self._found.setdefault(id(frame), {})
        noted.pop(frame.f_lasti, None)  # keeps the dict in the order of notes
        is_plain = type(function) is FunctionType
        is_told = is_plain or isinstance(function, (type, Tool))
        self._last = (id(frame), function if is_told else None)
        noted[frame.f_lasti] = function if is_plain else python_of(function)

    def last(self, frame: FrameType) -> Any:
        """The plain function, class or tool that a frame has looked at, if no frame has looked at
        another since."""
        of, function = self._last
        return function if of == id(frame) else None

    def at(self, frame: FrameType, is_there: Callable[[int], bool]) -> FunctionType | None:
        """The function that an instruction has last looked at, in a frame that still runs."""
        noted = self._found.get(id(frame), {})  # notes of an ended frame of this id are older
        return next((noted[offset] for offset in reversed(noted) if is_there(offset)), None)


def note_call(session: Session, frame: FrameType, function: Any) -> None:
    """Notes the function that a frame of converted code is about to call, before the arguments."""
    calls = getattr(session, "calls", None)
    if isinstance(calls, Calls):
        calls.note(frame, function)


def noted_at(frame: FrameType, is_there: Callable[[int], bool]) -> FunctionType | None:
    """The function that an operator of a frame has looked at in the current trace. is_there:
    whether an offset, perhaps inside an instruction, is the operator's."""
    calls = getattr(current_session(), "calls", None)
    return calls.at(frame, is_there) if isinstance(calls, Calls) else None


def noted_last(frame: FrameType) -> Any:
    """The plain function, class or tool that a frame of the current trace has just looked at."""
    calls = getattr(current_session(), "calls", None)
    return calls.last(frame) if isinstance(calls, Calls) else None


class LateMethod:
    """A method of an object that is known only at run time. name: under which it was looked up."""

    name: str


def python_of(function: Any) -> FunctionType | None:
    """The function of the first user's frame that a call runs; for a class, its `__init__` if
    `made_by` calls it."""
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
    """The `__init__` of a user's class; None if Python makes its objects in another way."""
    start = getattr(of, "__init__", None)
    is_plain = type(of) in (type, ABCMeta) and getattr(of, "__new__", None) is object.__new__
    return start if is_plain and type(start) is FunctionType else None


def made_by(
    of: type,
    start: Callable[..., Any],
    begin: Callable[[type], Any] = object.__new__,
    grown: Callable[[Any, tuple[Any, ...], dict[str, Any]], None] | None = None,
) -> Callable[..., Any]:
    """A function that makes an object of a class by `start`, its `__init__` or a replacement.
    begin: makes the object without attributes; grown: called with the result when `__init__` has
    ended."""

    def make(*args: Any, **kwargs: Any) -> Any:
        made: Any = begin(of)
        given = start(made, *args, **kwargs)  # raises Python's error for other arguments
        if given is not None:
            raise TypeError(f"__init__() should return None, not '{type(given).__name__}'")
        if grown is not None:
            grown(made, args, kwargs)
        return made

    return make


def makes_first(inner: FrameType) -> bool:
    """Whether a frame runs an `__init__` whose first parameter is still the object being made: the
    object is the result of the call, and no other variable may refer to it."""
    maker, code = inner.f_back, inner.f_code
    if maker is None or maker.f_code is not _MAKE or not code.co_argcount:
        return False
    return inner.f_locals.get(code.co_varnames[0]) is maker.f_locals["made"]


_MAKE = made_by(object, object.__init__).__code__
