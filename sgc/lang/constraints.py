"""Converts the types, schemas and biases that `gen` takes to the texts that programs carry."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sgc.core.markers import has_marker
from sgc.core.places import here
from sgc.core.session import current_session
from sgc.core.watching import unwatched
from sgc.errors import TraceError, UsageError

_NAMES = {int: "int", float: "float", str: "str", bool: "bool"}


def constrained(params: Mapping[str, Any]) -> dict[str, Any]:
    """A generation's parameters with types, schemas and biases converted to texts.

    Raises UsageError for values that cannot be converted, and for two constraints at once.
    """
    made = dict(params)
    dtype = made.pop("dtype", None)
    if dtype is not None:
        if (name := _dtype_name(dtype)) is not None:
            made["dtype"] = name
        elif "json_schema" in made:
            raise UsageError("dtype and json_schema are both given; each is a schema")
        else:
            made["json_schema"] = dtype
    if isinstance(made.get("regex"), re.Pattern):
        made["regex"] = made["regex"].pattern
    if "json_schema" in made:
        made["json_schema"] = schema_text(made["json_schema"])
    if "logit_bias" in made:
        made["logit_bias"] = _bias_text(made["logit_bias"])
    both = [name for name in ("dtype", "regex", "json_schema", "ebnf") if name in made]
    if len(both) > 1:
        raise UsageError(f"{' and '.join(both)} are all given; a text can follow one of them")
    return made


def _dtype_name(dtype: Any) -> str | None:
    """One of the four names; None for a type that needs a schema."""
    if isinstance(dtype, str):
        if dtype not in _NAMES.values():
            known = ", ".join(_NAMES.values())
            raise UsageError(f"dtype must be one of {known} or a type, found {dtype!r}")
        return dtype
    try:
        return _NAMES.get(dtype)
    except TypeError:  # unhashable, so not a type
        raise UsageError(f"dtype must be a type, found {dtype!r}") from None


def schema_text(schema: Any) -> str:
    """A JSON schema as text: given as text, a dict, a pydantic model or any Python type."""
    if isinstance(schema, str):
        if not has_marker(schema):
            _check_json(schema)
        return schema
    if not isinstance(schema, Mapping):
        schema = _schema_of_type(schema)
    try:
        made = json.dumps(schema)
        is_known = not has_marker(json.dumps(schema, ensure_ascii=False))
    except (TypeError, ValueError) as error:
        raise UsageError(f"json_schema holds what is no JSON: {error}") from error
    session = current_session()
    if not is_known and session is not None and session.is_tracing:
        raise TraceError(
            "json_schema holds a value known only at run time",
            where=here(),
            hint="bind the argument that gives it when compiling, or run it with --interpret",
        )
    return made


def _check_json(text: str) -> None:
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"json_schema is no JSON: {error}") from error


def _schema_of_type(type_: Any) -> Any:
    with unwatched():  # pydantic reads the environment, but the program does not depend on it
        return _made_by_pydantic(type_)


def _made_by_pydantic(type_: Any) -> Any:
    try:
        from pydantic import TypeAdapter  # an optional package
        from pydantic.errors import PydanticUserError
    except ImportError as error:
        raise UsageError(
            f"the schema of {type_!r} needs pydantic, which is not installed",
            hint="pip install pydantic, or pass json_schema as a dict",
        ) from error
    try:
        return TypeAdapter(type_).json_schema()
    except (PydanticUserError, NameError, TypeError) as error:
        raise UsageError(f"no JSON schema can be made of {type_!r}: {error}") from error


@lru_cache(maxsize=1024)  # a program is traced twice, and may repeat a constraint
def check_decodable(field: str, text: str) -> None:
    """Raises UsageError for a constraint that our engine cannot decode under.

    field: regex, json_schema, ebnf or stop_regex.
    """
    from sgc.runtime.engine.guides.grammar import ConstraintError, check_constraint

    try:
        with unwatched():  # the program does not depend on what the library reads when imported
            check_constraint(field, text)
    except ConstraintError as error:
        raise UsageError(str(error)) from error


def _bias_text(bias: Any) -> str:
    if isinstance(bias, str):
        return bias
    if not isinstance(bias, Mapping):
        raise UsageError(f"logit_bias must map token ids to numbers, found {bias!r}")
    return json.dumps({str(token): value for token, value in bias.items()})
