"""What Python's own exec makes of a source, and what the evaluator does."""

from __future__ import annotations

import ast
import copy
import re
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import ModuleType
from typing import Any

from sgc.runtime.executor.code.run import run_code

Outcome = tuple[str, Any, Any]
# The module of classes of code, and here of those that Python makes of the same text.
MODULE = "program"


def restored(kind: Any, attributes: dict[str, Any]) -> Any:
    """What the code's builtin of this name does."""
    if issubclass(kind, tuple):
        return tuple.__new__(kind, attributes.values())
    made = kind.__new__(kind)
    vars(made).update(attributes)
    if "args" in attributes:
        made.args = vars(made).pop("args")
    return made


def entry_of(source: str) -> Any:
    """The last function of a source, by Python's own exec."""
    module = ModuleType(MODULE)
    space = vars(module)
    space["restored"] = restored
    sys.modules[MODULE] = module  # where `dataclass` looks for what annotations mean
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(source, space)
    sys.modules.pop(MODULE, None)
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
    if type(value).__module__ == MODULE:
        held = {**vars(value), "args": getattr(value, "args", ())}
        return f"{kind}({', '.join(f'{name}={shown(each)}' for name, each in held.items())})"
    return f"{kind}:{value!r}"


def _kind(error: Exception) -> Any:
    """The class of an error, by name if it is the code's."""
    kind = type(error)
    own = [each.__name__ for each in kind.__mro__ if each.__module__ == MODULE]
    return (*own, shown(error)) if own else kind


def by_python(source: str, args: list[Any]) -> Outcome:
    """In a thread of its own: a bare `raise` would find an error that the caller handles."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_by_python, source, args).result()


def _by_python(source: str, args: list[Any]) -> Outcome:
    try:
        return "value", shown(entry_of(source)(*copy.deepcopy(args))), None
    except Exception as error:
        return "error", _kind(error), str(error).replace(f"{MODULE}.", "")


def by_us(source: str, args: list[Any]) -> Outcome:
    try:
        return "value", shown(run_code(source, args)), None
    except Exception as error:
        return "error", _kind(error), str(error)


def needed(module: str, body: str) -> str:
    """The statements of a module that a text needs: those whose names it has, and so on."""
    parts, texts = _parts(module), []
    used: set[str] = set()
    read = {"", *re.findall(r"\w+", body)}
    while used != read:
        used = read
        texts = [text for name, text in parts if name in used]
        read = used.union(*(re.findall(r"\w+", text) for text in texts))
    return "\n".join(texts)


@cache
def _parts(module: str) -> list[tuple[str, str]]:
    return [(_name(part), ast.unparse(part)) for part in ast.parse(module).body]


def _name(part: ast.stmt) -> str:
    """The name that other statements read a statement by, if it has one."""
    match part:
        case ast.ClassDef(name) | ast.FunctionDef(name) | ast.Assign([ast.Name(name)]):
            return name
    return ""
