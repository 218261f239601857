"""Makes the Python class for a class of a graph's code, once for all runs and modules with it."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import threading
import types
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass
from decimal import Decimal
from enum import EnumType, auto
from fractions import Fraction
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

from sgc.runtime.executor.code.classes import models
from sgc.runtime.executor.code.classes.calling import Factory, PerRun, method_of
from sgc.runtime.executor.code.classes.guards import add_guards, new, new_of_tuple
from sgc.runtime.executor.code.fuel import NotAllowed, Run
from sgc.runtime.executor.interface.records import MARK, Bound, Record, is_fixed, record_of

MODULE = "program"
_DOC = "A class of a graph's code."


@dataclass(slots=True, eq=False)
class Plan:
    """A class statement. options: the options of its decorator `dataclass`, if it has one;
    methods: the methods' decorators; annotated: for each annotated name, whether it is a
    `ClassVar`; is_ordered: whether its class has the decorator `total_ordering`.
    """

    name: str
    key: str
    load: Callable[[Run], Bound]
    options: dict[str, bool] | None
    methods: dict[str, str]
    annotated: dict[str, bool]
    is_ordered: bool = False
    made: Any = None


# By key. A class lives as long as an instance of it, or compiled code that defines it.
_KINDS: WeakValueDictionary[str, Any] = WeakValueDictionary()
_LOCK = threading.RLock()


def made(plan: Plan, bases: tuple[Any, ...], values: dict[str, Any]) -> Any:
    """The class of a plan. values: the values of its attributes."""
    if plan.made is None:
        with _LOCK:
            plan.made = _KINDS.get(plan.key) or _made(plan, bases, values)
            _KINDS[plan.key] = plan.made
    return plan.made


def _made(plan: Plan, bases: tuple[Any, ...], values: dict[str, Any]) -> Any:
    record = Record(plan.name, plan.key, plan.load)
    is_root = not any(map(record_of, bases))
    is_tuple, is_enum = NamedTuple in bases, any(isinstance(each, EnumType) for each in bases)
    if is_enum:
        _check_members(plan, values)
    record.is_model = any(map(models.is_model, bases))
    if record.is_model:
        return _made_model(plan, record, bases, values)
    space = _namespace(plan, record, values, is_tuple)
    if is_root and not is_tuple and not is_enum:
        space["__new__"] = new
    kind: Any = types.new_class(plan.name, bases, {}, lambda given: given.update(space))
    if is_tuple:
        kind.__new__ = new_of_tuple(kind)
        setattr(kind, MARK, record)
    if plan.options is not None:
        options = {name: each for name, each in plan.options.items() if name != "slots"}
        kind = dataclasses.dataclass(**options)(kind)
        record.slots = _slots(kind, bases) if plan.options.get("slots") else None
    if plan.is_ordered:  # its methods call those of the code, which are charged
        kind = functools.total_ordering(kind)
    if not is_enum:
        add_guards(kind)
    _describe(record, kind, plan)
    return kind


def _slots(kind: Any, bases: tuple[Any, ...]) -> frozenset[str] | None:
    """The only attributes of a slotted dataclass's objects; None if a base allows others."""
    if any(record is None or record.slots is None for record in map(record_of, bases)):
        return None
    return frozenset(field.name for field in dataclasses.fields(kind))


def _made_model(plan: Plan, record: Record, bases: tuple[Any, ...], values: dict[str, Any]) -> Any:
    """A pydantic model, made from its description."""
    if len(bases) > 1 or values.keys() != {models.DESCRIBED}:
        raise NotAllowed(f"{plan.name} is not described as a model")
    described, own = values[models.DESCRIBED], _namespace(plan, record, {}, False)
    del own["__annotations__"]
    space = own | models.namespace(described, own, _is_part)
    if record_of(bases[0]) is None:
        space |= {"__new__": models.new, **models.METHODS}
    kind: Any = types.new_class(plan.name, bases, {}, lambda given: given.update(space))
    fields = tuple(kind.model_fields)
    record.native = models.pydantic().BaseModel
    record.walked = record.shown = fields
    record.names = frozenset({*plan.methods, *fields, *models.METHODS})
    above = record_of(bases[0])
    record.names |= above.names if above is not None else frozenset()
    return kind


def _is_part(kind: Any) -> bool:
    """Whether objects of a class may be the values of a model's field."""
    record = record_of(kind)
    return record is not None and (record.is_model or record.is_enum)


def _check_members(plan: Plan, values: dict[str, Any]) -> None:
    for name, value in values.items():
        if not is_fixed(value) and not isinstance(value, auto):
            raise NotAllowed(f"{plan.name}.{name} is a {type(value).__name__}, which can change")


def _namespace(
    plan: Plan, record: Record, values: dict[str, Any], is_tuple: bool
) -> dict[str, Any]:
    annotations = {
        name: ClassVar if is_class_variable else object
        for name, is_class_variable in plan.annotated.items()
    }
    space: dict[str, Any] = {
        "__module__": MODULE,
        "__qualname__": plan.name,
        "__doc__": _DOC,
        "__annotations__": annotations,
    }
    if not is_tuple:
        space[MARK] = record
    for name, decorator in plan.methods.items():
        space[name] = _DECORATORS[decorator](method_of(record, name))
    for name, value in values.items():
        is_field = (plan.options is not None or is_tuple) and plan.annotated.get(name) is False
        space[name] = (
            _default(record, name, value, not is_tuple)
            if is_field
            else _shared(record, name, value)
        )
    return space


_DECORATORS: dict[str, Callable[[Any], Any]] = {
    "": lambda method: method,
    "cached_property": cached_property,
    "classmethod": classmethod,
    "property": property,
    "staticmethod": staticmethod,
}


def _shared(record: Record, name: str, value: Any) -> Any:
    """An attribute of the class; each run makes a changeable value anew."""
    if isinstance(value, (FunctionType, Field)):
        raise NotAllowed(
            f"{record.name}.{name} is a {type(value).__name__}", hint="write a method with def"
        )
    return value if is_fixed(value) or isinstance(value, auto) else PerRun(record, name)


def _default(record: Record, name: str, value: Any, is_dataclass: bool) -> Any:
    """The default of a field."""
    if isinstance(value, Field) and not is_dataclass:
        raise NotAllowed(f"{record.name}.{name} is a field(...), which is for dataclasses alone")
    if not isinstance(value, Field):
        _check_default(record, name, value)
        return value
    if value.default is not MISSING:
        _check_default(record, name, value.default)
    factory = value.default_factory
    return dataclasses.field(
        default=value.default,
        default_factory=factory if factory is MISSING else Factory(record, name),
        init=value.init,
        repr=value.repr,
        hash=value.hash,
        compare=value.compare,
        kw_only=value.kw_only,
    )  # type: ignore[call-overload]


def _check_default(record: Record, name: str, value: Any) -> None:
    # Python itself refuses defaults that cannot be hashed.
    if not _is_value(value) and type(value).__hash__ is not None:
        raise NotAllowed(
            f"the default of {record.name}.{name} is a {type(value).__name__}",
            hint="use field(default_factory=...)",
        )


# Library types whose objects nothing can change: all runs may share one.
_VALUES = frozenset({
    Decimal, Fraction, datetime.date, datetime.datetime, datetime.time, datetime.timedelta,
})  # fmt: skip


def _is_value(value: Any) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_is_value, value))
    return type(value) in _VALUES or is_fixed(value)


def _describe(record: Record, kind: Any, plan: Plan) -> None:
    """Notes what is known of a class after it was made."""
    record.is_tuple, record.is_error = issubclass(kind, tuple), issubclass(kind, BaseException)
    record.is_enum = isinstance(kind, EnumType)
    record.native = next(each for each in kind.__mro__ if _is_native(each))
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    if fields and any(_is_generated(getattr(kind, name)) for name in _WALKING):
        record.walked = tuple(each.name for each in fields if each.repr or each.compare)
    if _is_generated(kind.__repr__):
        record.shown = tuple(each.name for each in fields if each.repr)
    options = vars(kind).get("__dataclass_params__")
    record.is_frozen = options is not None and options.frozen
    own = {*plan.methods, *plan.annotated, *(name for name in vars(kind) if name[:1] != "_")}
    own |= {name for name in vars(kind) if name[:2] != "__" and not record.is_tuple}
    if record.is_tuple:
        own |= {"_asdict", "_fields", "_make", "_replace"}
    if record.is_enum:
        own |= {"name", "value", *kind.__members__}
    outer = [each.names for base in kind.__bases__ if (each := record_of(base)) is not None]
    record.names = frozenset(own).union(*outer)


def _is_native(kind: Any) -> bool:
    return MARK not in vars(kind) and not isinstance(kind, EnumType)


_WALKING = ("__eq__", "__lt__", "__hash__", "__repr__")


def _is_generated(method: Any) -> bool:
    """Whether `dataclass` made a method."""
    return isinstance(method, FunctionType) and not hasattr(method, "is_code")
