"""Places in the user's source: the line that is running, and which code is the user's."""

from __future__ import annotations

import os
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

from sgc.errors import SgcError
from sgc.ir.graph import Loc


def here() -> str:
    """The user's line, for an error; empty if there is none."""
    return str(user_loc() or "")


@contextmanager
def placed() -> Iterator[None]:
    """Adds the user's line to errors raised inside that name none."""
    try:
        yield
    except SgcError as error:
        error.where = error.where or here()
        raise


class _OwnModules(dict[str, bool]):
    """Whether a module is of this package, by its name."""

    def __missing__(self, name: str) -> bool:
        is_own = str(name).partition(".")[0] == "sgc"
        if len(self) < MAX_MODULES:
            self[name] = is_own
        return is_own


MAX_MODULES = 4096
# Read for each call that a trace sees, before the frame's code, whose reads are audited.
IS_OWN = _OwnModules()
F = TypeVar("F", bound=Callable[..., Any])
_outermost: set[int] = set()  # ids of code objects, since hashing a code object reads all of it
_runners: set[str] = set()  # their modules


def outermost(function: F) -> F:
    """Marks a function that runs a whole program: its callers are not part of the program."""
    _outermost.add(id(function.__code__))
    _runners.add(function.__module__)
    return function


def _is_outermost(frame: FrameType, module: str) -> bool:
    return module in _runners and id(frame.f_code) in _outermost


def program_frames() -> Iterator[FrameType]:
    """The frames of the program on this thread, innermost first, without this package's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if _is_outermost(frame, module):
            return
        if not IS_OWN[module]:
            yield frame
        frame = frame.f_back


def user_loc() -> Loc | None:
    """The innermost place of the user's code on the calling thread's stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if _is_outermost(frame, module):
            return None
        if not IS_OWN[module] and is_users(frame) and not _is_generated(frame.f_code):
            return user_loc_of(frame)
        frame = frame.f_back
    return None


def user_loc_of(frame: FrameType) -> Loc:
    """The place that a frame is at."""
    return _loc(frame.f_code, frame.f_lineno)


def _loc(code: CodeType, line: int) -> Loc:
    """A line with its function's name. The name of a comprehension, which some Pythons run as a
    function of its own, is left out."""
    names = code.co_qualname.split(".")
    while len(names) > 2 and names[-1] in COMPREHENSIONS:
        del names[-2:]  # with its `<locals>`
    return Loc(os.path.basename(code.co_filename), line, names[-1])


def innermost_user_loc(error: BaseException) -> Loc | None:
    """The innermost place in an error's traceback that is in the user's code."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if is_users(frame) and not _is_generated(frame.f_code):
            found = _loc(frame.f_code, line)
    return found


def _is_generated(code: CodeType) -> bool:
    """Whether `dataclasses` has made a function: it has no line of the user's, but its caller
    has."""
    return code.co_filename == "<string>" and code.co_qualname.startswith("__create_fn__.")


COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")


def innermost_user_line(error: BaseException) -> str:
    """The same as text, `file.py:12`; empty if there is none."""
    return str(innermost_user_loc(error) or "")


def is_raised_inside(error: BaseException) -> bool:
    """Whether an error was raised in this package, not in the program or a library."""
    names = [
        frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    return bool(names) and IS_OWN[names[-1]]


_STDLIB = os.path.dirname(os.__file__) + os.sep
_SITE = os.sep + "site-packages" + os.sep


# Packages that this one calls while a program runs: their frames are not the program's.
_OURS = frozenset({
    "sgc", "click", "regex", "re2", "jsonschema", "referencing", "rpds", "attr", "pydantic",
    "pydantic_core", "llguidance", "networkx", "google",
})  # fmt: skip


def is_users(frame: FrameType) -> bool:
    """Whether a frame is in the user's code: not in this package, its libraries or Python's own."""
    module = frame.f_globals.get("__name__", "")
    return not IS_OWN[module] and is_of_users(module, frame.f_code.co_filename)


@lru_cache(maxsize=4096)  # called at every call that a traced program makes
def is_of_users(module: str, file: str) -> bool:
    """Whether a module is the user's code, by its name and its file."""
    root = module.partition(".")[0]
    if root in _OURS or root.startswith("namedtuple_"):  # the name that collections gives its code
        return False
    return not file.startswith(("<frozen", _STDLIB)) or _SITE in file


def is_users_own(code: CodeType, names: Mapping[str, Any]) -> bool:
    """Whether a function is in the user's code, and not in an installed package.

    names: its globals.
    """
    return is_users_module(names.get("__name__", ""), code.co_filename)


def is_users_module(module: str, file: str) -> bool:
    """Whether a module is the user's code, and not an installed package's."""
    return _SITE not in file and is_of_users(module, file)


def is_ours(depth: int) -> bool:
    """Whether the frame `depth` above the caller's is in this package."""
    return IS_OWN[sys._getframe(depth + 1).f_globals.get("__name__", "")]


MAX_OWN_TEXTS = 10_000


def own_texts(python: FunctionType) -> Iterator[str]:
    """The text objects of a function: its constants, then those in the globals that it reads."""
    seen: set[int] = set()
    found: deque[Any] = deque([python])
    for _ in range(MAX_OWN_TEXTS):
        if not found:
            return
        item = found.popleft()
        if isinstance(item, str):
            yield item
        elif id(item) not in seen:
            seen.add(id(item))
            found.extend(_inside(item))


def _inside(item: Any) -> Iterator[Any]:
    """The objects to search next: a function's code and globals, or a container's items."""
    if isinstance(item, FunctionType):
        if not is_of_users(item.__globals__.get("__name__", ""), item.__code__.co_filename):
            return  # such as `gen`, whose texts are not the program's
        yield item.__code__
        yield from (item.__globals__.get(name) for name in item.__code__.co_names)
    elif isinstance(item, CodeType):
        yield from item.co_consts
    elif type(item) is dict:
        yield from (*item, *item.values())
    elif type(item) in (tuple, list, set, frozenset):
        yield from item
