"""Names of `re`, on the linear matcher; patterns that it cannot match raise UnsupportedPattern."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from sgc.runtime.executor.code.fuel import charge, checked
from sgc.runtime.executor.code.iterators import nested
from sgc.runtime.executor.code.library.matches import Match, Pattern
from sgc.runtime.executor.code.methods.attributes import DATA, GUARDS, METHODS, guarded
from sgc.runtime.executor.functions.regex_functions import template_pieces
from sgc.runtime.executor.interface.value_limits import check_items, check_length

Repl = Callable[[Match], str]


def _compile(pattern: Any, flags: Any = 0) -> Pattern:
    if isinstance(pattern, Pattern):
        if flags:
            raise ValueError("cannot process flags argument with a compiled pattern")
        return pattern
    if not isinstance(pattern, str):
        raise TypeError("first argument must be string or compiled pattern")
    return Pattern(pattern, int(flags))


def _on_pattern(method: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `re` that compiles its first argument. Flags are its last argument."""

    def function(pattern: Any, *args: Any, flags: Any = 0, **kwargs: Any) -> Any:
        n_args = _N_ARGS[method]
        if len(args) > n_args:
            *rest, flags = args
            return method(_compile(pattern, flags), *rest, **kwargs)
        return method(_compile(pattern, flags), *args, **kwargs)

    return function


def _search(pattern: Pattern, string: Any) -> Match | None:
    return pattern.one("search", string)


def _match(pattern: Pattern, string: Any) -> Match | None:
    return pattern.one("match", string)


def _fullmatch(pattern: Pattern, string: Any) -> Match | None:
    return pattern.one("fullmatch", string)


def _finditer(pattern: Pattern, string: Any) -> Iterator[Match]:
    made: Iterator[Match] = nested(iter(_Matches(pattern, string)))
    return made


class _Matches:
    """An iterator of matches, whose type offers no attributes to code, unlike a generator."""

    def __init__(self, pattern: Pattern, string: Any) -> None:
        self._found = pattern.all(string)

    def __iter__(self) -> _Matches:
        return self

    def __next__(self) -> Match:
        return next(self._found)


def _findall(pattern: Pattern, string: Any) -> list[Any]:
    found = []
    for match in pattern.all(string):
        groups = match.groups("")
        found.append(groups if len(groups) > 1 else groups[0] if groups else match.group())
        charge(4)
    check_items(len(found))
    return found


def _split(pattern: Pattern, string: Any, maxsplit: Any = 0) -> list[Any]:
    parts: list[Any] = []
    at = 0
    for number, match in enumerate(pattern.all(string)):
        if maxsplit < 0 or (maxsplit and number >= maxsplit):
            break
        start, end = match.span()
        parts += [string[at:start], *match.groups()]
        charge(4 + len(match.groups()))
        at = end
    check_items(len(parts) + 1)
    charge(len(string) >> 6)
    return [*parts, string[at:]]


def _sub(pattern: Pattern, repl: Any, string: Any, count: Any = 0) -> str:
    return _subn(pattern, repl, string, count)[0]


def _subn(pattern: Pattern, repl: Any, string: Any, count: Any = 0) -> tuple[str, int]:
    make = _replacing(pattern, repl)
    parts: list[str] = []
    at, n_chars, n_made = 0, len(string), 0
    for match in pattern.all(string):
        if count and n_made >= count:
            break
        start, end = match.span()
        made = make(match)
        n_chars += len(made)
        check_length(n_chars)
        charge(4 + (len(made) >> 6))
        parts += [string[at:start], made]
        at, n_made = end, n_made + 1
    return checked("".join([*parts, string[at:]])), n_made


def _replacing(pattern: Pattern, repl: Any) -> Repl:
    if callable(repl):
        function = guarded(repl)

        def called(match: Match) -> str:
            made = function(match)
            if made is None:
                return ""
            if not isinstance(made, str):
                raise TypeError(
                    f"sequence item 1: expected str instance, {type(made).__name__} found"
                )
            return made

        return called
    if not isinstance(repl, str):
        raise TypeError(f"decoding to str: need a bytes-like object, {type(repl).__name__} found")
    charge(len(repl) >> 2)
    pieces = template_pieces(repl, pattern.pattern, pattern.given_flags)
    return lambda match: "".join(
        [piece if isinstance(piece, str) else match.group(piece) or "" for piece in pieces]
    )


def _escape(pattern: Any) -> str:
    if isinstance(pattern, str):
        charge(1 + (len(pattern) >> 3))
    result: str = checked(re.escape(pattern))
    return result


# The number of arguments between the pattern and the flags.
_N_ARGS: dict[Callable[..., Any], int] = {
    _search: 1, _match: 1, _fullmatch: 1, _finditer: 1, _findall: 1, _split: 2, _sub: 3, _subn: 3,
}  # fmt: skip
_METHODS = {function.__name__[1:]: function for function in _N_ARGS}
METHODS[Pattern] = dict(_METHODS)
DATA[Pattern] = frozenset({"flags", "groupindex", "groups", "pattern"})
METHODS[Match] = {
    name: getattr(Match, name) for name in ("end", "group", "groupdict", "groups", "span", "start")
}
DATA[Match] = frozenset({"endpos", "lastgroup", "lastindex", "pos", "re", "string"})
_FLAGS = ("A", "ASCII", "DOTALL", "I", "IGNORECASE", "M", "MULTILINE", "S", "U", "UNICODE",
          "VERBOSE", "X")  # fmt: skip
RE: dict[str, Any] = {
    **{name: _on_pattern(function) for name, function in _METHODS.items()},
    **{name: int(getattr(re, name)) for name in _FLAGS},
    "Match": Match,
    "Pattern": Pattern,
    "compile": _compile,
    "error": re.error,
    "escape": _escape,
}


def _no_call(*args: Any, **kwargs: Any) -> Any:
    raise TypeError("cannot create instances")


GUARDS.update({Match: _no_call, Pattern: _no_call})
METHODS[Match]["expand"] = lambda match, template: _replacing(match.re, template)(match)
