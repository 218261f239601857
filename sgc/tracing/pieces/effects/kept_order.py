"""Sets in code on live objects, whose order other code may see."""

from __future__ import annotations

import ast
from functools import lru_cache

from sgc.ir.code import parse_code
from sgc.tracing.kinds.sets import blind_uses, order_seen
from sgc.tracing.pieces.names import names_of
from sgc.tracing.pieces.text.constants import NotData


def refuse_order_kept(code: str, lost: frozenset[str], is_kept: bool) -> None:
    """Refuses sets whose order differs in code, where one may become live, since it is not known
    what then sees the order. lost: the names of such sets; is_kept: whether the code's results live
    on after the piece."""
    if _is_order_seen(code, lost, is_kept):
        raise NotData("the order of a set may be seen; use sorted(xs)")


@lru_cache(maxsize=4096)
def _is_order_seen(code: str, lost: frozenset[str], is_kept: bool) -> bool:
    parsed = parse_code(code)
    parts = [part for part in parsed.body if part not in parsed.constants]
    for each in parsed.constants:
        if any(isinstance(node, ast.Set) and _is_folded(node) for node in ast.walk(each)):
            lost |= names_of([each]).writes
    nodes = [node for part in parts for node in ast.walk(part)]
    is_blind = blind_uses(nodes)
    shown = [each for each in nodes if isinstance(each, ast.Set) and _is_folded(each)]
    return not all(map(is_blind, shown)) or (is_kept and order_seen(parts, lost) is not None)


def _is_folded(node: ast.Set) -> bool:
    """Whether Python's compiler makes the set of a display, in another order than a run would."""
    return len(node.elts) > 2 and all(isinstance(each, ast.Constant) for each in node.elts)
