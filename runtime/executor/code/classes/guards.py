"""Replacements for a class's methods that depend on an object's address, and for `__new__`.

Values are copied between runs, so the identity of equal objects depends on the copies.
"""

from __future__ import annotations

from typing import Any

from sgc.runtime.executor.code.classes.models import completed
from sgc.runtime.executor.code.fuel import SMALL, NotAllowed, charge, current
from sgc.runtime.executor.interface.records import MARK, Record


def _eq(self: Any, other: Any) -> Any:
    if self is other:
        return True
    if type(self) is type(other) and not current().is_live:
        name = type(self).__name__
        raise NotAllowed(
            f"code compares two objects of {name}, which has no __eq__",
            hint=f"give {name} an __eq__, or make it a dataclass",
        )
    return NotImplemented


def _hash(self: Any) -> int:
    name = type(self).__name__
    raise NotAllowed(
        f"code hashes an object of {name}, which has no __hash__ of its own",
        hint=f"give {name} an __eq__ and a __hash__, or make it a frozen dataclass",
    )


def _repr(self: Any) -> str:
    name = type(self).__name__
    raise NotAllowed(
        f"code makes a text of an object of {name}, which has no __repr__",
        hint=f"give {name} a __repr__ or a __str__, or make it a dataclass",
    )


GUARDS: dict[str, Any] = {"__eq__": _eq, "__hash__": _hash, "__repr__": _repr}
for _each in GUARDS.values():
    _each.is_code = True


def add_guards(kind: Any) -> None:
    """Adds methods that a class lacks, which refuse operations that depend on an address."""
    for name, guard in GUARDS.items():
        if getattr(kind, name) is getattr(object, name):
            setattr(kind, name, guard)


def new(kind: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The `__new__` of classes: it charges for the object."""
    charge(8 + len(args))
    native = getattr(kind, MARK).native
    if native is not object:
        check_error_args(native, args)
        return native.__new__(kind, *args, **kwargs)
    if (args or kwargs) and kind.__init__ is object.__init__:
        raise TypeError(f"{kind.__name__}() takes no arguments")
    return object.__new__(kind)


def check_error_args(native: Any, args: Any) -> None:
    """Some errors take only texts and numbers, since CPython frees their contents by recursion."""
    is_plain = native.__basicsize__ == Exception.__basicsize__
    if not is_plain and any(type(each) not in SMALL and type(each) is not str for each in args):
        raise NotAllowed(f"{native.__name__} takes texts and numbers in a graph's code")


def new_of_tuple(kind: Any) -> Any:
    """The `__new__` of a NamedTuple, charged."""
    real = kind.__new__

    def new(kind: Any, /, *args: Any, **kwargs: Any) -> Any:
        charge(6 + len(args))
        return real(kind, *args, **kwargs)

    return new


def blank(kind: Any, record: Record) -> Any:
    """An object without attributes, for which `__init__` is not called."""
    charge(8)
    made = record.native.__new__(kind)
    return completed(made) if record.is_model else made
