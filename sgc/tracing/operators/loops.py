"""Operators on the iterables of loops."""

from __future__ import annotations

import builtins
import collections
import math
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType, FunctionType, GeneratorType, ModuleType
from typing import Any

from sgc.core.places import is_users, is_users_own
from sgc.core.session import Stream, current_session
from sgc.lang.definition import Definition
from sgc.lang.group import ProgramStateGroup
from sgc.lang.tools import Tool
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.operators.calls import KNOWING
from sgc.tracing.paths.walked import is_walked, walked
from sgc.tracing.snapshots.objects import is_programs
from sgc.tracing.values.abstract import AbstractList, is_abstract
from sgc.tracing.values.abstract_loops import Loop
from sgc.tracing.values.abstract_range import AbstractRange, Numbers
from sgc.tracing.values.live.abstract_live import AbstractLive
from sgc.tracing.values.open_fork import OpenFork


def loops(over: Any, function: Any = None, *called: str, is_nested: bool = False) -> bool:
    """Whether a comprehension runs as a loop, because its items or their number are known only at
    run time. function: what the program calls as `any`, `all` or `next`; called: the names that the
    generator of a `next` calls; the `next` is a loop only if one of them asks a model; is_nested:
    whether loops inside of it may be over such items.
    """
    session: Any = current_session()
    if session is None or not session.is_tracing:
        return False
    if function is not None and function not in [
        known for each in _LOOPING for known in (each, KNOWING.get(each))
    ]:
        return False
    if type(over) is AbstractLive or (is_nested and session.sites.is_live):
        return True
    if function is builtins.next and not _asks(called, sys._getframe(1)):
        return False
    if isinstance(over, (AbstractList, AbstractRange, Loop, OpenFork)):
        return True
    if isinstance(over, ProgramStateGroup):
        return True
    if type(over) is GeneratorType:
        return _is_of_run_time(over)
    if type(over) in _OF_SEVERAL:
        return any(_is_looped(each.container) for each in walked(over))
    return _is_looped(over)


def _is_looped(over: Any) -> bool:
    return type(over) in (list, tuple) and any(map(_is_run_time, over))


_OF_SEVERAL = (builtins.zip, builtins.enumerate)
_LOOPING = (builtins.any, builtins.all, builtins.next)


def generates(over: Any, *by: Any) -> bool:
    """Whether items are taken in a loop from a generator of the program. by: the function that
    takes them, or the object whose method does; a user's function may have the same name."""
    session = current_session()
    if session is None or not session.is_tracing or type(over) is not GeneratorType:
        return False
    return _holds_run_time(over) and all(map(_is_pythons, by))


def _holds_run_time(value: Any, depth: int = 4) -> bool:
    """Whether a value is or holds one known only at run time; a generator holds its variables."""
    if _is_run_time(value):
        return True
    parts: Iterable[Any] = ()
    if type(value) is GeneratorType:
        frame = value.gi_frame
        parts = frame.f_locals.values() if frame is not None and is_users(frame) else ()
    elif type(value) in (list, tuple, set, collections.deque):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    elif is_programs(type(value)):
        parts = vars(value).values() if hasattr(value, "__dict__") else ()
    return depth > 0 and any(_holds_run_time(part, depth - 1) for part in parts)


def _is_pythons(taking: Any) -> bool:
    if isinstance(taking, ModuleType):
        return taking.__name__ in ("collections", "math", "statistics")
    if isinstance(taking, str):  # its method `join` takes the items
        return True
    return any(taking is each or taking is KNOWING.get(each) for each in _TAKING)


_TAKING = (
    builtins.next, list, tuple, set, frozenset, dict, builtins.sorted, builtins.sum, builtins.min,
    builtins.max, collections.Counter, collections.deque, math.fsum, statistics.mean,
    statistics.median,
)  # fmt: skip


def _asks(called: tuple[str, ...], frame: FrameType) -> bool:
    """Whether one of these names refers to a tool or a program."""
    found = (frame.f_locals.get(name, frame.f_globals.get(name)) for name in called)
    return any(isinstance(each, (Tool, Definition)) for each in found)


def _is_of_run_time(generator: GeneratorType[Any, Any, Any]) -> bool:
    """Whether a generator of the program has a variable that is known only at run time."""
    frame = generator.gi_frame
    return frame is not None and is_users(frame) and any(map(is_abstract, frame.f_locals.values()))


def _is_run_time(value: Any) -> bool:
    return is_abstract(value) or isinstance(value, Stream) or type(value) is EndedState


def gone_over(over: Any) -> Any:
    """The iterable of a `for`, wrapped so that the trace knows the turn of a `range`, or which
    container is iterated.
    """
    session: Any = current_session()
    if session is None or not session.is_tracing:
        return over
    if type(over) is range:
        return Numbers(session, over)
    own = getattr(type(over), "__iter__", None)
    if type(own) is FunctionType and is_users_own(own.__code__, own.__globals__):
        found = session.entered(own)(over)
        if not hasattr(type(found), "__next__"):
            return over  # Python raises its own error
        over = found
    if type(over) is ProgramStateGroup:
        over = over.states  # a list, whose iterator tells how far it is
    return _Told(session, over) if session.loops is not None and is_walked(over) else over


class _Told:
    """The iterable of a `for`; the trace notes it when the loop begins."""

    __slots__ = ("_over", "_session")

    def __init__(self, session: Any, over: Any) -> None:
        self._session, self._over = session, over

    def __iter__(self) -> Iterator[Any]:
        found, iterator = walked(self._over), iter(self._over)
        self._session.loops.note_walked(found, iterator)
        return iterator  # type: ignore[no-any-return]


# -- `re.sub` with a function, which is called in a loop over the matches -------------------------


@dataclass(frozen=True, slots=True)
class Substituted:
    """A call of `sub`. found: the matches in an abstract text, each replaced by the program; None
    if Python's own call replaces them; loop: the loop over the matches.
    """

    function: Any
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    found: Any
    loop: Any


def matches(function: Any, *args: Any, **keywords: Any) -> Substituted:
    """The matches that a call of `sub` with a function replaces; none if Python's own does."""
    session: Any = current_session()
    find = getattr(type(function), "found", None)
    found = None if find is None else find(function, *args, **keywords)
    if found is None:
        return Substituted(function, args, keywords, None, ())
    session.prefer_code("re.sub calls a function")
    return Substituted(function, args, keywords, found, found.matches())


def filled(made: Substituted, texts: Any) -> Any:
    """The result of a call of `sub`. texts: the function's results for the matches."""
    if made.found is None:
        return made.function(*made.args, **made.keywords)
    return made.found.filled(texts)
