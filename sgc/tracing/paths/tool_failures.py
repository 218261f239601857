"""A tool's failure while a program is traced: one decision, and one more for each exception class
that the handlers distinguish.
"""

from __future__ import annotations

import json
from typing import Any

from sgc.core.failures import Told, can_be_one, lowest, made_told
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.graph import Ref
from sgc.runtime.executor.interface.failures import class_name
from sgc.tracing.code.handlers import handled_classes
from sgc.tracing.kinds.row_types import plain
from sgc.tracing.values.computing import computed, is_ours
from sgc.tracing.values.recorder import Recorder

TOLD = ("why", "kind", "classes", "value", "is_code")  # the attributes of a failure
_KNOWN = frozenset({"args", "with_traceback", "add_note"})
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
        return f"{told['kind']}({computed(told['session'], 'repr', told['why'])})"

    def __getattribute__(self, name: str) -> Any:
        if not is_ours(1):
            is_known = name in _KNOWN or (name.startswith("__") and name.endswith("__"))
            if name == "args" and isinstance(self, KeyError):
                is_known = False  # the message of a KeyError is the key's repr
            if name == "msg" and isinstance(self, json.JSONDecodeError):
                return _message_of(self)
            if name == "__class__" or not is_known:
                stop(f"{name} of a tool's failure, known only at run time", _HINT)
        return object.__getattribute__(self, name)


def _message_of(error: TracedTold) -> Any:
    """`msg` of the error of `json.loads`, whose text goes on with the place."""
    session, told = error.__dict__["session"], error.__dict__
    if not told["is_code"]:  # a tool may say it otherwise
        stop("msg of a tool's failure, known only at run time", _HINT)
    return computed(session, "rpartition", told["why"], ": line ", 0)


def raise_failed(session: Recorder, value: Symbol) -> None:
    """Decides whether a call failed; if it did, raises the error that the handlers see."""
    kind_of = [("ok", types.BOOL), ("why", types.TEXT), ("kind", types.TEXT),
               ("classes", types.list_of(types.TEXT))]  # fmt: skip
    ok, why, kind, classes = session.emit("outcome", kind_of, value=Ref(value.name))
    if session.decide(ok):
        return
    # A row is read item by item, and what failed has none.
    failed = Symbol(value.name, plain(value.type))
    told = {
        "why": session.read(why), "kind": session.read(kind), "classes": session.read(classes),
        "value": session.read(failed), "session": session,
        "is_code": session.is_code(failed),
    }  # fmt: skip
    raise _made(told, _matched(session, told["classes"]))


def is_told(error: TracedTold, of: tuple[type, ...]) -> bool:
    """`isinstance(error, of)`; a decision for each class that the handlers have not decided."""
    told = error.__dict__
    for each in of:
        if each in (*_ALWAYS, object) or issubclass(type(error), each):
            return True
        if issubclass(each, Exception) and computed(
            told["session"], "has", told["classes"], class_name(each)
        ):
            return True
    return False


def _matched(session: Recorder, names: Any) -> tuple[type, ...]:
    """The handlers' classes that the failure belongs to, by a decision for each."""
    found: list[type] = []
    others: list[type] = []
    for each in handled_classes():
        if each in _ALWAYS or not issubclass(each, Exception):
            continue
        if any(issubclass(one, each) for one in found) or issubclass(each, tuple(others)):
            continue
        is_possible = can_be_one(lowest([*found, each]))
        if is_possible and computed(session, "has", names, class_name(each)):
            found.append(each)
        else:
            others.append(each)
    return lowest(found)


def _made(told: dict[str, Any], classes: tuple[type, ...]) -> BaseException:
    if any(type(each) is not type for each in classes):
        stop("a tool's failure is handled by the class of a metaclass")
    error = made_told("Told", classes, TracedTold, told["why"], told, {"metaclass": _Named})
    type(error).kind = told["kind"]  # type: ignore[attr-defined]
    return error
