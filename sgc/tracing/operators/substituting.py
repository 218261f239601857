"""The operators for `re.sub` with a function, which is called in a loop over the matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sgc.core.session import current_session


@dataclass(frozen=True, slots=True)
class Substituted:
    """A call of `sub`. found: the matches in an abstract text, each of which the program replaces;
    None if Python's own call does all; loop: the loop over them.
    """

    function: Any
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    found: Any
    loop: Any


def matches(function: Any, *args: Any, **keywords: Any) -> Substituted:
    """The matches that a call of `sub` with a function goes over: none if Python's own does."""
    session: Any = current_session()
    find = getattr(type(function), "found", None)
    found = None if find is None else find(function, *args, **keywords)
    if found is None:
        return Substituted(function, args, keywords, None, ())
    session.prefer_code("re.sub calls a function")
    return Substituted(function, args, keywords, found, found.matches())


def filled(made: Substituted, texts: Any) -> Any:
    """What a call of `sub` gives. texts: what its function has given for the matches."""
    if made.found is None:
        return made.function(*made.args, **made.keywords)
    return made.found.filled(texts)
