"""What is known of a class in a graph's code, from which a class of Python's is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sgc.errors import ProgramError

# The attribute of such a class, and of its instances, that holds its record: no name of code.
MARK = "__sgc_record__"


@dataclass(slots=True, eq=False)
class Record:
    """key: the text of the class and of all that it uses; load: runs that text for a run, and
    returns the class there; native: the first of its bases that is Python's; names: its attributes
    that code may use; slots: the only attributes that may be set, if they are restricted; walked,
    shown: the fields that generated methods traverse, and that a generated `repr` shows.
    """

    name: str
    key: str
    load: Callable[[Any], Bound]
    native: Any = object
    names: frozenset[str] = frozenset()
    walked: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    slots: frozenset[str] | None = None
    is_tuple: bool = False
    is_error: bool = False
    is_frozen: bool = False
    is_enum: bool = False
    is_model: bool = False


@dataclass(slots=True, eq=False)
class Bound:
    """A class in one run. methods: closures of the run; values: its attributes, made in the run."""

    kind: Any
    methods: dict[str, Callable[..., Any]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


def record_of(kind: type) -> Record | None:
    """The record of a class, if it is one of a graph's code."""
    found: Record | None = getattr(kind, MARK, None)
    return found


def held_by(value: Any) -> dict[str, Any]:
    """An instance's own attributes; a NamedTuple has none."""
    return getattr(value, "__dict__", None) or {}


def walked_parts(record: Record, value: Any) -> list[Any]:
    """The parts that a comparison or `repr`, unless code defines it, traverses."""
    parts = list(tuple.__iter__(value)) if record.is_tuple else []
    if record.is_error:
        parts += value.args
    held = held_by(value)
    return [*parts, *(held[name] for name in record.walked if name in held)]


def shown_parts(record: Record, value: Any) -> list[Any]:
    """The parts that a `repr`, unless code defines it, shows."""
    parts = list(tuple.__iter__(value)) if record.is_tuple else []
    held = held_by(value)
    return [*parts, *(held[name] for name in record.shown if name in held)]


def held_parts(record: Record, value: Any) -> list[Any]:
    """All that an instance holds; nothing for a member of an Enum, which all runs share."""
    if record.is_enum:
        return []
    parts = list(tuple.__iter__(value)) if record.is_tuple else []
    if record.is_error:
        parts += value.args
    return [*parts, *held_by(value).values()]


_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})


def is_fixed(value: Any) -> bool:
    """Whether nothing can change a value: all runs may share it."""
    kind = type(value)
    if kind in _ATOMS:
        return True
    if kind is tuple or kind is frozenset:
        return all(map(is_fixed, value))
    record = record_of(kind)
    if record is None or not (record.is_tuple or record.is_frozen or record.is_enum):
        return False
    return all(map(is_fixed, held_parts(record, value)))


def refuse_leaving(value: Any) -> Any:
    """Returns a value that leaves the program; raises ProgramError if it holds an instance, whose
    class only the graph's code has."""
    left, seen = [value], set[int]()
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if record_of(type(each)) is not None:
            raise ProgramError(
                f"an object of {type(each).__name__} leaves the program; compiled, it is of "
                "another class",
                hint="return a dict or tuple of its attributes, or run it with --interpret",
            )
        if isinstance(each, dict):
            left += [*each, *each.values()]
        elif isinstance(each, (list, tuple, set, frozenset)):
            left += each
    return value
