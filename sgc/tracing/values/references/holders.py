"""Who else has a list or dict that an attribute, or an item of one, gets."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sgc.core.places import is_users
from sgc.tracing.code.bytecode import info_of
from sgc.tracing.code.frames import N_OF_LOOK


def _users_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame):
            yield frame
        frame = frame.f_back


def look_at_frames() -> None:
    """Looks at the variables of all frames, which counts for each, so that what is counted
    afterwards does not depend on who has looked before."""
    for frame in _users_frames():
        _ = frame.f_locals


def is_held(value: Any, n_more: int) -> bool:
    """Whether others than one place have a value. n_more: how many more refer to it, of which
    variables that are read no more do not count."""
    for frame in _users_frames():
        code, found = frame.f_code, frame.f_locals
        names = [name for name, each in found.items() if each is value]
        if not names:
            continue
        live = info_of(code).after(frame.f_lasti).live.union(code.co_cellvars, code.co_freevars)
        if code.co_name == "<module>" or any(
            name in live and not name.startswith("__sgc_") for name in names
        ):
            return True
        n_more -= (1 + N_OF_LOOK) * len(names)
    return n_more > 0


def held_by(whole: Any, key: Any) -> int:
    """How many refer to what is in a dict or list, beside it."""
    return sys.getrefcount(whole[key]) - _N_OF_PART


def others_of(value: Any, way: str) -> int:
    """How many others refer to what a method was given. way: how it was called."""
    if type(value) in _LOOKED_AFTER:
        look_at_frames()
    return sys.getrefcount(value) - _N_OF_WAYS[way]


_LOOKED_AFTER = (list, dict, set, defaultdict, Counter)


def _counted() -> tuple[int, dict[str, int]]:
    """The reference counts of a value that one place alone has, and of one that is just given to a
    method of an object, list or dict."""
    whole: dict[str, Any] = {"key": []}
    found: dict[str, int] = {}

    def note(value: Any, way: str) -> None:
        found[way] = sys.getrefcount(value)

    class Probe:
        def __setattr__(self, name: str, value: Any) -> None:
            note(value, "setattr")

        def __setitem__(self, key: Any, value: Any) -> None:
            note(value, "setitem")

        def append(self, value: Any) -> None:
            note(value, "append")

        def insert(self, key: Any, value: Any) -> None:
            note(value, "insert")

    def same(function: Any) -> Any:
        return function

    probe = Probe()
    probe.key = []  # type: ignore[attr-defined]
    probe["key"] = []
    same(probe.append)([])
    same(probe.insert)("key", [])
    return sys.getrefcount(whole["key"]), found


_N_OF_PART, _N_OF_WAYS = _counted()
