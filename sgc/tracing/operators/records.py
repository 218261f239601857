"""Functions of `dataclasses` that look into an object: of one known only at run time, they are
code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from sgc.tracing.values.abstract_record import AbstractRecord


def _looking(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(of: Any, *args: Any, **kwargs: Any) -> Any:
        if type(of) is AbstractRecord:
            of.needs_type()
        return function(of, *args, **kwargs)

    return call


_FUNCTIONS = (dataclasses.asdict, dataclasses.astuple, dataclasses.replace, dataclasses.fields)
LOOKING: dict[Any, Any] = {function: _looking(function) for function in _FUNCTIONS}
