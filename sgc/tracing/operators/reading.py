"""Refuses abstract texts as arguments of functions written in C, which would read their characters.

An abstract text is a `str`: C code bypasses its methods and reads its marker. So functions, methods
and types written in C never get one, unless they only pass values on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import BuiltinMethodType, FunctionType, ModuleType
from typing import Any

from sgc.core.stops import IN_A_TOOL, stop
from sgc.tracing.values.abstract import (
    AbstractJson,
    AbstractList,
    AbstractText,
    is_abstract,
    marked,
    python_type,
)
from sgc.tracing.values.tool_failures import refuse_asked

_CARRYING_MODULES = frozenset({
    "_abc", "_collections", "_collections_abc", "_functools", "_operator", "_thread", "_typing",
    "_weakref", "abc", "collections", "copy", "functools", "gc", "itertools", "operator", "types",
    "typing", "weakref",
})  # fmt: skip
_CARRYING_BUILTINS = frozenset({
    "__build_class__", "aiter", "all", "anext", "any", "bool", "callable", "classmethod", "dict",
    "enumerate", "filter", "format", "frozenset", "id", "isinstance", "issubclass", "iter", "len",
    "list", "map", "max", "min", "next", "object", "print", "property", "repr", "reversed", "set",
    "setattr", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "type", "zip",
})  # fmt: skip
_NAMED = frozenset({"getattr", "hasattr", "setattr", "delattr"})  # their second argument is a name
_CARRYING_RECEIVERS = (list, tuple, dict, set, frozenset, str)
_MAX_NESTED = 4


def carries(function: Any) -> bool:
    """Whether a function or type only passes its arguments on, or is written in Python."""
    if isinstance(function, type):
        return _is_carrying_type(function)
    if not isinstance(function, BuiltinMethodType):
        return True
    receiver = function.__self__
    if receiver is None or isinstance(receiver, ModuleType):
        name = function.__module__
        if name == "builtins":
            return function.__name__ in _CARRYING_BUILTINS | _NAMED
        return name in _CARRYING_MODULES or name is None
    if isinstance(receiver, type):
        return function.__name__ in ("__new__", "fromkeys") or not _is_of_c(receiver)
    if isinstance(receiver, (*_CARRYING_RECEIVERS, BaseException)):
        return True
    return type(receiver).__module__ in _CARRYING_MODULES | {"builtins"}


def _is_carrying_type(found: type) -> bool:
    return _is_carrying(found) or not _is_of_c(found)


def _is_of_c(found: type) -> bool:
    """Whether a class has a constructor in C, its own or an inherited one, that gets arguments."""
    for name in ("__new__", "__init__"):
        owner = next(base for base in found.__mro__ if name in vars(base))
        if owner is not object:
            if isinstance(vars(owner)[name], (FunctionType, staticmethod)):
                return False  # a constructor in Python, whose calls are seen
            return not _is_carrying(owner)
    return False


def _is_carrying(owner: type) -> bool:
    if owner.__module__ == "builtins":
        return owner.__name__ in _CARRYING_BUILTINS or issubclass(owner, BaseException)
    return owner.__module__ in _CARRYING_MODULES


def guarded(function: Any) -> FunctionType:
    """A wrapper that refuses abstract texts and lists as arguments."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if any(isinstance(each, AbstractList) or _holds(each, is_text) for each in given):
            refuse(function)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            _refuse_ours(error, function, given)
            raise

    assert isinstance(call, FunctionType)
    return call


def is_librarys(function: Any) -> bool:
    """Whether a function or type is of a module that only passes values on."""
    return getattr(function, "__module__", None) in _CARRYING_MODULES


def told_apart(function: Any) -> Callable[..., Any]:
    """A wrapper of a function that passes values on. If the function was given an abstract value,
    an error that it raises is not the program's."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            _refuse_ours(error, function, (*args, *kwargs.values()))
            raise

    return call


def _refuse_ours(error: Exception, function: Any, given: Iterable[Any]) -> None:
    """Stops the trace at an error that C code has raised on an abstract value: the code may ask for
    a type that the value will have at run time."""
    at = error.__traceback__
    if at is not None and at.tb_next is None and any(map(holds_abstract, given)):
        refuse(function)


def holds_abstract(value: Any) -> bool:
    """Whether a value is abstract, or a list, tuple or dict with such a part."""
    return _holds(value, is_abstract)


def _holds(value: Any, is_one: Callable[[Any], bool], n_left: int = _MAX_NESTED) -> bool:
    """Whether `is_one` is true of a value, or of a part of a list, tuple or dict."""
    if is_one(value):
        return True
    if not n_left or type(value) not in (list, tuple, dict):
        return False
    items = value.values() if type(value) is dict else value
    return any(_holds(each, is_one, n_left - 1) for each in items)


GUARDED = guarded(None).__code__  # calls in this code count as the program's


def by_name(function: Any) -> Callable[..., Any]:
    """`getattr` and the like, which refuse an abstract text as the name."""

    def call(*args: Any) -> Any:
        if len(args) > 1 and is_text(args[1]):
            refuse(function)
        return function(_asked(function, *args), *args[1:])

    return call


def _asked(function: Any, value: Any = None, name: Any = None, *others: Any) -> Any:
    """The value to ask for an attribute: a plain one of its type if it has no such attribute."""
    refuse_asked(value, name)
    if not is_abstract(value) or function not in (getattr, hasattr):
        return value
    if isinstance(value, AbstractJson):
        refuse(function)
    of = python_type(value)
    return value if not isinstance(name, str) or hasattr(of, name) else of()


def refuse(function: Any) -> None:
    name = getattr(function, "__qualname__", type(function).__name__)
    stop(
        f"{name}() reads a value known only at run time",
        IN_A_TOOL,
    )


def is_text(value: Any) -> bool:
    return isinstance(value, AbstractText) or marked(value)
