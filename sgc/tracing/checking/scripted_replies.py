"""Turns scripted texts into replies that a constrained generation could have given.

Such a reply must have the properties that the tracer infers from the constraint. All other replies
stay as nasty as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sgc.errors import SgcError
from sgc.runtime.executor.interface.backend import Sampling
from sgc.runtime.executor.patterns.linear_regex import linear_pattern
from sgc.runtime.executor.patterns.schemas import schema_check
from sgc.tracing.kinds.text_types import texts_of
from sgc.tracing.values.json.known_json import resolved

MAX_DEPTH = 8


def obeying(sampling: Sampling, drawn: int, texts: Sequence[str]) -> str:
    """A reply that obeys a request's constraint; `drawn` selects one."""
    text = texts[drawn % len(texts)]
    if sampling.regex is not None:
        among = texts_of(sampling.regex, sampling.max_tokens) or (text,)
        return text if text in among or _matches(sampling, text) else among[drawn % len(among)]
    if sampling.json_schema is not None:
        return _json(sampling.json_schema, drawn, texts)
    return text


def _matches(sampling: Sampling, text: str) -> bool:
    assert sampling.regex is not None
    if len(text.encode("utf-8", "replace")) > sampling.max_tokens:
        return False
    try:  # in linear time: Python's own may take forever
        return bool(linear_pattern(sampling.regex, 0).fullmatch(text))
    except SgcError:  # not a pattern that can be matched in linear time
        return False


def _json(schema_text: str, drawn: int, texts: Sequence[str]) -> str:
    """JSON of the schema; sometimes cut short, as by `max_tokens`."""
    schema = json.loads(schema_text)
    whole = json.dumps(_instance(schema, schema, drawn, texts), ensure_ascii=False)
    is_cut = drawn % 4 == 3 or not _is_valid(schema_text, whole)
    return whole[:1] if is_cut and whole[:1] in ("{", "[") else "" if is_cut else whole


def _is_valid(schema: str, text: str) -> bool:
    try:
        return schema_check(schema)(text)
    except SgcError:  # it cannot be checked: a cut reply is used, which every schema allows
        return False


def _instance(
    schema: Any, root: Any, drawn: int, texts: Sequence[str], depth: int = MAX_DEPTH
) -> Any:
    """Data by a schema's most common keywords; the caller checks whether the schema allows it."""
    found = resolved(schema, root)
    if "const" in found:
        return found["const"]
    if found.get("enum"):
        return found["enum"][drawn % len(found["enum"])]
    for word in ("anyOf", "oneOf"):
        if found.get(word):
            arms = found[word]
            return _instance(arms[drawn % len(arms)], root, drawn // 2, texts, depth - 1)
    type_ = found.get("type")
    type_ = type_[drawn % len(type_)] if isinstance(type_, list) and type_ else type_
    if type_ == "object" and depth > 0:
        required, properties = found.get("required", ()), found.get("properties", {})
        return {
            name: _instance(inner, root, drawn + n, texts, depth - 1)
            for n, (name, inner) in enumerate(properties.items())
            if name in required or (drawn + n) % 2
        }
    if type_ == "array" and depth > 0:
        n_items = min(found.get("minItems", 0) + drawn % 3, found.get("maxItems", 16), 16)
        items = found.get("items", {})
        return [_instance(items, root, drawn + n, texts, depth - 1) for n in range(n_items)]
    values: dict[Any, Any] = {
        "integer": found.get("minimum", 0) + (3, 1, 17)[drawn % 3],
        "number": found.get("minimum", 0) + (0.5, 0, 1.0)[drawn % 3],
        "boolean": drawn % 2 == 0,
        "null": None,
    }
    return values.get(type_, texts[drawn % len(texts)])
