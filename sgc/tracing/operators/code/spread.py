"""`f(**data)` of data known only at run time: each parameter gets its key, and Python's own errors.

Only for a function of the user's whose parameters are plain and whose defaults are data: its header
is code, which binds the keys at run time. Everything else goes to Python as it is.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import sys
from types import FunctionType
from typing import Any

from sgc.core.session import current_session
from sgc.ir import types
from sgc.tracing.code.calling import noted_last
from sgc.tracing.kinds.row_types import OBJECT
from sgc.tracing.values.abstract import AbstractJson
from sgc.tracing.values.computing import computed

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_TAKEN = frozenset({*keyword.kwlist, *dir(builtins), "data", "piece"})
_PLAIN = (str, int, bool, type(None))
MAX_PARAMETERS = 64


def spread(data: Any) -> Any:
    """What `f(**data)` gives to Python. Its frame has just looked at `f`."""
    session: Any = current_session()
    if session is None or not session.is_tracing or not isinstance(data, AbstractJson):
        return data
    function = noted_last(sys._getframe(1))
    header = None if function is None else _header(function)
    if function is None or header is None:
        return data
    names = [*inspect.signature(function).parameters]
    code = _CODE.format(
        header=header, names=", ".join(names), name=function.__name__,
        shown=f"{function.__module__}.{function.__qualname__}",
    )  # fmt: skip
    bound = session.coded(code, (data,), types.list_of(OBJECT))
    each = (computed(session, "item", bound, n, type_=OBJECT) for n in range(len(names)))
    return {name: session.seen(value) for name, value in zip(names, each, strict=True)}


_CODE = """\
def {header}:
    return [{names}]
def piece(data):
    if not isinstance(data, dict):
        kind = "NoneType" if data is None else "bool" if isinstance(data, bool) else "int" \\
            if isinstance(data, int) else "float" if isinstance(data, float) else "str" \\
            if isinstance(data, str) else "list"
        raise TypeError("{shown}() argument after ** must be a mapping, not " + kind)
    return {name}(**data)"""


def _header(function: FunctionType) -> str | None:
    """The function's name and parameters as code; None if Python's errors would not be its own."""
    parameters = inspect.signature(function, follow_wrapped=False).parameters
    if not 0 < len(parameters) <= MAX_PARAMETERS or function.__qualname__ != function.__name__:
        return None
    if not function.__name__.isidentifier() or function.__name__ in _TAKEN:
        return None
    parts, is_named = [], False
    for each in parameters.values():
        if each.kind not in _NAMED or each.name == "data":
            return None
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not is_named:
            parts.append("*")
            is_named = True
        if each.default is each.empty:
            parts.append(each.name)
        elif type(each.default) in _PLAIN:
            parts.append(f"{each.name}={each.default!r}")
        else:
            return None
    return f"{function.__name__}({', '.join(parts)})"
