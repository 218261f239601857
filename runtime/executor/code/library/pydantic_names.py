"""Names of `pydantic`, which is imported only by code that has models."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sgc.runtime.executor.code.classes import models
from sgc.runtime.executor.code.fuel import NotAllowed, charge
from sgc.runtime.executor.code.methods.attributes import DATA, METHODS

_SHOWING = frozenset({"include_url", "include_context", "include_input", "indent"})


def _told(name: str) -> Any:
    """A method of a validation error that describes each problem."""

    def call(error: Any, /, **kwargs: Any) -> Any:
        charge(8 + 32 * error.error_count())
        unknown = sorted(kwargs.keys() - _SHOWING)
        if unknown:
            raise NotAllowed(f"{name} takes no {unknown[0]} in a graph's code")
        return getattr(error, name)(**kwargs)

    return call


@lru_cache(maxsize=1)
def _loaded() -> Any:
    """The package; code may inspect its errors."""
    found = models.pydantic()
    error = found.ValidationError
    METHODS[error] = {name: _told(name) for name in ("errors", "error_count", "json")}
    DATA[error] = frozenset({"title"})
    DATA[_info_type()] = frozenset({"data", "field_name", "mode"})
    return found


def _info_type() -> type:
    """The class of a validator's `info` argument, which has no name outside of pydantic."""
    from pydantic_core import SchemaValidator, core_schema

    seen: list[type] = []
    tells = core_schema.with_info_plain_validator_function(lambda _, info: seen.append(type(info)))
    SchemaValidator(tells).validate_python(None)
    return seen[0]


PYDANTIC: dict[str, Callable[[], Any]] = {
    "BaseModel": lambda: _loaded().BaseModel,
    "ValidationError": lambda: _loaded().ValidationError,
}
