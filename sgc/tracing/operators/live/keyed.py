"""Orders of a live list by a function that is traced, since it asks: `convert/loops/keyed.py`."""

from __future__ import annotations

import builtins
from types import FunctionType
from typing import Any

from sgc.core.session import current_session
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.code import CodeError
from sgc.tracing.operators.calls import callee
from sgc.tracing.operators.live.calls import method
from sgc.tracing.operators.texts import text
from sgc.tracing.pieces.live import call_code
from sgc.tracing.pieces.text.constants import NotData
from sgc.tracing.values.live.abstract_live import AbstractLive

_SORTED = "[x for _, x in sorted(zip(keys, items), key=lambda each: each[0], reverse=given)]"
_CODE = {
    "sorted": f"return {_SORTED}",
    "sort": f"items[:] = {_SORTED}",
    "max": "return max(zip(keys, items), key=lambda each: each[0])[1]",
    "min": "return min(zip(keys, items), key=lambda each: each[0])[1]",
}
_OR_DEFAULT = "if not items:\n        return given\n    "


def asked(kind: str, items: Any, key: Any) -> Any:
    """The items, as a list of their own, of a call whose function must be traced; else None."""
    session: Any = current_session()
    if session is None or not session.is_tracing or type(items) is not AbstractLive:
        return None
    if not session.sites.is_live or not isinstance(key, FunctionType):
        return None
    if _is_code(session, kind, items, key):
        return None
    (found,) = session.performed("def piece(a):\n    return [*a]", (items,), (types.LIVE,))
    return found


def given(value: Any) -> bool:
    return value is not None


@unhooked
def _is_code(session: Any, kind: str, items: AbstractLive, key: FunctionType) -> bool:
    own, of = ((items,), None) if kind == "sort" else ((), getattr(builtins, kind))
    args = () if kind == "sort" else (items,)
    try:
        name = "a.sort" if kind == "sort" else kind
        call_code(session, name, own, args, {"key": session.as_live(key)}, of)
    except (NotData, CodeError):
        return False
    return True


def by_keys(kind: str, items: Any, *, key: Any, each: Any, keys: Any, **rest: Any) -> Any:
    """What the call gives. each: the items in order, of which `keys` are the keys; None if Python
    or the run finds these itself."""
    if each is None:
        if kind == "sort":
            return text(callee(method(items).sort)(key=key, **rest))
        return text(callee(getattr(builtins, kind))(items, key=key, **rest))
    code = (_OR_DEFAULT if "default" in rest else "") + _CODE[kind]
    other = next(iter(rest.values()), False)  # not reversed
    lines = f"def piece(items, keys, given):\n    {code}"
    source = (items if kind == "sort" else each, keys, other)
    return items.session.performed(lines, source, (types.LIVE,))[0]
