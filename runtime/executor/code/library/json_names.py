"""Names of `json`."""

from __future__ import annotations

import json
from json import JSONDecodeError
from typing import Any

from sgc.runtime.executor.code.fuel import NotAllowed, charge, checked, measure
from sgc.runtime.executor.code.methods.attributes import guarded
from sgc.runtime.executor.functions.value_functions import VALUE_EVALUATORS
from sgc.runtime.executor.interface.value_limits import check_length

_loads_text = VALUE_EVALUATORS["json_loads"]


def _loads(*args: Any, **kwargs: Any) -> Any:
    """`json.loads(text)`."""
    if len(args) != 1 or kwargs:
        if kwargs:
            raise NotAllowed("json.loads takes only a text in a graph's code")
        return json.loads(*args)
    (text,) = args
    if type(text) is not str:
        return json.loads(text)
    # A list of empty lists needs the most memory: 72 bytes for three characters.
    charge(len(text) >> 2)
    return _loads_text(text)


def _dumps(*args: Any, **kwargs: Any) -> str:
    """`json.dumps(value, ...)`, by Python's own encoder."""
    if kwargs.get("cls") is not None:
        raise NotAllowed("json.dumps with cls is not allowed in a graph's code")
    kwargs = {
        name: guarded(value) if name == "default" else value for name, value in kwargs.items()
    }
    for value in args[:1]:
        n_chars = measure(value)
        charge(n_chars >> 4)
        check_length(n_chars)
        indent = kwargs.get("indent")
        width = indent if isinstance(indent, int) else len(indent) if indent else 0
        check_length(width * 200)
        if width > 16 or kwargs.get("default") is not None:
            return _slowly(value, kwargs)
    result: str = checked(json.dumps(*args, **kwargs))
    return result


def _slowly(value: Any, kwargs: dict[str, Any]) -> str:
    """Encodes part by part, since the result of `default` and its size are not known before."""
    parts, n_chars = [], 0
    kwargs = dict(kwargs)
    if kwargs.get("indent") is not None and kwargs.get("separators") is None:
        kwargs["separators"] = (",", ": ")
    for part in json.JSONEncoder(**kwargs).iterencode(value):
        n_chars += len(part)
        charge(1 + (len(part) >> 6))
        check_length(n_chars)
        parts.append(part)
    return "".join(parts)


JSON: dict[str, Any] = {"JSONDecodeError": JSONDecodeError, "dumps": _dumps, "loads": _loads}
