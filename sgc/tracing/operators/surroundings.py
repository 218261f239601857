"""Functions and names of Python that depend on a program's process, or change it.

The hook of `watch/hook.py` sees the C functions that read clocks and files, whoever calls them. The
functions listed here are refused only where the program's own code calls them: Python's libraries
call them too, and the program may not depend on the result.
"""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Callable
from contextvars import ContextVar
from datetime import date, datetime
from functools import _lru_cache_wrapper
from types import BuiltinMethodType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from sgc.core.session import current_session
from sgc.tracing.code.process_names import NAMES_OF_PROCESS, PYTHON, ZONE
from sgc.tracing.operators.reading import refuse
from sgc.tracing.values.abstract import is_abstract

_ALL = frozenset[str]()
_HEAP_TYPE = 1 << 9
_THREAD, _ERROR = "asks for its thread", "asks for the error that is handled"
_LOCALE = "asks for the locale"
_CONTEXT, _FRAMES = "asks for its context", "asks for the frames that run"

# What functions of Python's modules ask about: by module, all of them or those named.
_ASKING: dict[str, tuple[str, frozenset[str]]] = {
    "threading": (_THREAD, _ALL),
    "_thread": (_THREAD, frozenset({"get_ident", "get_native_id", "_count", "stack_size"})),
    "gc": (PYTHON, _ALL),
    "sys": (PYTHON, _ALL),
    "site": (PYTHON, _ALL),
    "sysconfig": (PYTHON, _ALL),
    "platform": ("asks about its machine", _ALL),
    "mimetypes": ("asks about its machine", _ALL),
    "resource": ("asks about its process", _ALL),
    "_signal": ("asks about its process", _ALL),
    "signal": ("asks about its process", _ALL),
    "getpass": ("asks about its process", _ALL),
    "multiprocessing.process": ("asks about its process", _ALL),
    "multiprocessing.context": ("asks about its process", _ALL),
    "tracemalloc": (PYTHON, _ALL),
    "_tracemalloc": (PYTHON, _ALL),
    "locale": (_LOCALE, _ALL),
    "_locale": (_LOCALE, _ALL),
    "linecache": ("reads files", _ALL),
    "tempfile": ("asks for a folder", _ALL),
    "traceback": (_ERROR, _ALL),
    "inspect": (_FRAMES, frozenset({"currentframe", "stack", "trace"})),
    "decimal": (_CONTEXT, frozenset({"getcontext", "setcontext", "localcontext"})),
    "contextvars": (_CONTEXT, _ALL),
    "_contextvars": (_CONTEXT, _ALL),
    "asyncio.events": (_THREAD, _ALL),
    "_asyncio": (_THREAD, _ALL),
    "time": (ZONE, frozenset({"mktime", "tzset"})),
    "builtins": ("reads names that no trace follows", frozenset({"globals"})),
}
_CHANGING: dict[str, tuple[str, frozenset[str]]] = {
    "gc": ("changes its Python", frozenset({"collect", "disable", "enable", "freeze", "unfreeze"})),
    "sys": ("changes its Python", frozenset({"setprofile", "settrace", "setswitchinterval"})),
    "locale": ("changes the locale", frozenset({"setlocale"})),
    "calendar": ("changes its process", frozenset({"setfirstweekday"})),
    "faulthandler": ("changes its process", _ALL),
    "warnings": (
        "changes which warnings are shown",
        frozenset({"simplefilter", "filterwarnings", "resetwarnings"}),
    ),
    "logging": (
        "changes how it logs",
        frozenset(
            {
                "addLevelName",
                "basicConfig",
                "captureWarnings",
                "disable",
                "setLogRecordFactory",
                "setLoggerClass",
                "shutdown",
            }
        ),
    ),
    "logging.config": ("changes how it logs", _ALL),
    "importlib": ("changes its modules", frozenset({"reload", "invalidate_caches"})),
    "builtins": ("runs code that no trace follows", frozenset({"breakpoint"})),
}
# Functions of the modules above whose result depends on their arguments alone.
_PURE = frozenset({
    ("sys", "exit"), ("sys", "intern"), ("sys", "getdefaultencoding"), ("locale", "normalize"),
    ("threading", "Lock"), ("threading", "RLock"),
})  # fmt: skip
# Methods that depend on the process or change it, by the class of their object.
_METHODS: tuple[tuple[Any, frozenset[str], str], ...] = (
    (ContextVar, frozenset({"get", "set", "reset"}), _CONTEXT),
    (io.IOBase, frozenset({"isatty", "fileno"}), "asks about its terminal"),
    (_lru_cache_wrapper, frozenset({"cache_info", "cache_clear"}), "asks what a cache has"),
)
_IN_LOCAL_TIME = frozenset({"timestamp", "astimezone"})  # of a date without a zone


def read_of(module: str, name: str, value: Any) -> Any:
    """A value that the program reads from one of Python's modules, by a name listed above."""
    session: Any = current_session()
    if session is not None and session.is_tracing and _is_named(value, module, name):
        session.meet_surroundings(NAMES_OF_PROCESS[module][name])
    return value


def _is_named(value: Any, module: str, name: str) -> bool:
    found = getattr(sys.modules.get(module), name, None)
    return value is found or (type(value) is list and value == found)  # a copy of a global


def refuse_asking(session: Any, function: Any, frame: FrameType) -> Any:
    """The function that the program's code is about to call; stops the trace if the function asks
    about the process or changes it. For one that asks only with some arguments, returns a wrapper
    that checks the arguments."""
    if isinstance(function, FunctionType):
        name, module = function.__name__, function.__module__
    elif isinstance(function, MethodType):
        name, module = getattr(function, "__name__", ""), ""
    elif isinstance(function, BuiltinMethodType):
        name, module = function.__name__, _module_of(function)
    else:
        return function
    key = (module, name)
    if name == "fromtimestamp" and _is_date(function.__self__):
        key = ("datetime", name)
    if key in _BY_ARGUMENTS:
        return _asking_of(function, *_BY_ARGUMENTS[key], frame)
    is_seeding = getattr(function, "__self__", None) is _GENERATOR and name in ("seed", "setstate")
    if is_seeding or _is_listed(_CHANGING, key):
        what = "seeds the generator of all" if is_seeding else _CHANGING[module][0]
        session.meet_surroundings(what, is_change=True)
    elif _is_listed(_ASKING, key):
        session.meet_surroundings(_ERROR if name in _OF_ERRORS else _ASKING[module][0])
    elif (told := _of_method(function, name)) is not None:
        session.meet_surroundings(told)
    return function


_GENERATOR = getattr(random, "_inst", None)
_OF_ERRORS = frozenset({"exc_info", "exception"})


def _module_of(function: Any) -> str:
    of = function.__self__
    is_free = of is None or isinstance(of, ModuleType)
    return str(function.__module__ or "") if is_free else ""


def _is_listed(table: dict[str, tuple[str, frozenset[str]]], key: tuple[str, str]) -> bool:
    found = table.get(key[0])
    return found is not None and (not found[1] or key[1] in found[1]) and key not in _PURE


def _of_method(function: Any, name: str) -> str | None:
    of = getattr(function, "__self__", None)
    if of is None or isinstance(of, ModuleType):
        return None
    for kind, names, what in _METHODS:
        if name in names and isinstance(of, kind):
            return what
    is_local = name in _IN_LOCAL_TIME and isinstance(of, datetime) and of.tzinfo is None
    return ZONE if is_local else None


# -- functions that ask only with some arguments ---------------------------------------------


def _asking_of(
    function: Callable[..., Any],
    asks: Callable[[FrameType, tuple[Any, ...], dict[str, Any]], bool],
    what: str,
    frame: FrameType,
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        session: Any = current_session()
        if asks(frame, args, kwargs):
            session.meet_surroundings(what)
        return function(*args, **kwargs)

    call.__name__ = function.__name__
    return call


def _is_hash_seen(frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a hash that differs from process to process is used outside of a `__hash__`."""
    if any(map(is_abstract, args)):
        refuse(hash)
    return frame.f_code.co_name != "__hash__" and not all(map(_is_numeric, args))


def _is_numeric(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_numeric, value))
    return isinstance(value, (bool, int, float, complex))


def _is_lasting(frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an object's address may be the same in all runs of a trace, and so stay unnoticed: an
    object made by the program has another address in each run."""
    session: Any = current_session()
    return not all(_is_made_anew(each) and not session.is_outside(each) for each in args)


def _is_made_anew(value: Any) -> bool:
    kind = type(value)
    return kind in (list, dict, set) or bool(kind.__flags__ & _HEAP_TYPE)


def _is_alone(frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return len(args) + len(kwargs) < 2


def _is_date(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, date)


_BY_ARGUMENTS: dict[tuple[str, str], tuple[Any, str]] = {
    ("builtins", "hash"): (_is_hash_seen, "asks for a hash, which differs from process to process"),
    ("builtins", "id"): (_is_lasting, "asks for the address of an object"),
    ("time", "strftime"): (_is_alone, "reads the clock"),
    ("datetime", "fromtimestamp"): (_is_alone, ZONE),
}
