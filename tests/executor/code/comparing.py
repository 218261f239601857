"""What Python's own exec makes of a source, and what the evaluator does."""

from __future__ import annotations

import copy
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sgc.runtime.executor.code.run import run_code

Outcome = tuple[str, Any, Any]


def entry_of(source: str) -> Any:
    """The last function of a source, by Python's own exec."""
    space: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(source, space)
    functions = [each for each in space.values() if getattr(each, "__globals__", None) is space]
    return functions[-1]


def shown(value: Any) -> str:
    """A value with the types in it; sets in order."""
    kind = type(value).__name__
    if isinstance(value, dict):
        pairs = [f"{shown(k)}: {shown(v)}" for k, v in value.items()]
        return f"{kind}({', '.join(pairs)})"
    if isinstance(value, (set, frozenset)):
        return f"{kind}({sorted(map(shown, value))})"
    if isinstance(value, (list, tuple)) or kind == "deque":
        return f"{kind}({', '.join(map(shown, value))})"
    return f"{kind}:{value!r}"


def by_python(source: str, args: list[Any]) -> Outcome:
    """In a thread of its own: a bare `raise` would find an error that the caller handles."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_by_python, source, args).result()


def _by_python(source: str, args: list[Any]) -> Outcome:
    try:
        return "value", shown(entry_of(source)(*copy.deepcopy(args))), None
    except Exception as error:
        return "error", type(error), str(error)


def by_us(source: str, args: list[Any]) -> Outcome:
    try:
        return "value", shown(run_code(source, args)), None
    except Exception as error:
        return "error", type(error), str(error)
