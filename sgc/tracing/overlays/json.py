"""`json.loads` and `json.dumps` for abstract values."""

from __future__ import annotations

import json
from typing import Any

from sgc.core.markers import has_marker
from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.tracing.kinds.text_types import known_of
from sgc.tracing.values.abstract import AbstractList, is_abstract
from sgc.tracing.values.computing import attempted, computed, symbol_of
from sgc.tracing.values.json.abstract_json import seen
from sgc.tracing.values.json.dict_views import part_of
from sgc.tracing.values.json.known_json import known_json


def _loads(text: Any, **options: Any) -> Any:
    """Parses a text; raises JSONDecodeError, which is a ValueError, if it is not JSON."""
    if not is_abstract(text):
        return json.loads(text, **options)
    if options or not isinstance(text, str):
        stop(
            "json.loads() with options, or of a value that is not a text", "write json.loads(text)"
        )
    session: Any = current_session()
    symbol = symbol_of(text)
    schema = known_of(symbol, session).json_schema if symbol is not None else None
    value = attempted(session, "json_loads", text, type_=types.JSON)
    return seen(value) if schema is None else known_json(value, schema)


def _dumps(
    value: Any,
    *,
    ensure_ascii: bool = True,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
    **options: Any,
) -> Any:
    """Writes data, whose parts may be abstract, as a text."""
    if not _holds_abstract(value):
        return json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
            **options,
        )
    if options:
        stop(
            f"json.dumps() with {', '.join(sorted(options))}",
            hint="indent, ensure_ascii, sort_keys and separators are known; or " + INTERPRET,
        )
    between, after_key = separators or (", " if indent is None else ",", ": ")
    return computed(
        current_session(),  # type: ignore[arg-type]
        "json_dumps",
        _listed(value),
        indent,
        ensure_ascii,
        sort_keys,
        between,
        after_key,
    )


def _holds_abstract(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_abstract(part) for part in (*value, *value.values()))
    if isinstance(value, (list, tuple)) and not is_abstract(value):
        return any(map(_holds_abstract, value))
    return is_abstract(value)


def _listed(value: Any) -> Any:
    """The data with tuples as lists, as in JSON."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) and not has_marker(key) for key in value):
            stop(
                "json.dumps() of a dict whose keys are not all texts of the program's own",
                hint="write the keys as texts into the program; or " + INTERPRET,
            )
        return {key: _listed(part) for key, part in value.items()}
    if is_abstract(value):
        if isinstance(value, AbstractList) and part_of(value):
            raise TypeError(f"Object of type dict_{part_of(value)} is not JSON serializable")
        return value
    return [_listed(part) for part in value] if isinstance(value, (list, tuple)) else value


def _file(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        stop(f"json.{name}() reads or writes a file", "pass its text as an argument of the program")

    return call


JSON_FUNCTIONS: dict[str, Any] = {
    "loads": _loads,
    "dumps": _dumps,
    "load": _file("load"),
    "dump": _file("dump"),
}
