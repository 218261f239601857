"""Calls of pydantic, which is written in Rust and inspects its arguments: with arguments known only
at run time, such calls are code."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from sgc.core.shapes import is_model
from sgc.core.stops import INTERPRET, stop
from sgc.tracing.operators.code.run_time import is_run_time

_COPYING = "model_copy"  # it inspects no value


def of_pydantic(function: Any) -> Callable[..., Any] | None:
    """A model's class, or a method that pydantic's models have, which stops the trace where it
    would see an abstract value; None for another function."""
    if isinstance(function, type):
        return _watched(function, None) if is_model(function) else None
    receiver = function.__self__ if isinstance(function, MethodType) else None
    if receiver is None or not function.__func__.__module__.startswith("pydantic."):
        return None
    if is_model(receiver):
        return _watched(function, None)
    return _watched(function, receiver) if is_model(type(receiver)) else None


def _watched(function: Any, receiver: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        name = function.__name__
        if name != _COPYING and is_run_time(receiver, *args, *kwargs.values()):
            stop(f"{name} of a model inspects a value known only at run time", INTERPRET)
        return function(*args, **kwargs)

    return call
