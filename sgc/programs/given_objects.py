"""What the type of an argument does not tell: objects in it of other classes, or in two places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgc.lang.signature import Signature
from sgc.runtime.executor.interface.failures import class_name

_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})
_SEQUENCES = frozenset({list, tuple, set, frozenset})
_CONSTANT = frozenset({tuple, frozenset})


def problem_with(arguments: Mapping[str, Any], signature: Signature) -> str:
    """Why no program that was compiled for the types of arguments may serve them; "" if one may.

    Programs are compiled for arguments of which no two parts are one object, as `is` and
    `copy.deepcopy` tell, and of the classes of the annotations, not of others with their names.
    """
    classes = {class_name(kind): kind for each in signature.parameters for kind in each.classes}
    seen = set[int]()
    for name, argument in arguments.items():
        waiting = [argument]
        while waiting:
            value = waiting.pop()
            kind = type(value)
            if kind in _SCALARS:
                continue
            named = classes.get(class_name(kind)) if classes else None
            if named not in (None, kind):
                return f"argument {name!r} has a {kind.__name__} of another class of that name"
            if id(value) in seen:
                if kind not in _CONSTANT:
                    return f"argument {name!r} has a {kind.__name__} that is in two places"
                continue
            inside = _inside(value, named is kind)
            if inside is not None:
                seen.add(id(value))
                waiting.extend(inside)
    return ""


def _inside(value: Any, is_object: bool) -> Any:
    """The parts of a container or of an object; None for any other value."""
    kind = type(value)
    if kind is dict:
        return value.values()
    if kind in _SEQUENCES:
        return value
    return vars(value).values() if is_object and hasattr(value, "__dict__") else None
