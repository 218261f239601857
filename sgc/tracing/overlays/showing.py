"""`print`, `sys.stdout.write`, loggers and `warnings.warn` show when the program runs."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from io import TextIOBase
from typing import Any, NoReturn

from sgc.core.session import Session, current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir.graph import Lit
from sgc.ir.types import BOOL, TEXT
from sgc.runtime.executor.interface.tools import warning_class
from sgc.tracing.operators.calls import KNOWING, STANDING
from sgc.tracing.operators.percent import modulo
from sgc.tracing.values.abstract import AbstractJson, AbstractNumber, is_abstract
from sgc.tracing.values.computing import computed


def _tracing() -> Session | None:
    """The session of the program that is traced; a check captures what the program shows."""
    session = current_session()
    return session if session is not None and session.is_tracing else None


def printing(
    *args: Any, sep: str | None = None, end: str | None = None, file: Any = None, flush: Any = False
) -> None:
    """`print`; into a file of the program's own at once."""
    session = _tracing()
    to = None if session is None else session.shown_on(file)
    if session is None or (to is None and not any(map(is_abstract, args))):
        print(*args, sep=sep, end=end, file=file, flush=flush)
        return
    texts = [each if isinstance(each, str) else str(each) for each in args]
    text = (" " if sep is None else sep).join(texts) + ("\n" if end is None else end)
    if to is None:
        (sys.stdout if file is None else file).write(text)
    elif text:
        _show(session, text, to)


def warning(
    message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any
) -> None:
    """`warnings.warn`, of one of Python's own classes of warnings."""
    session = current_session()
    if session is None:
        warnings.warn(message, category, stacklevel + 1, source, **more)
        return
    if isinstance(message, Warning):
        category = type(message)
    name = getattr(category or UserWarning, "__name__", "")
    if category is not None and warning_class(name) is not category:
        stop(f"a warning of the class {name}", "warn of one of Python's own, or " + INTERPRET)
    kind = category or UserWarning
    if any(each[0] == "error" and issubclass(kind, each[2]) for each in warnings.filters):
        stop("a warning that is an error here, which the program may handle", INTERPRET)
    _show(session, _text(message), "warnings", name)


def _show(session: Session, text: Any, to: str, name: str = "", level: int = 0) -> None:
    fields: dict[str, Any] = {"text": session.operand(text), "to": Lit(to)}
    if name:
        fields["name"] = Lit(name)
    if level:
        fields["level"] = Lit(level)
    session.emit("show", [("shown", BOOL)], **fields)


def _text(message: Any) -> Any:
    return message if isinstance(message, str) else str(message)


class ShowingStream:
    """Stands for an open text file. What is written to one that the program prints to is shown."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        session = _tracing()
        to = None if session is None else session.shown_on(self._file)
        if session is None or to is None or name not in _WRITES:
            return getattr(self._file, name)
        return partial(_WRITES[name], session, to)


def _write(session: Any, to: str, text: Any) -> Any:
    if not isinstance(text, str):
        raise TypeError(f"write() argument must be str, not {type(text).__name__}")
    _show(session, text, to)
    return computed(session, "len", text) if is_abstract(text) else len(text)


def _write_all(session: Session, to: str, texts: Any) -> None:
    for each in texts:
        _write(session, to, each)


_WRITES = {"write": _write, "writelines": _write_all}


class ShowingLogger:
    """Stands for a logger."""

    def __init__(self, logger: logging.Logger) -> None:
        object.__setattr__(self, "_logger", logger)

    def __setattr__(self, name: str, value: Any) -> None:
        _refuse_change()

    def __getattr__(self, name: str) -> Any:
        if name in _LEVELS:
            return _logging(self._logger.name, _LEVELS[name])
        if name == "log":
            return lambda level, *args, **more: _logging(self._logger.name, level)(*args, **more)
        if name in _CHANGES:
            _refuse_change()
        return _whole if name == "exception" else getattr(self._logger, name)


def _refuse_change() -> NoReturn:
    stop("a logger is changed", "set it up outside of the program; or " + INTERPRET)


def _logging(name: str, level: Any) -> Callable[..., None]:
    def log(message: Any, *args: Any, **more: Any) -> None:
        session = _tracing()
        if session is None:
            logging.getLogger(name or None).log(level, message, *args, **more)
            return
        if more.get("exc_info") or more.get("stack_info") or "extra" in more:
            _whole()
        if type(level) is not int:
            stop(
                "a line of a log whose level is known only at run time",
                hint="log it in a branch for each level; or " + INTERPRET,
            )
        text = _text(message)
        _show(session, _filled(session, text, args) if args else text, "log", name, level)

    return log


def _filled(session: Any, template: Any, args: tuple[Any, ...]) -> Any:
    """The template with its arguments, which may be the one dict of them."""
    is_named = len(args) == 1 and isinstance(args[0], Mapping) and args[0]
    given = args[0] if is_named else tuple(map(_data, args))
    is_simple = not any(isinstance(each, AbstractJson | AbstractNumber) for each in args)
    if is_named or is_simple or type(template) is not str:
        return modulo(template, given)
    names = "".join(f"x{n}, " for n in range(len(given)))
    code = f"def piece(template, {names}):\n    return template % ({names})"
    return session.coded(code, (template, *given), TEXT)


def _data(value: Any) -> Any:
    """An argument of a log's line; an object, such as an error, is shown by its text."""
    is_data = is_abstract(value) or isinstance(value, (str, int, float, list, tuple, dict, set))
    return value if is_data or value is None else str(value)


def _whole(*_: Any, **__: Any) -> None:
    stop(
        "a line of a log with a traceback, or with values beside its text",
        hint="log the error's text: logger.error('…: %s', error); or " + INTERPRET,
    )


_LEVELS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING,
    "warn": logging.WARNING, "error": logging.ERROR, "critical": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}  # fmt: skip
_CHANGES = frozenset({"addFilter", "addHandler", "removeFilter", "removeHandler", "setLevel"})
# Functions of Python's, with what stands for them where a program reads its own names.
SHOWING: dict[Any, Callable[..., Any]] = {
    print: printing,
    warnings.warn: warning,
    logging.log: lambda level, *args, **more: _logging("", level)(*args, **more),
    logging.exception: _whole,
    logging.getLogger: lambda name=None: ShowingLogger(logging.getLogger(name)),
    **{getattr(logging, name): _logging("", level) for name, level in _LEVELS.items()},
}
KNOWING.update(SHOWING)
STANDING[TextIOBase] = ShowingStream
STANDING[logging.Logger] = STANDING[logging.RootLogger] = ShowingLogger
