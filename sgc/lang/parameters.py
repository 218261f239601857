"""Refuses parameters of a `gen` or `select` that no run could accept, at the user's line.

Values known only at run time pass; the executor checks them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sgc.core.markers import has_marker
from sgc.core.places import placed
from sgc.core.session import Session
from sgc.errors import UsageError
from sgc.lang.constraints import check_decodable
from sgc.runtime.executor.run import options

_PATTERNS = ("regex", "stop_regex")
_CONSTRAINTS = (*_PATTERNS, "json_schema", "ebnf")


def check_parameters(session: Session, params: Mapping[str, Any]) -> None:
    """Raises UsageError for invalid parameters of a `gen`, and for invalid combinations."""
    known = {name: value for name, value in params.items() if not session.is_abstract(value)}
    with placed():
        for name, value in known.items():
            if name in options.RANGES and isinstance(value, (str, int, float)):
                options.check_parameter(name, value)
            elif name in _CONSTRAINTS:
                _check_constraint(name, value, session.is_tracing)
        if "min_tokens" in known and "max_tokens" in known:
            options.check_lengths(known["min_tokens"], known["max_tokens"])


def check_choices(session: Session, choices: Sequence[Any], method: Any) -> None:
    """Raises UsageError for invalid choices of a `select`, and for invalid combinations."""
    known = [each for each in choices if not (session.is_abstract(each) or _is_marked(each))]
    with placed():
        options.check_choices(known, method)


def _check_constraint(name: str, value: Any, is_tracing: bool) -> None:
    """While tracing, also checks that our engine can decode under it; in a run the backend does."""
    if not isinstance(value, (str, list, tuple)):
        what = "a pattern" if name in _PATTERNS else "a text"
        raise UsageError(f"{name} must be {what}, found {type(value).__name__} {value!r}")
    for text in (value,) if isinstance(value, str) else value:
        if isinstance(text, str) and not has_marker(text):
            if name in _PATTERNS:
                _check_pattern(name, text)
            if is_tracing:
                check_decodable(name, text)


def _check_pattern(name: str, text: str) -> None:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{name} is no valid pattern: {error}") from error


def _is_marked(value: Any) -> bool:
    return isinstance(value, str) and has_marker(value)
