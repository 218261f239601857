"""Texts of programs, prompts and models, as a page may hold them: bounded, and plain JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

MAX_TEXT = 100_000  # characters of one text
_HEAD = 60_000


def cut(text: str, most: int = MAX_TEXT) -> str:
    """The text, or its beginning and its end with a note between them on what is left out."""
    if len(text) <= most:
        return text
    head = min(_HEAD, most * 3 // 5)
    tail = most - head
    return f"{text[:head]}\n[… {len(text) - most:,} characters are left out …]\n{text[-tail:]}"


def plain(value: Any) -> Any:
    """A value as JSON: parts that JSON cannot hold become their `repr`, and long parts are cut."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return cut(value)
    try:
        text = json.dumps(value, default=repr)
    except (TypeError, ValueError, RecursionError):  # keys that are not texts, or endless
        return cut(repr(value))
    return json.loads(text) if len(text) <= MAX_TEXT else cut(text)


def script_json(data: Any) -> str:
    """JSON that may stand in a `<script>` element: nothing in it can end the element.

    Numbers that JavaScript does not have, or would round, become texts.
    """
    text = json.dumps(data, separators=(",", ":"))
    if _ODD.search(text):
        text = json.dumps(_known_numbers(data), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_ODD = re.compile(r"NaN|Infinity|[:,\[]-?\d{16}")  # or a text that looks so: then all are checked
_MAX_INT = 2**53 - 1


def _known_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -_MAX_INT <= value <= _MAX_INT else str(value)
    if isinstance(value, dict):
        return {name: _known_numbers(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_known_numbers(each) for each in value]
    return value
