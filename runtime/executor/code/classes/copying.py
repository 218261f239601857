"""Copies of instances of the classes of a graph's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgc.runtime.executor.code.classes.guards import blank
from sgc.runtime.executor.code.fuel import NotAllowed, charge, current
from sgc.runtime.executor.interface.records import Record, held_by, held_parts, is_fixed

Memo = dict[int, Any]


def copied_instance(value: Any, record: Record, memo: Memo, copied: Callable[[Any], Any]) -> Any:
    """A deep copy of an instance. copied: copies a part of it, and notes the copy in the memo."""
    check_class(record)
    if is_fixed(value):
        for each in held_parts(record, value):
            copied(each)  # only to check the classes in it
        memo[id(value)] = (value, value)
        return value
    if record.is_tuple:
        made = tuple.__new__(type(value), [copied(item) for item in tuple.__iter__(value)])
        memo[id(value)] = (value, made)
    else:
        made = blank(type(value), record)
        memo[id(value)] = (value, made)
    if record.is_error:
        made.args = copied(value.args)
    held = held_by(value)
    if held:
        vars(made).update((name, copied(item)) for name, item in held.items())
    return made


def check_class(record: Record) -> None:
    """Refuses an object whose class only has the same name as a class of the present code."""
    if current().named.get(record.name, record.key) != record.key:
        raise NotAllowed(
            f"an argument is an object of another class {record.name} than the code's",
            hint=f"give the class {record.name} the same text, or another name",
        )


def shallow_copy(value: Any, record: Record) -> Any:
    """A new instance with the same attribute values."""
    if is_fixed(value):
        return value
    held = held_by(value)
    charge(4 + len(held))
    if record.is_tuple:
        made = tuple.__new__(type(value), tuple.__iter__(value))
    else:
        made = blank(type(value), record)
    if record.is_error:
        made.args = value.args
    if held:
        vars(made).update(held)
    return made
