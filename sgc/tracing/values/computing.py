"""Records functions of abstract values; computes them at once if the values' domains are known.

A function that can fail is a decision first: on the path where it fails, Python's own exception is
raised with an abstract message, so that the program's `except` sees it.
"""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from sgc.core.markers import has_marker, split_markers
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import has_symbol, symbol_in
from sgc.core.watching import unhooked
from sgc.errors import SgcError
from sgc.ir import types
from sgc.ir.functions import FUNCTIONS
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.ops.functions import EXCEPTIONS, evaluate, failure
from sgc.tracing.kinds.text_types import Known, domain, is_textual
from sgc.tracing.values.recorder import Recorder

if TYPE_CHECKING:
    from sgc.core.symbols import Symbol

MAX_DOMAIN = 256  # combinations of arguments for which a function is computed while tracing
_FAILURES: tuple[type[Exception], ...] = (SgcError, *EXCEPTIONS.values())
_PLAIN = (str, int, float, bool, type(None))


@unhooked
def computed(session: Recorder, fn: str, *args: Any, type_: Type | None = None) -> Any:
    """The value of a function that cannot fail here: abstract, or plain if it is known."""
    given = [_given(session, arg) for arg in args]
    outcomes = _outcomes(session, fn, given)
    if outcomes and all(type(each) in _PLAIN for each in outcomes):
        first = outcomes[0]
        if all(type(each) is type(first) and each == first for each in outcomes):
            _note_pruned(session, fn, given, first)
            return first
    value = session.compute(fn, *given, type_=type_)
    if outcomes and all(type(each) is str for each in outcomes):
        note_known(session, value, Known(options=tuple(dict.fromkeys(outcomes))))
    return value


@unhooked
def attempted(
    session: Recorder,
    fn: str,
    *args: Any,
    type_: Type | None = None,
    errors: tuple[str, ...] = (),
) -> Any:
    """The value of a function; on a path where it fails, raises the exception that Python would.

    errors: the names of the exceptions that the arguments can cause; by default, all that the
    function's row names.
    """
    given = [_given(session, arg) for arg in args]
    if not _never_fails(session, fn, given):
        names = errors or FUNCTIONS[fn].errors

        def raising(why: Any) -> NoReturn:
            _raise(session, names, why, fn, given)

        why = session.attempt(fn, *given, raising=raising)
        if why is not None:
            raising(why)
    return computed(session, fn, *given, type_=type_)


def formatted_by(session: Recorder, value: Any, spec: str) -> Any:
    """`format(value, spec)` with a specification known only at run time."""
    return session.coded(_FORMAT, (value, str.__str__(spec)), types.TEXT)


_FORMAT = "def piece(a, b):\n    return format(a, b)"


def note_known(session: Recorder, value: Any, known: Known) -> None:
    """Records what is known of a value that was just made."""
    symbol = symbol_of(value)
    if symbol is not None:
        session.known[symbol.name] = known


def symbol_of(value: Any) -> Symbol | None:
    """The symbol that an abstract value stands for; None for texts of several pieces."""
    if isinstance(value, str):
        if not has_marker(value):
            return None
        session, number = getattr(value, "session", None), _lone_marker(value)
        return session.symbol_of(number) if session is not None and number is not None else None
    found: Symbol | None = symbol_in(value)
    return found


def _given(session: Recorder, value: Any) -> Any:
    """An argument as the session takes it: of a plain type or abstract, with texts as texts."""
    kind = type(value)
    if isinstance(value, str) and has_marker(value):
        return _as_text(session, value)
    if isinstance(value, str):
        return str.__str__(value) if kind is not str else value
    if kind in _PLAIN or has_symbol(value):
        return value
    if isinstance(value, (list, tuple)):
        return [_given(session, item) for item in value]
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value


def pieces_of(text: str) -> list[str | int]:
    """The pieces of a marked text; stops the trace at a marker that was cut apart."""
    try:
        return split_markers(str.__str__(text))
    except ValueError:
        stop(
            "a text was cut or changed through a value known only at run time",
            hint="use the value whole; " + INTERPRET,
        )


def _lone_marker(text: str) -> int | None:
    """The number of a text's marker, if the text is nothing else."""
    pieces = pieces_of(text)
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], int) else None


def _as_text(session: Recorder, text: str) -> Any:
    """A marked text; if it is only the marker of a number, the number's text."""
    number = _lone_marker(text)
    if number is not None and not is_textual(session.symbol_of(number).type):
        return session.compute("str", session.symbol_of(number))
    return text


def _domain(session: Recorder, value: Any) -> tuple[Any, ...] | None:
    """The values that an argument may have, if they are known and few."""
    if isinstance(value, str):
        if not has_marker(value):
            return (value,)
        number = _lone_marker(value)
        return None if number is None else domain(session.symbol_of(number), session)
    return (value,) if type(value) in _PLAIN else None


def _arguments(session: Recorder, args: list[Any]) -> Iterator[tuple[Any, ...]] | None:
    """All combinations of arguments, if they are known and few."""
    domains, n = [], 1
    for arg in args:
        found = _domain(session, arg)
        if found is None or (n := n * len(found)) > MAX_DOMAIN:
            return None
        domains.append(found)
    return itertools.product(*domains)


def _outcomes(session: Recorder, fn: str, args: list[Any]) -> list[Any] | None:
    found = _arguments(session, args)
    if found is None:
        return None
    try:
        return [evaluate(fn, *each) for each in found]
    except _FAILURES:
        return None


def _never_fails(session: Recorder, fn: str, args: list[Any]) -> bool:
    found = _arguments(session, args)
    try:
        return found is not None and all(failure(fn, *each) is None for each in found)
    except SgcError:
        return False


def _note_pruned(session: Recorder, fn: str, args: list[Any], result: Any) -> None:
    """Records a test whose outcome is known, if the session can."""
    note = getattr(session, "note_pruned", None)
    if note is not None and isinstance(result, bool):
        shown = ", ".join(
            session.shown(arg) if isinstance(arg, str) and has_marker(arg) else repr(arg)
            for arg in args
        )
        note(f"{fn}({shown}) is always {result}")


class UnknownJSONError(json.JSONDecodeError):
    """The error that `json.loads` raises for an abstract text."""

    def __init__(self, why: str) -> None:
        ValueError.__init__(self, why)

    def __getattr__(self, name: str) -> Any:
        if name == "msg":
            why = self.args[0]
            return computed(why.session, "rpartition", why, ": line ", 0)
        if name in _NUMBERS:
            before, after = _NUMBERS[name]
            code = _NUMBER.format(before=before, after=after)
            return self.args[0].session.coded(code, (self.args[0],), types.INT)
        if name == "doc":
            stop(f"{name} of an error known only at run time", "use str(error)")
        raise AttributeError(name)

    def __reduce__(self) -> Any:
        return UnknownJSONError, self.args


# The places of the numbers in the message of such an error: "…: line 1 column 5 (char 4)".
_NUMBERS = {"lineno": (": line ", " "), "colno": (" column ", " "), "pos": ("(char ", ")")}
_NUMBER = "def piece(a):\n    return int(a.rpartition({before!r})[2].partition({after!r})[0])"
UnknownJSONError.__name__ = UnknownJSONError.__qualname__ = "JSONDecodeError"


def _raise(
    session: Recorder, errors: tuple[str, ...], why: Any, fn: str, args: list[Any]
) -> NoReturn:
    """Raises the exception that the function would raise, by decisions if it may raise several."""
    for name in errors[:-1]:
        if session.compute("raises", name, fn, *args):
            _raise_one(name, why, args)
    _raise_one(errors[-1], why, args)


def _raise_one(name: str, why: Any, args: list[Any]) -> NoReturn:
    if name == "JSONDecodeError":
        raise UnknownJSONError(why)
    # A KeyError holds the key; Python shows it by repr.
    raise EXCEPTIONS[name](args[1] if name == "KeyError" else why)


def whole(value: Any) -> Any:
    """A whole number as an argument: an abstract number, or any value that Python takes as one."""
    symbol = symbol_in(value)
    if symbol is not None and symbol.type.kind is Kind.JSON:
        stop(
            "a value whose type is known only at run time is used as a number or as a key",
            hint="write int(v) or str(v); or " + INTERPRET,
        )
    return value if value is None or has_symbol(value) else operator.index(value)


def is_untyped(key: Any) -> bool:
    """Whether a key or index is a value whose type is known only at run time."""
    symbol = symbol_in(key)
    return symbol is not None and symbol.type.kind is Kind.JSON and not isinstance(key, str)


def part_by(whole: Any, key: Any, type_: Type) -> Any:
    """`whole[key]` for a key of unknown type, noted as a part that others also hold, or Python's
    error for such a key; None for other keys."""
    if not is_untyped(key):
        return None
    session = whole.session
    found = session.coded("def piece(a, b):\n    return a[b]", (whole, key), type_)
    if has_symbol(found):
        session.copies.add(found.symbol.name)
    return found
