"""The attributes that a graph's code may use: a table for each type, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from sgc.runtime.executor.code.classes.access import is_own, own_class_attribute
from sgc.runtime.executor.code.fuel import NotAllowed, charge
from sgc.runtime.executor.interface.records import MARK, Record

# Methods, as functions that take the object first; data attributes; attributes of types themselves.
METHODS: dict[type, dict[str, Callable[..., Any]]] = {}
DATA: dict[type, frozenset[str]] = {}
OF_TYPES: dict[Any, dict[str, Any]] = {}
# The guarded version of a type or function, called in place of the original.
GUARDS: dict[Any, Callable[..., Any]] = {}
GUARDED: frozenset[type] = frozenset({type, type(len), type(lambda: None)})
_ERROR_DATA = frozenset(
    {"args", "colno", "doc", "end", "lineno", "msg", "name", "obj", "pos", "reason", "start",
     "value"}
)  # fmt: skip
_PLAIN_DATA = (str, bytes, int, tuple, type(None))


def attribute(of: Any, name: str) -> Any:
    """`of.name`, if the tables have it; else raises NotAllowed or AttributeError."""
    if name == "__name__" and isinstance(of, type):
        return of.__name__
    table = METHODS.get(type(of))
    if table is not None and name in table:
        return table[name].__get__(of)
    if table is None:
        record = getattr(of, MARK, None)
        if record is not None:
            return _of_own(of, record, name)
    if name in DATA.get(type(of), ()):
        return getattr(of, name)
    if isinstance(of, BaseException) and name in _ERROR_DATA:
        return _of_error(of, name)
    try:
        own = OF_TYPES.get(of)
    except TypeError:
        own = None
    if own is not None and name in own:
        return own[name]
    if isinstance(of, type) and name in METHODS.get(of, ()):
        return METHODS[of][name]
    return _missing(of, name)


def _of_own(of: Any, record: Record, name: str) -> Any:
    """An attribute of a class of the code, or of an instance of such a class."""
    if isinstance(of, type):
        return own_class_attribute(of, record, name)
    if is_own(of, record, name):
        return getattr(of, name)
    of_native = METHODS.get(record.native, {})
    if name in of_native:
        return of_native[name].__get__(of)
    if record.is_error and name in _ERROR_DATA and hasattr(of, name):
        return _of_error(of, name)
    return _missing(of, name)


def _of_error(of: BaseException, name: str) -> Any:
    value = getattr(of, name)
    if not isinstance(value, _PLAIN_DATA):
        raise NotAllowed(f"{type(of).__name__}.{name} is not allowed in a graph's code")
    return value


def _missing(of: Any, name: str) -> Any:
    kind = of if isinstance(of, type) else type(of)
    # A function of the program may have attributes that its stand-in here does not have.
    if not hasattr(kind, name) and not isinstance(of, (FunctionType, MethodType)):
        # There is no such attribute: this only raises AttributeError with Python's message.
        try:
            getattr(of, name)
        except AttributeError as error:
            # Python's own error would keep the value alive.
            raise AttributeError(str(error)) from None
    raise NotAllowed(f"{kind.__name__}.{name} is not allowed in a graph's code")


def method(of: Any, name: str) -> Callable[..., Any]:
    """The method that `of.name(...)` calls, as a function that takes the object first."""
    table = METHODS.get(type(of))
    found = table.get(name) if table is not None else None
    if found is not None:
        return found
    value = guarded(attribute(of, name))
    return lambda _of, /, *args, **kwargs: value(*args, **kwargs)


def guarded(function: Any) -> Any:
    """The guarded version of a function that code passes to C, or the function itself."""
    return GUARDS.get(function, function) if type(function) in GUARDED else function


def bounded_method(
    kind: type,
    name: str,
    before: Callable[..., Any] | None = None,
    after: Callable[[Any], Any] | None = None,
) -> Callable[..., Any]:
    """A method with limits. before: checks and charges, with the method's arguments; after: checks
    its result.
    """
    real = getattr(kind, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        charge(1)
        if before is not None and args and isinstance(args[0], kind):
            before(*args, *kwargs.values())
        result = real(*args, **kwargs)
        return result if after is None else after(result)

    return call
