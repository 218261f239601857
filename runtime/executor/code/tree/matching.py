"""`match` as closures over a frame."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable
from typing import Any

from sgc.runtime.executor.code.fuel import MAPPINGS, NotAllowed, charge, check_key
from sgc.runtime.executor.code.methods.attributes import attribute
from sgc.runtime.executor.code.methods.comparing import COMPARED
from sgc.runtime.executor.code.tree.compiling import (
    Context,
    Ev,
    compile_expression,
    has_yield,
)
from sgc.runtime.executor.code.tree.scopes import Frame
from sgc.runtime.executor.code.tree.targets import place_of, store_name

Matches = Callable[[Frame, Any], bool]
_SEQUENCES = (list, tuple, deque, range)
_ABSENT = object()


def compile_match(node: ast.Match, subject: Ev, at: Context, compile_body: Callable[..., Ev]) -> Ev:
    """Runs the body of the first case that matches the subject. compile_body: compiles bodies."""
    cases = [(_case(case, at), compile_body(case.body, at)) for case in node.cases]

    def match(f: Frame) -> Any:
        value = subject(f)
        for matches, body in cases:
            if matches(f, value):
                return body(f)
        return None

    return match


def _case(case: ast.match_case, at: Context) -> Matches:
    matches = _pattern(case.pattern, at)
    if case.guard is None:
        return matches
    if has_yield(case.guard):
        raise NotAllowed("yield in a guard is not allowed in a graph's code")
    guard = compile_expression(case.guard, at)
    return lambda f, value: bool(matches(f, value) and guard(f))


def _pattern(node: ast.pattern, at: Context) -> Matches:
    return _PATTERNS[type(node)](node, at)


def _value(node: ast.MatchValue, at: Context) -> Matches:
    expected, equal = compile_expression(node.value, at), COMPARED["Eq"]
    return lambda f, value: bool(equal(value, expected(f)))


def _singleton(node: ast.MatchSingleton, at: Context) -> Matches:
    return lambda f, value: value is node.value


def _or(node: ast.MatchOr, at: Context) -> Matches:
    patterns = [_pattern(each, at) for each in node.patterns]
    return lambda f, value: any(matches(f, value) for matches in patterns)


def _as(node: ast.MatchAs, at: Context) -> Matches:
    inner = _pattern(node.pattern, at) if node.pattern else None
    if node.name is None:
        return lambda f, value: inner is None or inner(f, value)
    store = store_name(place_of(node.name, at))

    def matches(f: Frame, value: Any) -> bool:
        if inner is not None and not inner(f, value):
            return False
        store(f, value)
        return True

    return matches


def _sequence(node: ast.MatchSequence, at: Context) -> Matches:
    stars = [n for n, each in enumerate(node.patterns) if isinstance(each, ast.MatchStar)]
    if stars:
        return _starred(node.patterns, stars[0], at)
    patterns = [_pattern(each, at) for each in node.patterns]

    def matches(f: Frame, value: Any) -> bool:
        if not isinstance(value, _SEQUENCES) or len(value) != len(patterns):
            return False
        return all(each(f, item) for each, item in zip(patterns, value, strict=True))

    return matches


def _starred(nodes: list[ast.pattern], star: int, at: Context) -> Matches:
    before = [_pattern(each, at) for each in nodes[:star]]
    after = [_pattern(each, at) for each in nodes[star + 1 :]]
    middle = nodes[star]
    assert isinstance(middle, ast.MatchStar)
    store = store_name(place_of(middle.name, at)) if middle.name else None

    def matches(f: Frame, value: Any) -> bool:
        if not isinstance(value, _SEQUENCES) or len(value) < len(before) + len(after):
            return False
        charge(len(value) >> 2)
        items = list(value)
        end = len(items) - len(after)
        first = all(each(f, item) for each, item in zip(before, items, strict=False))
        if first and store is not None:
            store(f, items[star:end])
        return first and all(each(f, item) for each, item in zip(after, items[end:], strict=True))

    return matches


def _mapping(node: ast.MatchMapping, at: Context) -> Matches:
    keys = [compile_expression(each, at) for each in node.keys]
    patterns = [_pattern(each, at) for each in node.patterns]
    store = store_name(place_of(node.rest, at)) if node.rest else None

    def matches(f: Frame, value: Any) -> bool:
        if type(value) not in MAPPINGS:
            return False
        wanted = [key(f) for key in keys]
        for key in wanted:
            check_key(key, len(value))
        found = [value.get(key, _ABSENT) for key in wanted]
        if any(each is _ABSENT for each in found):
            return False
        if not all(each(f, item) for each, item in zip(patterns, found, strict=True)):
            return False
        if store is not None:
            charge(len(value))
            rest = dict(value)
            for key in wanted:
                del rest[key]
            store(f, rest)
        return True

    return matches


def _class(node: ast.MatchClass, at: Context) -> Matches:
    if isinstance(node.cls, ast.Name) and at.scope.find(node.cls.id) is not None:
        return _own_class(node, at)
    kind = compile_expression(node.cls, at)
    inner = _pattern(node.patterns[0], at) if node.patterns else None

    def matches(f: Frame, value: Any) -> bool:
        return isinstance(value, kind(f)) and (inner is None or inner(f, value))

    return matches


def _own_class(node: ast.MatchClass, at: Context) -> Matches:
    """A pattern of a class of the code, with patterns of its attributes."""
    kind = compile_expression(node.cls, at)
    placed = [_pattern(each, at) for each in node.patterns]
    named = [_pattern(each, at) for each in node.kwd_patterns]

    def matches(f: Frame, value: Any) -> bool:
        found = kind(f)
        if not isinstance(found, type):
            raise TypeError("called match pattern must be a class")
        if not isinstance(value, found):
            return False
        names = [*_placed_names(found, len(placed)), *node.kwd_attrs]
        for number, name in enumerate(names):
            if name in names[:number]:
                shown = found.__name__
                raise TypeError(f"{shown}() got multiple sub-patterns for attribute {name!r}")
        try:
            parts = [attribute(value, name) for name in names]
        except AttributeError:
            return False
        return all(each(f, part) for each, part in zip([*placed, *named], parts, strict=True))

    return matches


def _placed_names(kind: type, n_placed: int) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(kind, "__match_args__", ())
    if n_placed > len(names):
        plural = "" if len(names) == 1 else "s"
        raise TypeError(
            f"{kind.__name__}() accepts {len(names)} positional sub-pattern{plural} "
            f"({n_placed} given)"
        )
    return names[:n_placed]


_PATTERNS: dict[type[ast.AST], Callable[..., Matches]] = {
    ast.MatchValue: _value,
    ast.MatchSingleton: _singleton,
    ast.MatchOr: _or,
    ast.MatchAs: _as,
    ast.MatchSequence: _sequence,
    ast.MatchMapping: _mapping,
    ast.MatchClass: _class,
}
