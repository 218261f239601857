"""Attributes and methods of objects, where converted code evaluates a call's arguments first.

Python looks up the method before it evaluates the arguments: if an argument replaces the method,
Python calls the old one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import attrgetter
from types import MemberDescriptorType
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.tracing.values.abstract_record import AbstractRecord
from sgc.tracing.values.json.abstract_object import AbstractObject
from sgc.tracing.values.tool_failures import TracedTold, as_read


def attribute(value: Any, name: str) -> Any:
    """An attribute of a value, also if abstract values use its name for themselves."""
    if isinstance(value, AbstractRecord):
        return value.attribute(name)
    if isinstance(value, AbstractObject):  # it may be an object of the user's, with any attributes
        value.needs_type()
    if isinstance(value, TracedTold):  # what the trace itself keeps there is not the program's
        return as_read(value, name)
    return getattr(value, name)


def owner(value: Any) -> Any:
    """The object whose attribute of such a name is read and set."""
    if isinstance(value, AbstractObject):
        value.needs_type()
    return value


def getting_attributes(getter: attrgetter[Any]) -> Callable[[Any], Any]:
    """An `attrgetter` that reads attributes of abstract values as a program's line does."""
    names = getter.__reduce__()[1]

    def get(value: Any) -> Any:
        found = [reduce(attribute, name.split("."), value) for name in names]
        return found[0] if len(found) == 1 else tuple(found)

    return get


_HEAP_TYPE = 1 << 9


def own(value: Any, name: str) -> Any:
    """An object's own attribute, not its class's. None if there is none, and for Python's own
    types, whose methods cannot be replaced."""
    if isinstance(value, type) and not value.__flags__ & _HEAP_TYPE:
        return None
    slot = getattr(type(value), name, None)
    try:
        if type(slot) is MemberDescriptorType:
            return slot.__get__(value)
        return object.__getattribute__(value, "__dict__").get(name)
    except AttributeError:
        return None


def unchanged(value: Any, name: str, before: Any) -> Any:
    """The object; stops the trace if its method was replaced since it was looked up."""
    session = current_session()
    if session is not None and session.is_tracing and own(value, name) is not before:
        stop(
            f"an argument of {name}(…) replaces {name}, which Python has looked up before",
            hint="evaluate the argument on a line before the call; or " + INTERPRET,
        )
    return value
