"""Checks JSON against a schema that may be hostile: nothing is fetched, matching has a time limit.

`timed_regex.py` matches the patterns of a schema, in place of jsonschema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from sgc.errors import SgcError, UsageError
from sgc.runtime.executor.patterns.packages import needed
from sgc.runtime.executor.patterns.timed_regex import Pattern


def schema_check(schema: str) -> Callable[[str], bool]:
    """Returns a function that tells whether a text is JSON that meets the schema.

    Raises UsageError if the schema is invalid.
    """
    validator = _validator(needed("jsonschema", "checking a JSON schema"), _parsed(schema))

    def is_valid(text: str) -> bool:
        try:
            return _is_valid(validator, json.loads(text))
        except (ValueError, RecursionError):  # not JSON, or nested too deeply
            return False

    return is_valid


def _parsed(schema: str) -> Any:
    try:
        found = json.loads(schema)
        _refuse_unbounded(found)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the JSON schema is invalid: {error}") from error
    if not isinstance(found, (dict, bool)):
        shown = schema if len(schema) <= 60 else schema[:57] + "..."
        raise UsageError(f"a JSON schema is an object or a bool, found {shown}")
    return found


def _refuse_unbounded(schema: Any) -> None:
    """Refuses schemas for which jsonschema would match patterns itself."""
    objects = list(_objects(schema))
    if any(isinstance(each.get("$schema"), str) for each in objects[1:]):
        raise UsageError('a JSON schema can have its "$schema" only at the top to be checked')
    words = {word for each in objects for word in each}
    if {"unevaluatedProperties", "patternProperties"} <= words:
        raise UsageError(
            "a JSON schema with both unevaluatedProperties and patternProperties cannot be checked"
        )


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects in a JSON value, the outermost first."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from _objects(item)


def _validator(jsonschema: Any, schema: Any) -> Any:
    from referencing import Registry  # a dependency of jsonschema

    try:
        known = jsonschema.validators.validator_for(
            schema, default=jsonschema.validators.Draft202012Validator
        )
        known.check_schema(schema)
        bounded = jsonschema.validators.extend(known, _keywords(jsonschema.ValidationError))
        return bounded(schema, registry=Registry())  # an empty registry fetches nothing
    except jsonschema.SchemaError as error:
        raise UsageError(f"the JSON schema is invalid: {error.message}") from error
    except Exception as error:  # an odd schema can make jsonschema raise anything
        raise UsageError(f"the JSON schema is invalid: {error}") from error


def _is_valid(validator: Any, value: Any) -> bool:
    from referencing.exceptions import Unresolvable

    try:
        return bool(validator.is_valid(value))
    except Unresolvable as error:
        raise UsageError(
            f"the JSON schema refers to {error.ref!r}, which is not in it",
            hint="nothing is fetched: put it under $defs and refer to #/$defs/…",
        ) from error
    except (SgcError, RecursionError):
        raise
    except Exception as error:
        raise UsageError(f"the JSON schema cannot be checked: {error}") from error


@lru_cache(maxsize=256)
def _pattern(text: str) -> Pattern:
    return Pattern(text)


def _keywords(problem: Callable[[str], Exception]) -> dict[str, Any]:
    """Replacements of jsonschema's keywords that match patterns; each yields its problems."""

    def pattern(validator: Any, text: str, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, str) and not _pattern(text).is_in(value):
            yield problem(f"{value!r} does not match {text!r}")

    def pattern_properties(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[Any]:
        for key, item in value.items() if isinstance(value, dict) else ():
            for text, inner in given.items():
                if _pattern(text).is_in(key):
                    yield from validator.descend(item, inner, path=key, schema_path=text)

    def additional(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[Any]:
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for key, item in value.items() if isinstance(value, dict) else ():
            if key in named or any(_pattern(text).is_in(key) for text in patterns):
                continue
            if given is False:
                yield problem(f"{key!r} is not expected")
            elif given is not True:
                yield from validator.descend(item, given, path=key)

    return {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional,
    }
