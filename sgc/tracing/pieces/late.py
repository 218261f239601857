"""Values that a program makes, and that a new trace makes values of the graph."""

from __future__ import annotations

import ast
from collections import defaultdict
from random import Random
from typing import Any

from sgc.core.places import is_users
from sgc.tracing.code.trees import function_of, position, statement_around, statement_at, tree_of
from sgc.tracing.pieces.choose import Places
from sgc.tracing.pieces.made import Pieced
from sgc.tracing.pieces.names import names_of


def draw_late_at(session: Any, places: Places) -> None:
    """Traces the program anew if the statement at a place may draw from a generator of random
    numbers: with the generator's state as a value of the graph, the statement may be code."""
    for frame, _ in reversed([*places]):
        tree = tree_of(frame.f_code.co_filename) if is_users(frame) else None
        function = None if tree is None else function_of(frame.f_code, tree)
        node = None if function is None else statement_at(frame.f_lineno, function)
        for name in () if node is None else names_of([node]).reads:
            if type(frame.f_locals.get(name)) is Random:
                session.draw_late(frame.f_locals[name])


def value_late_at(session: Any, places: Places) -> None:
    """Traces the program anew if the statement at a place reads a known `defaultdict` by a key: the
    dict, as a value of the graph, can be read by any key."""
    for frame, _ in reversed([*places]):
        tree = tree_of(frame.f_code.co_filename) if is_users(frame) else None
        function = None if tree is None else function_of(frame.f_code, tree)
        node = None if function is None else statement_around(frame.f_lineno, function)
        place = None if node is None else position(node)
        for name in () if node is None or place is None else sorted(_read_by_key(node)):
            key = (frame.f_code.co_filename, place, name)
            is_known = type(frame.f_locals.get(name)) is defaultdict
            is_own = name in frame.f_code.co_varnames
            if is_known and is_own and key not in session.sites.valued:
                session.sites.valued.add(key)
                session.end(Pieced(f"{name} is read by a key known only at run time"))


def _read_by_key(node: ast.stmt) -> set[str]:
    """The variables that a statement reads by a key, outside of its blocks."""
    parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
    subscripts = (each for part in parts for each in ast.walk(part))
    return {
        each.value.id
        for each in subscripts
        if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name)
    }
