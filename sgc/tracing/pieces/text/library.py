"""The library objects that code may import, and their stand-ins while tracing."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sgc.core.watching import unwatched
from sgc.ir.code_names import LIBRARY, OPTIONAL
from sgc.tracing.values.abstract import is_abstract

# Modules whose functions read texts, and do not handle abstract texts.
READERS = ("string", "textwrap", "difflib", "html", "shlex", "ast", "unicodedata", "csv")


def known_library() -> Mapping[int, tuple[str, str]]:
    """The objects by id: their module and name. Packages that the program does not use are not
    imported."""
    missing = {name for name in OPTIONAL if name not in sys.modules}
    return _of(frozenset(LIBRARY) - missing)


@lru_cache(maxsize=4)
def _of(modules: frozenset[str]) -> dict[int, tuple[str, str]]:
    found = {}
    for module in filter(modules.__contains__, LIBRARY):
        with unwatched():  # the program does not depend on what a library reads when imported
            there = importlib.import_module(module)
        for name in sorted(LIBRARY[module]):
            value = getattr(there, name)
            if callable(value):
                found[id(value)] = (module, name)
    return found


def pythons(function: Any) -> Any:
    """Python's own function or type, for its stand-in while tracing; any other value as it is."""
    if is_abstract(function):
        return function
    module = getattr(function, "__module__", None) or ""
    if not isinstance(module, str) or not module.startswith(("sgc.tracing.", "builtins")):
        return function
    return getattr(function, "__wrapped__", None) or getattr(
        builtins, getattr(function, "__name__", ""), function
    )
