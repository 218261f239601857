"""The lists, dicts and objects of a program's modules: in programs with live objects, code has them
as constants."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from typing import Any

from sgc.core.places import program_frames
from sgc.tracing.kinds.records import is_record, parts_of


def is_outside(session: Any, value: Any) -> bool:
    """Whether a list, dict or object is, or is a part of, a global of the function that runs."""
    return id(value) in outside(session)[1]


def outside(session: Any) -> tuple[Mapping[str, Any], dict[int, str]]:
    """The globals of the function that runs, and expressions for their containers and objects."""
    frame = next(program_frames(), None)
    names = {} if frame is None else frame.f_globals
    key = (_KEY, id(names))
    if key not in session.cached:
        session.cached[key] = names, _ways_to(names)
    found: tuple[Mapping[str, Any], dict[int, str]] = session.cached[key]
    return found


def _ways_to(names: Mapping[str, Any]) -> dict[int, str]:
    """Expressions that reach the lists, dicts and objects of a module, by their ids."""
    left = [(each, name) for name, each in names.items() if not name.startswith("__")]
    found: dict[int, str] = {}
    while left and len(found) < MAX_OUTSIDE:
        each, way = left.pop()
        if isinstance(vars(type(each)).get("__dict__"), property):  # it would run the user's code
            continue
        if id(each) in found or not (type(each) in _CONTAINERS or is_record(each)):
            continue
        found[id(each)] = way
        if is_record(each):
            left += [(part, f"{way}.{name}") for name, part in parts_of(each).items()]
        elif isinstance(each, dict):
            left += [(part, f"{way}[{key!r}]") for key, part in each.items() if type(key) in _KEYS]
        elif type(each) in (list, tuple):
            left += [(part, f"{way}[{n}]") for n, part in enumerate(each)]
    return found


_KEYS = (str, int, bool)
_KEY = "outside"
MAX_OUTSIDE = 20_000
_CONTAINERS = frozenset({
    list, dict, set, frozenset, tuple, deque, Counter, defaultdict, OrderedDict,
})  # fmt: skip


def told(session: Any, value: Any) -> tuple[str, str] | None:
    """The module and the expression in it that reach a list, dict or object, if a function of the
    module has run."""
    outside(session)
    for key, (names, ways) in session.cached.items():
        if key[0] == _KEY and id(value) in ways:
            return names.get("__name__", ""), ways[id(value)]
    return None
