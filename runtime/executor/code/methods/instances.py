"""Stores of attributes, `super()`, `getattr` and the like, and `restored`."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from typing import Any

from sgc.runtime.executor.code.classes.access import check_name
from sgc.runtime.executor.code.classes.guards import blank, check_error_args
from sgc.runtime.executor.code.fuel import CONTAINERS, SMALL, NotAllowed, charge, measure
from sgc.runtime.executor.code.methods.attributes import attribute
from sgc.runtime.executor.code.methods.operators import check_shown
from sgc.runtime.executor.interface.records import MARK, Record, record_of

# Types in which Python itself refuses to store attributes.
_CLOSED = (SMALL | CONTAINERS | {str, bytes, range}) - {Counter, OrderedDict, defaultdict}


def set_attribute(of: Any, name: str, value: Any) -> None:
    """`of.name = value`."""
    record = _record_of_changed(of, name)
    if record is not None and name not in record.names and hasattr(record.native, name):
        raise NotAllowed(f"a change of {record.name}.{name} is not allowed in a graph's code")
    if record is not None and record.slots is not None and name not in record.slots:
        _refuse_new(of, name)
    charge(1)
    setattr(of, name, value)


def _refuse_new(of: Any, name: str) -> None:
    """Raises AttributeError as Python does for an object with slots."""
    kind = type(of)
    if not hasattr(kind, name):
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
    if not hasattr(type(getattr(kind, name)), "__set__"):
        raise AttributeError(f"{kind.__name__!r} object attribute {name!r} is read-only")


def delete_attribute(of: Any, name: str) -> None:
    """`del of.name`."""
    _record_of_changed(of, name)
    delattr(of, name)


def _record_of_changed(of: Any, name: str) -> Record | None:
    check_name(name)
    kind = type(of)
    record = record_of(kind)
    if (record is None and kind not in _CLOSED) or (record is not None and record.is_enum):
        shown = of.__name__ if isinstance(of, type) else kind.__name__
        raise NotAllowed(f"a change of {shown}.{name} is not allowed in a graph's code")
    return record


def super_attribute(kind: Any, of: Any, name: str) -> Any:
    """`super().name` in a method of a class."""
    mro = (of if isinstance(of, type) else type(of)).__mro__
    for each in mro[mro.index(kind) + 1 :]:
        if name not in vars(each):
            continue
        if MARK not in vars(each):
            return _of_python(each, kind, of, name)
        if name.startswith("__") and not hasattr(vars(each)[name], "is_code"):
            measure(of)  # a method that `dataclass` made
            check_shown(of)
        break
    return getattr(super(kind, of), name)


def _of_python(each: Any, kind: Any, of: Any, name: str) -> Any:
    """A method of Python's own base class."""
    is_error = issubclass(each, BaseException)
    found = getattr(super(kind, of), name)
    if name == "__init__" and is_error:

        def init(*args: Any, **kwargs: Any) -> None:
            check_error_args(record_of(kind).native, args)  # type: ignore[union-attr]
            found(*args, **kwargs)

        return init
    if name == "__init__" and each is object:
        return found
    if name in ("__str__", "__repr__") and is_error:
        measure(of)
        check_shown(of)
        return found
    raise NotAllowed(f"super().{name} of {each.__name__} is not allowed in a graph's code")


_ABSENT = object()


def get_attribute(of: Any, name: Any, default: Any = _ABSENT, /) -> Any:
    """`getattr(...)`."""
    charge(2)
    check_name(name)
    if type(name) is not str:
        raise TypeError("attribute name must be string, not " + repr(type(name).__name__))
    if default is _ABSENT:
        return attribute(of, name)
    try:
        return attribute(of, name)
    except AttributeError:
        return default


def has_attribute(of: Any, name: Any, /) -> bool:
    """`hasattr(...)`."""
    if type(name) is not str:
        raise TypeError("attribute name must be string, not " + repr(type(name).__name__))
    return get_attribute(of, name, _ABSENT_VALUE) is not _ABSENT_VALUE


_ABSENT_VALUE = object()


def put_attribute(of: Any, name: Any, value: Any, /) -> None:
    """`setattr(...)`."""
    if type(name) is not str:
        raise TypeError("attribute name must be string, not " + repr(type(name).__name__))
    set_attribute(of, name, value)


def restored(kind: Any, attributes: Any, /) -> Any:
    """An instance with these attributes and no others, for which `__init__` is not called."""
    record = record_of(kind) if isinstance(kind, type) else None
    if record is None or record.is_enum or type(attributes) is not dict:
        found = f"{type(kind).__name__}, {type(attributes).__name__}"
        raise NotAllowed(f"restored takes a class of the code and a dict, found {found}")
    for name in attributes:
        if type(name) is not str:
            raise NotAllowed("restored takes a dict with the names of attributes")
        check_name(name)
    charge(4 + len(attributes))
    if record.is_tuple:
        return _restored_tuple(kind, attributes)
    made = blank(kind, record)
    vars(made).update(attributes)
    if record.is_error and "args" in attributes:
        made.args = vars(made).pop("args")
        check_error_args(record.native, made.args)
    return made


def _restored_tuple(kind: Any, attributes: dict[str, Any]) -> Any:
    if kind._fields != tuple(name for name in kind._fields if name in attributes) or len(
        attributes
    ) != len(kind._fields):
        raise NotAllowed(f"restored takes all fields of {kind.__name__}, and no others")
    return tuple.__new__(kind, [attributes[name] for name in kind._fields])
