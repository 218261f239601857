"""Functions of `dataclasses` that read an object: if it holds values known only at run time, the
calls are code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from sgc.core.session import current_session
from sgc.ir import types
from sgc.tracing.kinds.records import is_record, parts_of
from sgc.tracing.kinds.row_types import OBJECT, OptionalType, RecordType
from sgc.tracing.operators.code.run_time import is_run_time
from sgc.tracing.pieces.owned import is_changeable
from sgc.tracing.values.abstract_record import AbstractRecord
from sgc.tracing.values.computing import computed
from sgc.tracing.values.items import type_of


def _looking(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(of: Any, *args: Any, **kwargs: Any) -> Any:
        if type(of) is AbstractRecord:
            of.needs_type()
        return function(of, *args, **kwargs)

    return call


def _as_dict(*args: Any, **kwargs: Any) -> Any:
    """`asdict`: a dict whose keys are known while tracing."""
    names = _names_of(*args, **kwargs)
    if names is None:
        return _looking(dataclasses.asdict)(*args, **kwargs)
    return dict(zip(names, _parts(args[0], "asdict", names, names), strict=True))


def _as_tuple(*args: Any, **kwargs: Any) -> Any:
    """`astuple`: a tuple whose length is known while tracing."""
    names = _names_of(*args, **kwargs)
    if names is None:
        return _looking(dataclasses.astuple)(*args, **kwargs)
    return tuple(_parts(args[0], "astuple", names, range(len(names))))


def _names_of(*args: Any, **kwargs: Any) -> list[str] | None:
    """The fields of the only argument, if it is an object that is or holds a value known only at
    run time."""
    of: Any = args[0] if len(args) == 1 and not kwargs else None
    is_unknown = type(of) is AbstractRecord
    kind = of.kind if is_unknown else type(of)
    if not dataclasses.is_dataclass(kind) or not (is_unknown or is_record(of)):
        return None
    return [field.name for field in dataclasses.fields(kind)] if is_run_time(of) else None


def _parts(of: Any, function: str, names: Iterable[str], keys: Iterable[Any]) -> list[Any]:
    """The copied values of an object's fields, taken by keys from a function's result."""
    held = {} if type(of) is AbstractRecord else parts_of(of)
    if held and not any(map(is_changeable, held.values())):
        return [getattr(of, name) for name in names]
    session: Any = current_session()
    code = f"import dataclasses\ndef piece(a):\n    return dataclasses.{function}(a)"
    whole = session.coded(code, (of,), OBJECT)
    made_of = type_of(of)
    assert isinstance(made_of, RecordType)
    told = dict(zip(made_of.keys, made_of.row, strict=True))
    types_of = [told[name] if _is_scalar(told.get(name, OBJECT)) else OBJECT for name in names]
    pairs = zip(keys, types_of, strict=True)
    return [session.seen(computed(session, "item", whole, key, type_=of)) for key, of in pairs]


def _is_scalar(type_: types.Type) -> bool:
    return (type_.of if isinstance(type_, OptionalType) else type_) in _SCALARS


_SCALARS = (types.TEXT, types.INT, types.FLOAT, types.BOOL)
_FUNCTIONS = (dataclasses.replace, dataclasses.fields)
LOOKING: dict[Any, Any] = {
    **{function: _looking(function) for function in _FUNCTIONS},
    dataclasses.asdict: _as_dict,
    dataclasses.astuple: _as_tuple,
}
