"""`f(**data)` of data known only at run time: binds the keys to parameters, with Python's errors.

For tools, and for a function or class of the user's whose parameters are plain, code with the same
header binds the keys at run time. Any other call goes to Python unchanged.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import math
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from sgc.core.places import here
from sgc.core.session import current_session
from sgc.errors import ArgumentError
from sgc.ir import types
from sgc.lang.tools import Tool
from sgc.tracing.code.calling import noted_last, start_of
from sgc.tracing.kinds.row_types import OBJECT
from sgc.tracing.operators.lookups import contains
from sgc.tracing.values.abstract import AbstractJson, AbstractObject
from sgc.tracing.values.computing import computed

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_TAKEN = frozenset({*keyword.kwlist, *dir(builtins), "data", "piece", "self"})
_PLAIN = (str, int, bool, type(None))
MAX_PARAMETERS = 64


def spread(data: Any, called: Any = None) -> Any:
    """The mapping that Python gets for `**data`. The frame has just looked up `f`; called: `f`, if
    something was called since."""
    session: Any = current_session()
    if session is None or not session.is_tracing or not isinstance(data, AbstractJson):
        return data
    function = noted_last(sys._getframe(1)) if called is None else called
    if isinstance(function, Tool):
        return dict(_of_tool(session, function, data))
    is_class = isinstance(function, type)
    of = start_of(function) if isinstance(function, type) else function
    found = None if type(of) is not FunctionType else _header(of, function, is_class)
    if found is None:
        return data
    header, names, unsure = found
    code = _CODE.format(
        head=_in_class(header, names) if is_class else _HEAD.format(header, ", ".join(names)),
        called=f"{function.__name__}(**data)" + ".values" * is_class,
        shown=f"{function.__module__}.{function.__qualname__}",
    )
    bound = session.coded(code, (data,), types.list_of(OBJECT))
    return {
        name: session.seen(computed(session, "item", bound, n, type_=OBJECT))
        for n, name in enumerate(names)
        if name not in unsure or contains(name, data)
    }


_HEAD = """\
def {}:
    return [{}]"""
_CODE = """\
{head}
def piece(data):
    if not isinstance(data, dict):
        kind = "NoneType" if data is None else "bool" if isinstance(data, bool) else "int" \\
            if isinstance(data, int) else "float" if isinstance(data, float) else "str" \\
            if isinstance(data, str) else "list"
        raise TypeError("{shown}() argument after ** must be a mapping, not " + kind)
    return {called}"""


def _in_class(header: str, names: list[str]) -> str:
    """The head for a class: Python's errors name its `__init__`."""
    name, _, parameters = header.partition("(")
    return (
        f"class {name}:\n    def __init__(self, {parameters}:\n"
        f"        self.values = [{', '.join(names)}]"
    )


def _of_tool(session: Any, tool: Tool, data: AbstractJson) -> Iterator[tuple[str, Any]]:
    """The arguments of a tool that the data has, with a decision for each one that may be missing;
    raises the tool's own error for data that does not fit."""
    parameters = inspect.signature(tool.python).parameters
    if not all(each.kind in _NAMED for each in parameters.values()):
        return
    needed = [each.name for each in parameters.values() if each.default is each.empty]
    missing = [(name, _why(tool, set(parameters) - {name}, "")) for name in needed]
    unknown = _why(tool, set(parameters), "sgc")
    tests = "".join(
        f"    if {name!r} not in data:\n        return {why!r}\n" for name, why in missing
    )
    before, _, after = unknown.partition("'sgc'")
    unfit = f"return {before!r} + repr(name) + {after!r}"
    code = _CODE.format(
        head=f"def why(data):\n{tests}    for name in data:\n"
        f"        if name not in {[*parameters]!r}:\n            {unfit}\n    return ''",
        called="why(data)",
        shown=f"{tool.python.__module__}.{tool.python.__qualname__}",
    )
    why = session.coded(code, (data,), types.TEXT)
    if why != "":
        error = ArgumentError(tool.unfit(why), where=here())
        error.is_of_run = True
        raise error
    type_ = OBJECT if isinstance(data, AbstractObject) else types.JSON
    for name in parameters:
        if name in needed or contains(name, data):
            yield name, session.seen(computed(session, "item", data, name, type_=type_))


def _why(tool: Tool, names: set[str], more: str) -> str:
    """The error message for a call of a tool with arguments of these names, and one more."""
    given = dict.fromkeys(names) | ({more: None} if more else {})
    try:
        inspect.signature(tool.python).bind(**given)
    except TypeError as error:
        return str(error)
    raise AssertionError


def _header(
    function: FunctionType, called: Any, is_class: bool
) -> tuple[str, list[str], frozenset[str]] | None:
    """The function's name and parameters as code, the parameters' names, and those with defaults;
    None if the errors of such code would differ from Python's."""
    parameters = inspect.signature(function, follow_wrapped=False).parameters
    name, each_of = called.__name__, [*parameters.values()][is_class:]
    if not 0 < len(each_of) <= MAX_PARAMETERS or called.__qualname__ != name:
        return None
    if not name.isidentifier() or name in _TAKEN:
        return None
    is_own = not is_class or function.__qualname__ == f"{name}.__init__"
    if not is_own or (is_class and next(iter(parameters)) != "self"):
        return None
    parts, is_named, unsure = [], False, set()
    for each in each_of:
        if each.kind not in _NAMED or each.name in ("data", "self"):
            return None
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not is_named:
            parts.append("*")
            is_named = True
        if each.default is each.empty:
            parts.append(each.name)
        elif _is_plain(each.default):
            parts.append(f"{each.name}={each.default!r}")
        else:
            parts.append(f"{each.name}=None")
            unsure.add(each.name)
    names = [each.name for each in each_of]
    return f"{name}({', '.join(parts)})", names, frozenset(unsure)


def _is_plain(default: Any) -> bool:
    is_number = type(default) is float and math.isfinite(default)
    return is_number or type(default) in _PLAIN
