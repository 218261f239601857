"""A tool's failure while a program is traced: one decision, and one more for each exception class
that the handlers distinguish.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from sgc.core.failures import Told, are_one, can_be_one, is_programs, lowest, made_told
from sgc.core.places import is_ours
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.code import CodeError, parse_code
from sgc.ir.graph import Lit, Ref
from sgc.runtime.executor.code.classes.making import MODULE
from sgc.runtime.executor.interface.failures import class_name
from sgc.tracing.code.handlers import handled_classes
from sgc.tracing.kinds.row_types import OBJECT, plain
from sgc.tracing.values.computing import computed
from sgc.tracing.values.recorder import Recorder

# The attributes of a failure; given: the arguments of the code that raises it.
TOLD = ("why", "kind", "classes", "value", "is_code", "given")
_KNOWN = frozenset({"args", "with_traceback"})
# What a graph does not know of a failure: its cause, its notes and its traceback.
_UNTOLD = frozenset({
    "__cause__", "__context__", "__dict__", "__notes__", "__reduce__", "__reduce_ex__",
    "__setstate__", "__suppress_context__", "__traceback__",
})  # fmt: skip
_HINT = "use str(e) and type(e).__name__, and an `except` for each class; or " + INTERPRET
_ALWAYS = (Exception, BaseException)


class _Named(type):
    """The metaclass of classes whose name is known only at run time."""

    kind: Any

    def __getattribute__(cls, name: str) -> Any:
        if not is_ours(1):
            if name == "__name__":
                return cls.kind
            if name != "__doc__":
                stop(f"{name} of the class of a tool's failure", _HINT)
        return type.__getattribute__(cls, name)


class TracedTold(Told):
    """A failure whose classes are known as far as the program's handlers distinguish them."""

    def __repr__(self) -> str:
        told = self.__dict__
        if told["is_code"]:
            text: str = _of_code(self, "repr(error)", types.TEXT)
            return text
        return f"{told['kind']}({computed(told['session'], 'repr', told['why'])})"

    def __getattribute__(self, name: str) -> Any:
        if is_ours(1):
            return object.__getattribute__(self, name)
        if name == "__class__":  # `contextlib` treats a StopIteration as any other error
            is_library = sys._getframe(1).f_globals.get("__name__") == "contextlib"
            return type(self) if is_library else _refuse(name)
        return as_read(self, name)


def as_read(error: TracedTold, name: str) -> Any:
    """An attribute of a failure, as a line of the program reads it."""
    told = error.__dict__
    if not (told["is_code"] or name.startswith("__")):
        return Told.__getattribute__(error, name)  # of a tool's, only what it says is known
    if name == "args" and told["is_code"]:
        return _of_code(error, "error.args", OBJECT)
    if name == "args" and isinstance(error, KeyError):
        _refuse(name)  # the message of a KeyError is the key's repr
    if name == "msg" and isinstance(error, json.JSONDecodeError):
        return _message_of(error)
    if name in _OF_VALIDATION and _is_of_validation(type(error)):
        return _of_validation(error, name)
    is_special = name.startswith("__") and name.endswith("__")
    is_known = (name in _KNOWN or is_special) and name not in _UNTOLD
    if not (is_known or name.startswith("__")) and told["is_live"]:
        return _of_code(error, f"error.{name}", types.LIVE)
    return object.__getattribute__(error, name) if is_known else _refuse(name)


def _refuse(name: str) -> NoReturn:
    stop(f"{name} of a tool's failure, known only at run time", _HINT)


_VALIDATION = "pydantic_core._pydantic_core:ValidationError"
_OF_VALIDATION = {"errors": OBJECT, "error_count": types.INT, "json": types.TEXT}


def _is_of_validation(kind: type) -> bool:
    return any(f"{each.__module__}:{each.__name__}" == _VALIDATION for each in kind.__mro__)


def _of_validation(error: TracedTold, name: str) -> Any:
    """A method of pydantic's error, as code."""

    def call(**how: Any) -> Any:
        if not all(type(each) in (bool, int, type(None)) for each in how.values()):
            stop(f"{name} of an error takes True or False", INTERPRET)
        given = ", ".join(f"{key}={value!r}" for key, value in how.items())
        return _of_code(error, f"error.{name}({given})", _OF_VALIDATION[name])

    return call


def refuse_asked(value: Any, name: Any) -> None:
    """Stops the trace if `getattr` or the like asks for an attribute of a failure."""
    if isinstance(value, TracedTold):
        stop(f"{name} of a failure known only at run time is asked for", _HINT)


def _of_code(error: TracedTold, expression: str, type_: types.Type) -> Any:
    """The value of an expression of `error`, an error of code, which the code raises again."""
    told = error.__dict__
    session: Any = told["session"]
    if told["is_live"]:
        of = Symbol(told["symbol"].name, types.LIVE)
        code = f"def piece(error):\n    return {expression}"
        type_ = types.LIVE if type_ == OBJECT else type_
        return session.performed(code, (of,), (type_,))[0]
    if not told["code"]:
        stop("what an error of several pieces of code, or of one that changes data, holds", _HINT)
    try:
        code = _raising(told["code"], expression)
    except CodeError as refused:
        stop(f"what an error of code holds: {refused}", _HINT)
    # Not the operands of that code, which may have other values since paths have merged.
    args = tuple(map(session.operand, told["given"]))
    (symbol,) = session.emit("evaluate", [("v", type_)], code=Lit(code), args=args)
    session.copies.add(symbol.name)
    session.held.hold_frozen(symbol, told.get("kept", ()))
    return session.seen(session.read(symbol))


def is_object(error: TracedTold) -> bool:
    """Whether an error can be an argument of other code: only pydantic's, whose attributes and
    methods are all known to code."""
    return bool(error.__dict__["code"]) and _is_of_validation(type(error))


def as_object(error: TracedTold) -> Any:
    """An error of code, as a value that can be an argument of other code."""
    return _of_code(error, "error", OBJECT)


def _raising(code: str, expression: str) -> str:
    """Code that returns the value of an expression of `error`, the error that other code raises."""
    entry = parse_code(code).entry
    name = f"{entry.name}_error"
    while name in code:
        name += "_"
    params = ", ".join(each.arg for each in entry.args.args)
    made = (
        f"{code}\ndef {name}({params}):\n    try:\n        {entry.name}({params})\n"
        f"    except Exception as error:\n        return {expression}\n"
    )
    parse_code(made)
    return made


def _message_of(error: TracedTold) -> Any:
    """`msg` of an error of `json.loads`: the error's text without the place at its end."""
    session, told = error.__dict__["session"], error.__dict__
    return computed(session, "rpartition", told["why"], ": line ", 0)


def raise_failed(session: Recorder, value: Symbol) -> None:
    """Decides whether a call failed; if it did, raises the error that the handlers see."""
    kind_of = [("ok", types.BOOL), ("why", types.TEXT), ("kind", types.TEXT),
               ("classes", types.list_of(types.TEXT))]  # fmt: skip
    ok, why, kind, classes = session.emit("outcome", kind_of, value=Ref(value.name))

    def raising() -> NoReturn:
        _raise(session, value, why, kind, classes)

    if not session.decide(ok, raising):
        raising()


def _raise(
    session: Recorder, value: Symbol, why: Symbol, kind: Symbol, classes: Symbol
) -> NoReturn:
    # A row is read item by item, and a failed call has no items; errors of code meet whatever the
    # code would have returned.
    is_performed = session.is_performed(value)
    failed = Symbol(value.name, types.LIVE if is_performed else plain(value.type))
    code, given = session.code_of(value) or ("", ())
    told = {
        "code": code, "given": given,
        "why": session.read(why), "kind": session.read(kind), "classes": session.read(classes),
        "value": session.read(failed), "session": session,
        "is_code": session.is_code(failed),
    }  # fmt: skip
    told["is_live"] = is_performed
    told["symbol"] = value
    of = session if told["is_code"] else None
    source = session.source_of(value, "perform" if is_performed else "evaluate")

    def may_be(error: type) -> bool:
        if is_performed:
            return bool(session.sites.may_raise(source, error))  # type: ignore[attr-defined]
        return not (source and is_programs(error)) or error.__name__ in source

    raise _made(told, _matched(session, told["classes"], may_be, of))


def is_told(error: TracedTold, of: tuple[type, ...]) -> bool:
    """`isinstance(error, of)`, by a decision for each class that no handler has decided yet."""
    told = error.__dict__
    for each in of:
        if each in (*_ALWAYS, object) or issubclass(type(error), each):
            return True
        name = _name_of(each, told["session"] if told["is_code"] else None)
        if issubclass(each, Exception) and computed(told["session"], "has", told["classes"], name):
            return True
    return False


def _matched(
    session: Recorder, names: Any, may_be: Callable[[type], bool], of: Recorder | None
) -> tuple[type, ...]:
    """The handlers' classes that the failure belongs to, by a decision for each. may_be: whether
    the failure may be of a class; of: as in `_name_of`."""
    found: list[type] = []
    others: list[type] = []
    for each in handled_classes():
        if each in _ALWAYS or not issubclass(each, Exception):
            continue
        if any(issubclass(one, each) for one in found) or issubclass(each, tuple(others)):
            continue
        if not (can_be_one((each,)) or issubclass(each, BaseExceptionGroup)):
            stop(f"an `except` of {each.__name__}, a class that no other may derive from", _HINT)
        is_possible = (can_be_one if of is None else are_one)(lowest([*found, each]))
        if is_possible and may_be(each) and computed(session, "has", names, _name_of(each, of)):
            found.append(each)
        else:
            others.append(each)
    return lowest(found)


def _name_of(kind: type, session: Recorder | None) -> str:
    """A class's name among a failure's class names. session: given if code failed, which has its
    own classes in place of the program's."""
    own = None if session is None else session.sites.classes.get(kind.__name__)
    is_its = own is not None and own.kind is kind
    return f"{MODULE}:{kind.__name__}" if is_its else class_name(kind)


def _made(told: dict[str, Any], classes: tuple[type, ...]) -> BaseException:
    if any(type(each) is not type for each in classes):
        stop("a tool's failure is handled by the class of a metaclass")
    error = made_told("Told", classes, TracedTold, told["why"], told, {"metaclass": _Named})
    type(error).kind = told["kind"]  # type: ignore[attr-defined]
    return error
