"""Stand-ins for modules that read texts, and for compiled patterns.

The functions of `json` and `re` record their work on abstract values; other modules refuse them.
"""

from __future__ import annotations

import json
import logging
import re
import types as pytypes
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

from sgc.core.stops import stop
from sgc.tracing.kinds.generators import AbstractRandom
from sgc.tracing.operators.calls import KNOWING, STANDING
from sgc.tracing.overlays.drawing import Drawing, generator
from sgc.tracing.overlays.json import JSON_FUNCTIONS
from sgc.tracing.overlays.regex import RE_FUNCTIONS, SeeingPattern
from sgc.tracing.overlays.showing import SHOWING, ShowingLogger
from sgc.tracing.pieces.text.library import READERS
from sgc.tracing.values.abstract import is_abstract

_SEEN = (json, logging, re, warnings)


class SeeingModule:
    """Stands for a module: its functions handle abstract values, or refuse them."""

    def __init__(self, module: pytypes.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return seeing(getattr(self._module, name))


def seeing(value: Any) -> Any:
    """The stand-in for a module, function or pattern; any other value unchanged."""
    if isinstance(value, pytypes.ModuleType):
        known = value in _SEEN or value.__name__ in READERS
        return SeeingModule(value) if known else value
    if type(value) is re.Pattern:
        return SeeingPattern(value)
    if isinstance(value, logging.Logger):
        return ShowingLogger(value)
    if isinstance(value, (pytypes.FunctionType, pytypes.BuiltinFunctionType)) and value in SHOWING:
        return SHOWING[value]
    if isinstance(value, pytypes.FunctionType):
        return _function(value)
    return value


def _function(value: pytypes.FunctionType) -> Any:
    if value.__module__ in ("json", "re"):
        known = JSON_FUNCTIONS if value.__module__ == "json" else RE_FUNCTIONS
        return known.get(value.__name__) or _refusing(value)
    return _refusing(value) if value.__module__ in READERS else value


def _register() -> None:
    """Registers the modules' functions, for code that sees its module's own names."""
    for module in (json, re):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, pytypes.FunctionType):
                KNOWING[value] = standing = _function(value)
                if isinstance(standing, pytypes.FunctionType):
                    standing.__wrapped__ = value  # type: ignore[attr-defined]
    STANDING[re.Pattern] = SeeingPattern
    KNOWING[Random] = generator
    STANDING[Random] = STANDING[AbstractRandom] = Drawing


def _refusing(function: pytypes.FunctionType) -> Callable[..., Any]:
    name = f"{function.__module__}.{function.__name__}"

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(map(is_abstract, (*args, *kwargs.values()))):
            stop(f"{name}() of a value known only at run time")
        return function(*args, **kwargs)

    call.__name__ = function.__name__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


_register()
