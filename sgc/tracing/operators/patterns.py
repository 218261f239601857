"""The patterns of `match` on a dict or an object, also on a value out of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgc.core.stops import INTERPRET, stop
from sgc.tracing.operators.attributes import attribute
from sgc.tracing.operators.calls import KNOWING
from sgc.tracing.operators.live.patterns import mapping_parts, object_parts
from sgc.tracing.pieces.text.library import pythons
from sgc.tracing.values.abstract import AbstractJson
from sgc.tracing.values.live.abstract_live import AbstractLive

# The types whose pattern has one part, the value itself.
_WHOLE = (bool, dict, float, int, list, str, tuple)
_MISSING = object()


def keyed_parts(value: Any, *keys: Any) -> tuple[list[Any], ...]:
    """The values of these keys, in a tuple; an empty tuple for a dict without one, or no dict."""
    if type(value) is AbstractLive:
        return mapping_parts(value, keys)
    if isinstance(value, AbstractJson):
        if not value.is_a(dict):
            return ()
        found = []
        for key in keys:
            if key not in value:
                return ()
            found.append(value[key])
        return (found,)
    if not isinstance(value, Mapping):
        return ()
    found = [value.get(key, _MISSING) for key in keys]
    return () if any(each is _MISSING for each in found) else (found,)


def class_parts(value: Any, kind: Any, count: int, *names: str) -> tuple[list[Any], ...]:
    """The parts of a value that a class pattern takes, in a tuple; an empty tuple for a value of
    another class or without an attribute. count: the number of positional parts.

    Raises TypeError, as Python does, if the class has fewer `__match_args__`.
    """
    if type(value) is AbstractLive:
        return object_parts(value, pythons(kind), count, names)
    is_whole = any(kind in (each, KNOWING.get(each)) for each in _WHOLE)
    if not is_whole and not isinstance(kind, type):
        stop(
            f"`case {getattr(kind, '__name__', kind)}(…)` inspects a value by its class",
            hint="write `if isinstance(v, …): …`; or " + INTERPRET,
        )
    if not KNOWING[isinstance](value, kind):
        return ()
    if is_whole and count == 1:
        return ([value],)
    positional = () if is_whole else getattr(kind, "__match_args__", ())
    if count > len(positional):
        plural = "" if len(positional) == 1 else "s"
        raise TypeError(
            f"{kind.__name__}() accepts {len(positional)} positional sub-pattern{plural} "
            f"({count} given)"
        )
    try:
        return ([attribute(value, name) for name in (*positional[:count], *names)],)
    except AttributeError:
        return ()
