"""The error for a call of a word of the language with an argument that the word does not have.

Only for programs without decisions, in which every run reaches the same line and ends there.
"""

from __future__ import annotations

import inspect
import re
import traceback
from types import ModuleType
from typing import Any

from sgc.core.places import innermost_user_line, is_users
from sgc.errors import WordError, closest
from sgc.lang import words

_UNEXPECTED = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")


def misnamed(error: Exception) -> WordError | None:
    """The error for an argument that a word does not have; None for any other error."""
    found = _UNEXPECTED.match(str(error)) if isinstance(error, TypeError) else None
    if found is None:
        return None
    name, argument = found.groups()
    word = getattr(words, name, None)
    if not inspect.isfunction(word) or not _is_meant(word, name, error):
        return None
    known = inspect.signature(word).parameters
    return WordError(
        f"{name}() has no argument {argument!r}{closest(argument, known)}",
        where=innermost_user_line(error),
        hint="" if closest(argument, known) else f"it has: {', '.join(known)}",
    )


def _is_meant(word: Any, name: str, error: Exception) -> bool:
    """Whether the call cannot have been of something else with this name, as a user's function."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if is_users(frame)]
    if not frames:
        return False
    seen = {**frames[-1].f_globals, **frames[-1].f_locals}
    named = [seen.get(each) for each in frames[-1].f_code.co_names]
    owners = [each for each in named if isinstance(each, ModuleType)]
    called = [seen[name]] if name in seen else []
    called += [vars(owner)[name] for owner in owners if name in vars(owner)]
    return bool(called) and all(each is word for each in called)
