"""Attributes of the classes of a graph's code, and of their instances."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

from sgc.runtime.executor.code.fuel import NotAllowed
from sgc.runtime.executor.code.iterators import drained
from sgc.runtime.executor.interface.records import Record, held_by


def check_name(name: Any) -> None:
    """Refuses a computed attribute name that reaches into Python."""
    if type(name) is str and name.startswith("__"):
        raise NotAllowed(f"the attribute {name[:40]!r} is not allowed in a graph's code")


def is_own(of: Any, record: Record, name: str) -> bool:
    """Whether an attribute belongs to an instance, or to the code's classes above it."""
    check_name(name)
    return name in record.names or name in held_by(of)


def own_class_attribute(of: Any, record: Record, name: str) -> Any:
    """`Class.name`."""
    check_name(name)
    if name not in record.names and hasattr(of, name):
        raise NotAllowed(f"{record.name}.{name} is not allowed in a graph's code")
    try:
        value = getattr(of, name)
    except AttributeError as error:
        raise AttributeError(str(error)) from None
    if hasattr(type(value), "__get__") and not isinstance(value, (FunctionType, MethodType)):
        raise NotAllowed(f"{record.name}.{name} is an attribute of instances alone")
    return guarded_make(of, value, name)


def guarded_make(of: Any, value: Any, name: str) -> Any:
    """An attribute, with a guarded `_make` for a NamedTuple: its items may be without end."""
    if name != "_make":
        return value
    return lambda iterable: value(drained(iterable))
