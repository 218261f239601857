"""Forms of values: the part of a piece's input values that its code text depends on."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from types import BuiltinFunctionType, ModuleType
from typing import Any

from sgc.core.markers import has_marker
from sgc.tracing.kinds.generators import AbstractRandom
from sgc.tracing.kinds.members import is_member
from sgc.tracing.kinds.records import is_record, parts_of
from sgc.tracing.kinds.row_types import holds_states
from sgc.tracing.kinds.sets import order_is_fixed
from sgc.tracing.pieces.owned import is_changeable, is_flat
from sgc.tracing.values.abstract import (
    AbstractJson,
    AbstractList,
    AbstractNumber,
    AbstractText,
    is_abstract,
)
from sgc.tracing.values.json.dict_views import dict_of, part_of
from sgc.tracing.values.live.abstract_live import AbstractLive

MAX_DEPTH = 20
_SCALARS = (str, int, float, bool, type(None))
_STATIC = (BuiltinFunctionType, ModuleType, type)  # the same in each run of a trace
_MAPPINGS = (dict, Counter, defaultdict, OrderedDict)

Form = tuple[Any, ...]


class NoForm(Exception):
    """The value has no form: it may differ in each run of a trace."""


def plain_key(key: Any) -> Any:
    """A key of a dict or an item of a set; for an abstract text, the text that a look-up chose."""
    if type(key) is tuple:
        return tuple(map(plain_key, key))
    found = key.as_key if isinstance(key, AbstractText) else None
    return key if found is None else found


def is_operand(value: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether a value can be an operand in the graph."""
    if is_abstract(value):
        is_one = isinstance(
            value, (str, AbstractNumber, AbstractList, AbstractJson, AbstractRandom, AbstractLive)
        )
        if is_one and isinstance(value, AbstractList):
            type_ = value.symbol.type
            return not holds_states(type_)
        return is_one
    kind = type(value)
    if kind in _SCALARS:
        return True
    if not depth or kind not in (list, tuple, dict):
        return False
    if kind is dict and not all(type(key) is str and not has_marker(key) for key in value):
        return False
    items = value.values() if kind is dict else value
    # A list can be an operand if it holds no live object.
    return all(type(item) is not AbstractLive and is_operand(item, depth - 1) for item in items)


def form_of(value: Any, args: list[Any], depth: int = MAX_DEPTH) -> Form:
    """The form of a value: the parts written in the code, with places for arguments.

    args: gets the arguments, in the order of their places. Raises NoForm.
    """
    if isinstance(value, _STATIC) and not is_abstract(value):
        return (value,)
    if type(value) is AbstractList and part_of(value):
        args.append(dict_of(value))
        return (part_of(value), value.session.view_state(value.symbol))
    if is_operand(value):
        args.append(value)
        is_one = is_changeable(value)
        return (None, is_one, is_one and is_flat(value))
    kind = type(value)
    if not depth:
        raise NoForm
    if is_member(value):
        return (kind, value._name_)
    if kind in (list, tuple):
        return (kind, *(form_of(item, args, depth - 1) for item in value))
    if kind is deque:
        return (kind, value.maxlen, form_of(list(value), args, depth - 1))
    if kind in (set, frozenset):
        forms = [*map(_key_form, value)]  # numbers are written in the set's own order
        return (kind, *(forms if order_is_fixed(value) else sorted(forms)))
    if is_record(value):
        parts = parts_of(value)
        return (kind, *parts, *(form_of(item, args, depth - 1) for item in parts.values()))
    if kind in _MAPPINGS:
        keys = tuple(map(_key_form, value))
        items = tuple(form_of(item, args, depth - 1) for item in value.values())
        return (kind, getattr(value, "default_factory", None), keys, *items)
    raise NoForm


def _key_form(key: Any) -> Form:
    plain = plain_key(key)
    if is_member(plain):
        return (str(id(type(plain))), plain._name_)
    if type(plain) not in _SCALARS:
        raise NoForm
    return (type(plain).__name__, repr(plain))
