"""A tool's failure as the program's handlers see it: an exception with the same classes.

The exception has only a class and a message, because a log, and so a resumed run, has no more. Its
cause is the tool's own exception, if that was raised in this process.
"""

from __future__ import annotations

import builtins
import sys
import types
from pathlib import Path
from typing import Any, cast

from sgc.core.places import is_users_module
from sgc.runtime.executor.interface.failures import Failed

_PYDANTIC = "pydantic_core._pydantic_core"  # its `ValidationError` is written in Rust
_OWN = frozenset({"args", "with_traceback", "add_note"})


class RunOver(BaseException):
    """Carries the error that ended a run out of its body, past the body's own handlers."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Told:
    """The first base class of every exception that stands for a tool's failure."""

    def __str__(self) -> str:
        return self.args[0]  # type: ignore[attr-defined, no-any-return]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.args[0]!r})"  # type: ignore[attr-defined]

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN or (name.startswith("__") and name.endswith("__")):
            return object.__getattribute__(self, name)
        raise AttributeError(
            f"{name} of a tool's failure: a program knows its class and what it says; give what "
            "else it needs as a value of the tool"
        )


def told(failed: Failed) -> BaseException:
    """The exception that an interpreted program's handlers see for a failure."""
    error = made_told(failed.kind, _classes(failed), Told, failed.why, {"failed": failed})
    error.__cause__ = failed.cause
    return error


def made_told(
    kind: str,
    classes: tuple[type, ...],
    base: type,
    why: str,
    data: dict[str, Any],
    how: dict[str, Any] | None = None,
) -> BaseException:
    """Makes an exception derived from `base` and `classes` without running their code."""
    made = types.new_class(kind, (base, *(classes or (Exception,))), how)
    error: Any = _solid(made, why)
    error.args = (why,)
    error.__dict__.update(data)
    return cast(BaseException, error)


def _solid(made: type, why: str) -> Any:
    """An object of an exception's class, made by the C code of the class that it derives from."""
    of_pydantic = next((each for each in made.__mro__ if each.__module__ == _PYDANTIC), None)
    if of_pydantic is not None:
        return of_pydantic.__new__(made, why, [])  # type: ignore[call-overload]
    solid = next(each for each in made.__mro__ if each.__module__ == "builtins")
    return solid.__new__(made, why)  # type: ignore[call-overload]


def lowest(classes: list[type]) -> tuple[type, ...]:
    """The classes that no other class in the list derives from."""
    return tuple(
        each
        for each in dict.fromkeys(classes)
        if not any(other is not each and issubclass(other, each) for other in classes)
    )


def can_be_one(classes: tuple[type, ...]) -> bool:
    """Whether an exception can derive from all of these classes."""
    try:
        types.new_class("_", classes, exec_body=lambda names: names.update({_TRIED: True}))
    except TypeError:
        return False
    return not any(issubclass(each, BaseExceptionGroup) for each in classes)


_TRIED = "__sgc_tried__"  # attributes of classes that only `can_be_one` makes


def are_one(classes: tuple[type, ...]) -> bool:
    """Whether an existing class derives from all of these: code of a graph makes no new classes."""
    first, *others = classes
    left, seen = [first], {first}
    while left:
        each = left.pop()
        if all(issubclass(each, other) for other in others):
            return True
        found: set[type] = {*type.__subclasses__(each)} - seen
        left += (one for one in found if not issubclass(one, Told) and _TRIED not in vars(one))
        seen |= found
    return False


def is_programs(kind: type) -> bool:
    """Whether a class is of the program's own files: a library's is raised without being named."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and is_users_module(kind.__module__, file)


def leaving(error: BaseException) -> BaseException:
    """The error that a run ends with, from the exception that left its body."""
    if isinstance(error, RunOver):
        return error.error
    failed = error.__dict__.get("failed") if isinstance(error, Told) else None
    return failed.error() if isinstance(failed, Failed) else error


def _classes(failed: Failed) -> tuple[type, ...]:
    """A failure's classes, as far as this process has them."""
    own: dict[str, type] = {}
    if failed.cause is not None:
        own.update(zip(failed.classes, type(failed.cause).__mro__, strict=False))
    found: list[type] = []
    for name in failed.classes:
        kind = find_class(name) or own.get(name)
        if kind is not None and can_be_one(lowest([*found, kind])):
            found.append(kind)
    return lowest(found)


def find_class(name: str) -> type[Exception] | None:
    """An exception class by its name, if its module is loaded; nothing is imported."""
    module_name, _, path = name.partition(":")
    if module_name == "builtins":
        found: Any = vars(builtins).get(path)
    else:
        found = _module(module_name)
        for part in path.split("."):
            found = vars(found).get(part) if isinstance(found, types.ModuleType | type) else None
    is_class = isinstance(found, type) and issubclass(found, Exception)
    return found if is_class else None


def _module(name: str) -> types.ModuleType | None:
    found = sys.modules.get(name)
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    return main if found is None and file is not None and Path(file).stem == name else found
