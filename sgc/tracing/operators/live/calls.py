"""Calls that take live objects, where the expression around the call does not become code.

They call methods of live objects, Python's functions and classes, or the language's words, which
take texts and numbers.
"""

from __future__ import annotations

import builtins
import csv
import functools
import inspect
import io
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from random import Random
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
)
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.code import CodeError
from sgc.ir.code_names import BUILTINS
from sgc.lang.definition import Definition
from sgc.lang.maps import map as sgc_map
from sgc.lang.tools import Tool
from sgc.tracing.kinds.members import is_enumeration
from sgc.tracing.kinds.row_types import OBJECT
from sgc.tracing.operators.live.pieces import asks, born
from sgc.tracing.operators.live.results import FIXED, gives_of
from sgc.tracing.pieces.effects.kept_order import refuse_order_kept
from sgc.tracing.pieces.live import OF_PYTHON, cached_code, call_code
from sgc.tracing.pieces.text.classes import is_users
from sgc.tracing.pieces.text.constants import NotData
from sgc.tracing.pieces.text.library import READERS, known_library, pythons
from sgc.tracing.values.abstract import is_abstract
from sgc.tracing.values.live.abstract_live import AbstractLive, LiveMethod
from sgc.tracing.values.live.outside import is_outside


def method(value: Any) -> Any:
    """The object whose methods are called for a value."""
    return _Methods(value) if type(value) is AbstractLive else value


class _Methods:
    """The methods of a live object."""

    def __init__(self, of: AbstractLive) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        if name in OF_PYTHON or _asking(self._of.session, name):
            return functools.partial(_called, self._of, name)
        # Looked up before the arguments are evaluated, since they may replace the method.
        found = getattr(self._of, name)
        return functools.partial(_called_as, self._of, name, found)


def _asking(session: Any, name: str) -> bool:
    """Whether a class of the program has a method of that name that may ask a model."""
    return any(name in each for each in session.sites.asking.values())


def _called_as(of: AbstractLive, name: str, found: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of a method that was looked up."""
    if any(map(asks, (*args, *kwargs.values()))):
        return _called(of, name, *args, **kwargs)
    return _performed(of.session, "a", (found,), args, kwargs)


def _called(of: AbstractLive, name: str, *args: Any, **kwargs: Any) -> Any:
    """A call of a method: traced if it asks, else code."""
    session: Any = of.session
    methods, takes_asking = _methods(session, name), any(map(asks, (*args, *kwargs.values())))
    may_ask = any(name in session.sites.asking.get(each, ()) for each in methods)
    if may_ask or (methods and takes_asking):
        function = _chosen(of, methods)
        if function is not None:
            return session.entered(function)(of, *args, **kwargs)
        if takes_asking and name not in OF_PYTHON:
            raise AttributeError(f"the object has no method {name!r}")
    return _performed(session, f"a.{name}", (of,), args, kwargs)


def _methods(session: Any, name: str) -> dict[type, FunctionType]:
    """The methods of this name, by the program's classes that have one."""
    session.sites.looked_up.add(name)
    found = {}
    for each in session.sites.classes.values():
        value = inspect.getattr_static(each.kind, name, None)
        if isinstance(value, FunctionType):
            found[each.kind] = value
    return found


def _chosen(of: AbstractLive, methods: dict[type, FunctionType]) -> FunctionType | None:
    """The method of an object's class, by a decision for each class; None if it has none. A derived
    class, which may override the method, is tried before its bases."""
    for kind in sorted(methods, key=lambda each: -len(each.__mro__)):
        if _is_of(of, kind):
            return methods[kind]
    return None


def _is_of(of: AbstractLive, kind: type) -> Any:
    session: Any = of.session
    if of.kind is not None:
        return issubclass(of.kind, kind)
    return _performed(session, "isinstance", (), (of, kind), {}, isinstance)


def extends(of: Any) -> bool:
    """Whether `of.extend(…)` surely adds one item after the other, as `append` does; raises the
    error of Python for an object without this method."""
    if type(of) is not AbstractLive:
        return False
    session: Any = of.session
    if _methods(session, "extend") or _methods(session, "append"):
        return False
    code = (
        "from collections import deque\ndef piece(a):\n    a.extend\n"
        "    if not isinstance(a, (list, deque)):\n        raise TypeError('extended')"
    )
    session.performed(code, (of,), (types.LIVE,), is_whole=True)
    return True


@unhooked
def _performed(session: Any, *call: Any) -> Any:
    """The result of a call; stops the trace if it cannot become code. call: as for `_tried`."""
    try:
        return _tried(session, *call)
    except (NotData, CodeError) as error:
        stop(f"a call of a value known only at run time cannot become code: {error}", INTERPRET)


@unhooked
def _tried(
    session: Any,
    function: str,
    own: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    of: Any = None,
) -> Any:
    """The result of a call; raises NotData or CodeError if it cannot become code. function: the
    called expression, of `a` for the object in `own`; of: the function that it names."""
    args = tuple(session.as_live(_untaken(each)) for each in args)
    kwargs = {name: session.as_live(_untaken(each)) for name, each in kwargs.items()}
    code = call_code(session, function, own, args, kwargs, of)
    gives = gives_of(code.code, code.args)
    refuse_order_kept(code.code, code.lost, gives[0] not in FIXED)
    return session.performed(code.code, code.args, gives, is_whole=True)[0]


def live_callee(session: Any, function: Any, otherwise: Callable[[Any], Any]) -> Any:
    """The function to call instead of the given one, so that it takes live objects; else None."""
    if type(function) is LiveMethod:
        return functools.partial(_called, function.of, function.name)
    if type(function) is AbstractLive:
        return functools.partial(_called_as, function, "__call__", function)
    if isinstance(function, MethodType) and _is_of_language(function.__func__):
        return _fitted(function)
    if isinstance(function, FunctionType) and _is_of_language(function):
        return _fitted(function)
    if isinstance(function, Tool):
        return _Adopting(function, lambda value, _: value.as_(OBJECT))
    if isinstance(function, type) and issubclass(function, BaseException):
        return None
    own = pythons(function)
    may_take = _may_take(session, own)
    return _Taking(session, own, lambda: otherwise(function)) if may_take else None


def _may_take(session: Any, function: Any) -> bool:
    """Whether code may call a function, and so give it live objects. The traced program calls any
    other function itself, where what the function reads is watched."""
    if _is_method(function):
        of = function.__self__
        return type(of) not in _MUTABLE or is_outside(session, of)
    if isinstance(function, MethodDescriptorType):
        return function.__objclass__ in _OF_CODE
    if isinstance(function, functools._lru_cache_wrapper):
        return True
    if not isinstance(function, (type, BuiltinFunctionType, FunctionType)):
        return False
    is_pythons = getattr(builtins, getattr(function, "__name__", ""), None) is function
    if is_pythons:
        return function.__name__ in BUILTINS and function is not print
    return id(function) in known_library() or is_users(function)


def _is_of_language(function: Any) -> bool:
    return (getattr(function, "__module__", None) or "").startswith(("sgc.lang.", "sgc.programs."))


def _is_method(function: Any) -> bool:
    """Whether a function is a method of a text, list, dict or set, as `words.intersection` is."""
    of = function.__self__ if isinstance(function, BuiltinMethodType) else None
    return type(of) in _MUTABLE or isinstance(of, (str, frozenset))


def _untaken(value: Any) -> Any:
    """Python's own function, for the replacement that converted code passes."""
    return value._function if type(value) is _Taking else value


class _Taking:
    """A function, a class, or a method of a text or of a module's list, dict or set, that may take
    live objects."""

    def __init__(self, session: Any, function: Any, otherwise: Callable[[], Any]) -> None:
        self._session, self._function, self._otherwise = session, function, otherwise

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if any(map(asks, given)):
            return self._otherwise()(*args, **kwargs)
        function, name = self._function, ""
        is_reader = getattr(function, "__module__", None) in READERS
        if not any(map(_holds, given)) and not (is_reader and any(map(is_abstract, given))):
            return self._made(args, kwargs)
        own: tuple[Any, ...] = ()
        of: Any = None
        if _is_method(function):
            own, name = (function.__self__,), f"a.{function.__name__}"
        elif isinstance(function, MethodDescriptorType):
            name = f"{function.__objclass__.__name__}.{function.__name__}"
        else:
            name, of = function.__name__, function
        try:
            return _of_kind(_tried(self._session, name, own, args, kwargs, of), function)
        except (NotData, CodeError) as error:
            if function is zip:  # of a known list and a live one
                return self._otherwise()(*args, **kwargs)
            stop(f"{name}() is given a value known only at run time: {error}", INTERPRET)

    def _made(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call without live objects: a new live object, if it can be changed."""
        function = self._function
        is_seeded = function is Random and bool(args)
        is_users_own = is_users(function) and not is_enumeration(function)
        if function in _MAKING or is_seeded or is_users_own:
            try:
                found = _tried(self._session, function.__name__, (), args, kwargs, function)
                return _of_kind(found, function)
            except (NotData, CodeError):
                pass  # the call cannot become code
        return self._otherwise()(*args, **kwargs)


def uncached(function: Any) -> Any:
    """A stand-in for the decorator of a function whose results `cached` keeps."""
    return function


def cached(function: Any, decorator: Any) -> Any:
    """`decorator(function)`; the results of a function that uses live objects stay in the run."""
    session: Any = current_session()
    caches = functools.cache, functools.lru_cache
    is_cache = any(decorator is each for each in caches) or _is_lru(decorator)
    if session is not None and session.is_tracing and session.sites.is_live and is_cache:
        found = _live_cached(session, function)
        if found is not None:
            return found
    return decorator(function)


def _is_lru(decorator: Any) -> bool:
    """Whether a decorator is `lru_cache(maxsize=…)` without `typed=True`."""
    of = getattr(decorator, "__qualname__", "")
    if of != "lru_cache.<locals>.decorating_function" or decorator.__module__ != "functools":
        return False
    cells = dict(zip(decorator.__code__.co_freevars, decorator.__closure__, strict=True))
    return not cells["typed"].cell_contents


@unhooked
def _live_cached(session: Any, function: Any) -> Any:
    try:
        code = cached_code(session, function)
        if not any(type(each) is AbstractLive for each in code.args):
            return None
        refuse_order_kept(code.code, code.lost, True)
        return session.performed(code.code, code.args, (types.LIVE,), is_whole=True)[0]
    except (NotData, CodeError):
        return None


def _of_kind(found: Any, function: Any) -> Any:
    """The result of a call, with its class noted if a class was called."""
    if type(found) is AbstractLive and isinstance(function, type):
        found.note_kind(function)
    return found


_MUTABLE = frozenset({list, dict, set})
_OF_CODE = frozenset({str, int, float, list, dict, set, tuple})  # their methods, `str.title`
_MAKING = frozenset({
    list, dict, set, deque, Counter, defaultdict, OrderedDict, io.StringIO,
    csv.DictReader, csv.DictWriter, csv.reader, csv.writer,
})  # fmt: skip


def _holds(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_holds, value))
    return type(value) is AbstractLive


class _Fitting:
    """A word of the language, a method of a stream, or a tool. fit: converts a live object to an
    argument, by the parameter's annotation."""

    def __init__(self, function: Any, fit: Callable[[AbstractLive, str], Any]) -> None:
        self._function, self._fit = function, fit

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = tuple(map(_untaken, args))
        kwargs = {name: _untaken(each) for name, each in kwargs.items()}
        if any(type(each) is AbstractLive for each in (*args, *kwargs.values())):
            args, kwargs = self._fitted(args, kwargs)
        return self._function(*args, **kwargs)

    def _fitted(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        python = getattr(self._function, "python", self._function)
        told = _annotations(getattr(python, "__func__", python))
        names = [*told][isinstance(python, MethodType) :]
        names += ["*"] * len(args)
        mapped = {}
        if self._function is sgc_map and isinstance(args[0], Definition):
            mapped = {each.name: each.type for each in args[0].signature.parameters}

        def of_mapped(value: Any, name: str) -> Any:
            is_one = type(value) is AbstractLive and name in mapped and name not in told
            return value.as_(mapped[name]) if is_one else fit(value, name)

        def fit(value: Any, name: str) -> Any:
            return self._fit(value, told.get(name, "")) if type(value) is AbstractLive else value

        return (
            tuple(fit(value, name) for name, value in zip(names, args, strict=False)),
            {name: of_mapped(value, name) for name, value in kwargs.items()},
        )


class _Adopting(_Fitting):
    """A tool, whose result is live."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return born(super().__call__(*args, **kwargs))


def _annotations(function: Any) -> dict[str, str]:
    return {
        name: str(each.annotation) for name, each in inspect.signature(function).parameters.items()
    }


def _fitted(function: Any) -> _Fitting:
    return _Fitting(function, fit)


def fit(value: AbstractLive, annotation: str) -> Any:
    """A live object as an argument of a word, by the annotation of its parameter."""
    if "Appendable" in annotation:
        return value  # a text, by a decision, when it is appended
    if "Sequence[str]" in annotation or "list[str]" in annotation:
        return value.as_(types.list_of(types.TEXT))
    if "int" in annotation and "float" not in annotation:
        return value.as_(types.INT)
    if "float" in annotation:
        return value.as_(types.FLOAT)
    if "bool" in annotation:
        return value.as_(types.BOOL)
    if "Any" in annotation and "str" not in annotation:
        return value.as_(OBJECT)
    return value.as_(types.TEXT)
