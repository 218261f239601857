"""Names of `dataclasses`, `enum` and `typing`."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple

from sgc.runtime.executor.code.fuel import NotAllowed, charge
from sgc.runtime.executor.code.methods.attributes import DATA, guarded
from sgc.runtime.executor.code.walking import walked

_OPTIONS = frozenset({"default", "default_factory", "init", "repr", "hash", "compare", "kw_only"})


def _field(*args: Any, **kwargs: Any) -> Any:
    """`field(...)` of a class, which is read when the class is made."""
    charge(4)
    if not kwargs.keys() <= _OPTIONS:
        found = sorted(kwargs.keys() - _OPTIONS)[0]
        raise NotAllowed(f"field(...) takes no {found} in a graph's code")
    if "default_factory" in kwargs:
        kwargs["default_factory"] = guarded(kwargs["default_factory"])
    return dataclasses.field(*args, **kwargs)


def charge_walk(value: Any) -> None:
    """Charges a walk through a whole value."""
    for _, parts, _ in walked(value):
        charge(8 + len(parts))


def _as_data(name: str) -> Any:
    real = getattr(dataclasses, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        for each in args[:1]:
            charge_walk(each)
        return real(*args, **{name: guarded(value) for name, value in kwargs.items()})

    return function


def _replace(*args: Any, **kwargs: Any) -> Any:
    charge(8)
    return dataclasses.replace(*args, **kwargs)


def _fields(*args: Any) -> Any:
    charge(8)
    return dataclasses.fields(*args)


def only_above(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotAllowed(f"{name} is for class statements alone in a graph's code")

    return refuse


DATACLASSES: dict[str, Any] = {
    "asdict": _as_data("asdict"),
    "astuple": _as_data("astuple"),
    "dataclass": only_above("dataclass"),
    "field": _field,
    "fields": _fields,
    "replace": _replace,
}
ENUM: dict[str, Any] = {
    **{name: only_above(name) for name in ("Enum", "IntEnum", "StrEnum")},
    "auto": enum.auto,
}
TYPING: dict[str, Any] = {NamedTuple.__name__: only_above("NamedTuple")}
DATA[dataclasses.Field] = frozenset({"name"})
