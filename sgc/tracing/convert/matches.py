"""Rewrites `match` statements that look into a value, or test by `is`, as `if` statements.

Python takes a sequence's length and items itself, without asking a list known only at run time, and
so the values of a dict, and an object's class.

    match text.split():                   subject = text.split()
        case ["go", where] if where:      if ((parts := PARTS(subject, 2)) and parts[0][0] == "go"
            …                                     and [where := parts[0][1]] and where): …
        case _:                           else: …
            …

Names are bound when their whole pattern has matched, as CPython does.
"""

from __future__ import annotations

import ast
import copy
from typing import TypeVar

from sgc.tracing.code.operator_names import CLASS_PARTS, KEYED_PARTS, KNOWN, PARTS

_PATTERNS = (ast.MatchValue, ast.MatchSingleton, ast.MatchSequence, ast.MatchStar, ast.MatchAs,
             ast.MatchOr, ast.MatchMapping, ast.MatchClass)  # fmt: skip
_LOOKING = (ast.MatchSequence, ast.MatchSingleton, ast.MatchMapping, ast.MatchClass)
_Node = TypeVar("_Node", bound=ast.expr | ast.stmt)


def with_matches(tree: ast.Module, is_live: bool = False) -> ast.Module:
    """Rewrites the tree's matches in place, where all patterns are of those kinds. is_live: Python
    must go into no live object by others."""
    return _Matches(is_live).visit(tree)  # type: ignore[no-any-return]


class _Matches(ast.NodeTransformer):
    def __init__(self, is_live: bool) -> None:
        self._n, self._is_live = 0, is_live

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        patterns = [
            each
            for case in node.cases
            for each in ast.walk(case.pattern)
            if isinstance(each, ast.pattern)
        ]
        if not any(isinstance(each, _LOOKING) for each in patterns):
            return node
        if not all(map(_is_rewritten, patterns)):
            if self._is_live:
                node.subject = _at(ast.Call(_loaded(KNOWN, node), [node.subject], []), node)
            return node
        subject = self._fresh()
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            chain = self._case(case, subject, chain)
        return [_at(ast.Assign([_stored(subject, node)], node.subject), node), *chain]

    def _fresh(self) -> str:
        self._n += 1
        return f"__sgc_match_{self._n}__"

    def _case(self, case: ast.match_case, subject: str, orelse: list[ast.stmt]) -> list[ast.stmt]:
        at = case.pattern
        bound: dict[str, ast.expr] = {}
        tests = self._tests(case.pattern, _loaded(subject, at), bound)
        tests += [
            _at(ast.List([_at(ast.NamedExpr(_stored(name, at), value), at)], ast.Load()), at)
            for name, value in bound.items()
        ]
        if case.guard is not None:
            tests.append(case.guard)
        if not tests:
            return [_at(ast.Pass(), at), *case.body]  # which is a line that runs, too
        test = tests[0] if len(tests) == 1 else _at(ast.BoolOp(ast.And(), tests), at)
        return [_at(ast.If(test, case.body, orelse), at)]

    def _tests(
        self, pattern: ast.pattern, value: ast.expr, bound: dict[str, ast.expr]
    ) -> list[ast.expr]:
        """What must be true of a value for a pattern to match; bound: gets the names it binds."""
        if isinstance(pattern, ast.MatchValue):
            again = copy.deepcopy(value)
            return [_at(ast.Compare(again, [ast.Eq()], [pattern.value]), pattern)]
        if isinstance(pattern, ast.MatchSingleton):
            constant = _at(ast.Constant(pattern.value), pattern)
            again = copy.deepcopy(value)
            return [_at(ast.Compare(again, [ast.Is()], [constant]), pattern)]
        if isinstance(pattern, ast.MatchOr):
            return [self._any(pattern, value, bound)]
        if isinstance(pattern, ast.MatchSequence):
            return self._sequence(pattern, value, bound)
        if isinstance(pattern, ast.MatchMapping):
            return self._mapping(pattern, value, bound)
        if isinstance(pattern, ast.MatchClass):
            return self._class(pattern, value, bound)
        assert isinstance(pattern, (ast.MatchAs, ast.MatchStar))
        inner = pattern.pattern if isinstance(pattern, ast.MatchAs) else None
        tests = [] if inner is None else self._tests(inner, value, bound)
        if pattern.name is not None:
            bound[pattern.name] = copy.deepcopy(value)
        return tests

    def _any(self, pattern: ast.MatchOr, value: ast.expr, bound: dict[str, ast.expr]) -> ast.expr:
        """One of several patterns; each gives what it binds the same names."""
        names: dict[str, str] = {}
        ways: list[ast.expr] = []
        for each in pattern.patterns:
            inside: dict[str, ast.expr] = {}
            tests = self._tests(each, value, inside)
            for name, found in inside.items():
                kept = names.setdefault(name, self._fresh())
                given = _at(ast.NamedExpr(_stored(kept, each), found), each)
                tests.append(_at(ast.List([given], ast.Load()), each))
            tests = tests or [_at(ast.Constant(True), each)]
            ways.append(tests[0] if len(tests) == 1 else _at(ast.BoolOp(ast.And(), tests), each))
        bound |= {name: _loaded(kept, pattern) for name, kept in names.items()}
        return _at(ast.BoolOp(ast.Or(), ways), pattern)

    def _sequence(
        self, pattern: ast.MatchSequence, value: ast.expr, bound: dict[str, ast.expr]
    ) -> list[ast.expr]:
        inner = pattern.patterns
        star = next((n for n, each in enumerate(inner) if isinstance(each, ast.MatchStar)), None)
        counts = (len(inner),) if star is None else (star, len(inner) - star - 1)
        args = [copy.deepcopy(value), *(_at(ast.Constant(count), pattern) for count in counts)]
        return self._parts(PARTS, args, pattern, inner, bound)

    def _mapping(
        self, pattern: ast.MatchMapping, value: ast.expr, bound: dict[str, ast.expr]
    ) -> list[ast.expr]:
        args = [copy.deepcopy(value), *pattern.keys]
        return self._parts(KEYED_PARTS, args, pattern, pattern.patterns, bound)

    def _class(
        self, pattern: ast.MatchClass, value: ast.expr, bound: dict[str, ast.expr]
    ) -> list[ast.expr]:
        told: list[int | str] = [len(pattern.patterns), *pattern.kwd_attrs]
        constants = (_at(ast.Constant(each), pattern) for each in told)
        args = [copy.deepcopy(value), pattern.cls, *constants]
        inner = [*pattern.patterns, *pattern.kwd_patterns]
        return self._parts(CLASS_PARTS, args, pattern, inner, bound)

    def _parts(
        self,
        operator: str,
        args: list[ast.expr],
        pattern: ast.pattern,
        inner: list[ast.pattern],
        bound: dict[str, ast.expr],
    ) -> list[ast.expr]:
        """The tests of what an operator gives, which is false or has a part for each pattern."""
        parts = self._fresh()
        asked = _at(ast.Call(_loaded(operator, pattern), args, []), pattern)
        tests: list[ast.expr] = [_at(ast.NamedExpr(_stored(parts, pattern), asked), pattern)]
        for n, each in enumerate(inner):
            if not _is_free(each):
                found = _item(_item(_loaded(parts, each), 0, each), n, each)
                tests += self._tests(each, found, bound)
        return tests


def _is_free(pattern: ast.pattern) -> bool:
    """Whether it matches everything and names nothing."""
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None and pattern.name is None
    return isinstance(pattern, ast.MatchStar) and pattern.name is None


def _is_rewritten(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchMapping):
        return pattern.rest is None
    return isinstance(pattern, _PATTERNS)


def _item(whole: ast.expr, index: int, at: ast.pattern) -> ast.expr:
    return _at(ast.Subscript(whole, _at(ast.Constant(index), at), ast.Load()), at)


def _loaded(name: str, at: ast.AST) -> ast.Name:
    return _at(ast.Name(name, ast.Load()), at)


def _stored(name: str, at: ast.AST) -> ast.Name:
    return _at(ast.Name(name, ast.Store()), at)


def _at(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)
