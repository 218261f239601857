"""Methods of objects whose call waits for its arguments, which conversion evaluates before it.

Python looks the method up first: where an argument replaces it, the old one is called.
"""

from __future__ import annotations

from types import MemberDescriptorType
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.tracing.values.abstract_json import AbstractObject


def attribute(value: Any, name: str) -> Any:
    """An attribute of a value by a name that abstract values have too, for themselves."""
    if isinstance(value, AbstractObject):  # it may be an object of the user's, with any attributes
        value.needs_type()
    return getattr(value, name)


def own(value: Any, name: str) -> Any:
    """What an object itself, not its class, has under a name; None if nothing."""
    slot = getattr(type(value), name, None)
    try:
        if type(slot) is MemberDescriptorType:
            return slot.__get__(value)
        return object.__getattribute__(value, "__dict__").get(name)
    except AttributeError:
        return None


def unchanged(value: Any, name: str, before: Any) -> Any:
    """The object, whose method must not have been replaced since."""
    session = current_session()
    if session is not None and session.is_tracing and own(value, name) is not before:
        stop(
            f"an argument of {name}(…) replaces {name}, which Python has looked up before",
            hint="evaluate the argument on a line before the call; or " + INTERPRET,
        )
    return value
