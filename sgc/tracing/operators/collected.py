"""Sets and dicts of lists that are known only at run time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir.graph import Lit
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import BOOL, Kind, Type
from sgc.tracing.kinds.row_types import OBJECT
from sgc.tracing.operators.calls import KNOWING
from sgc.tracing.values.abstract import AbstractJson, AbstractList, AbstractObject, is_abstract
from sgc.tracing.values.items import type_of
from sgc.tracing.values.live.abstract_live import AbstractLive

_HASHABLE = TEXTUAL | {Kind.INT, Kind.FLOAT, Kind.BOOL}


def collected(of: type) -> Callable[..., Any]:
    """`dict`, `set` or `frozenset`, also of items that are known only at run time."""
    code = _code_of(of)

    def call(*args: Any, **kwargs: Any) -> Any:
        (items,) = args if len(args) == 1 and not kwargs else (None,)
        if not _is_run_time(of, items):
            return of(*args, **kwargs)
        session: Any = current_session()
        return session.coded(code, (items,), OBJECT)

    return call


def of_keys(items: Any, *value: Any) -> Any:
    """`dict.fromkeys`, also of items that are known only at run time."""
    if value or not _is_run_time(set, items):
        return dict.fromkeys(items, *value)
    session: Any = current_session()
    return session.coded(_OF_KEYS, (items,), OBJECT)


_OF_KEYS = "def piece(items):\n    return dict.fromkeys(items)"


def _code_of(of: type) -> str:
    return f"def piece(items):\n    return {of.__name__}(items)"


def listed_in(value: Any) -> Type | None:
    """The list type from which a set known only at run time was made; None for other values."""
    if type(value) is not AbstractObject:
        return None
    session: Any = value.session
    op, fields = session.made.get(value.symbol.name, ("", {}))
    if op != "evaluate" or fields["code"] not in _SETS:
        return None
    (items,) = fields["args"]
    return session.told_type(items)  # type: ignore[no-any-return]


_SETS = (Lit(_code_of(set)), Lit(_code_of(frozenset)))


def as_set(items: Any) -> Any:
    """The set that a comprehension makes of these items."""
    if type(items) is AbstractLive:
        return items.passed_to("set")
    return KNOWING[set](items)


def as_dict(items: Any) -> Any:
    """The dict that a comprehension makes of these pairs."""
    if type(items) is AbstractLive:
        return items.passed_to("dict")
    return KNOWING[dict](items)


def hashed(item: Any, is_pair: bool) -> Any:
    """An item of a set, or a dict's key with its value. A key whose type is known only at run time
    is hashed by code, which fails as Python does."""
    key = item[0] if is_pair else item
    if type(key) is AbstractLive:
        key.is_hashed()
    elif type(key) in (AbstractJson, AbstractObject):
        session: Any = current_session()
        session.coded(_OF_DICT if is_pair else _OF_SET, (key,), BOOL)
    elif not _is_hashable(key):
        stop(
            f"a {'dict' if is_pair else 'set'} with keys whose type is known only at run time",
            hint="make the keys texts, str(key); or " + INTERPRET,
        )
    return item


_OF_DICT = "def piece(key):\n    return {key: True}[key]"
_OF_SET = "def piece(key):\n    return len({key}) == 1"


def _is_run_time(of: type, items: Any) -> bool:
    if isinstance(items, AbstractJson) or type(items) not in (list, tuple, AbstractList):
        return False
    return type(items) is AbstractList or any(map(is_abstract, _keys(of, items)))


def _keys(of: type, items: Any) -> list[Any]:
    """The keys of a set's or dict's items."""
    if of is not dict:
        return [*items]
    return [each[0] for each in items if type(each) is tuple and len(each) == 2]


def _is_hashable(key: Any) -> bool:
    """Whether a key is known to be hashable."""
    if is_abstract(key):
        return type_of(key).kind in _HASHABLE
    if isinstance(key, tuple):
        return all(map(_is_hashable, key))
    return type(key).__hash__ is not None


def counted(*args: Any, **kwargs: Any) -> Any:
    """A `Counter`, also of values that are known only at run time, which Python's own would compare
    with each other."""
    items: Any = args[0] if len(args) == 1 and not kwargs else None
    is_one = type(items) in (list, tuple) and all(map(_is_hashable, items))
    if not is_one or not any(map(is_abstract, items)):
        return Counter(*args, **kwargs)
    session: Any = current_session()
    return session.coded(_COUNTED, (items,), OBJECT)


_COUNTED = "from collections import Counter\ndef piece(items):\n    return Counter(items)"
KNOWING.update({of: collected(of) for of in (dict, set, frozenset)})
KNOWING[Counter] = counted
KNOWING[dict.fromkeys] = of_keys
