"""Which variables are surely set where a node begins, and which of the variables that the node sets
are read after it. `piece.py` calls it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from sgc.tracing.code.trees import COMPREHENSIONS, Function, Tree, surely
from sgc.tracing.pieces.names import names_of, parameters


def sure_at(node: ast.AST, function: Function, tree: Tree) -> Iterator[str]:
    """The variables that are set on every path to a node."""
    yield from parameters(function.args)
    inner = node
    for outer in tree.above(node):
        for statements in _lists_of(outer):
            if inner in statements:
                yield from written_by(statements[: statements.index(inner)])  # type: ignore[arg-type]
        body = getattr(outer, "body", None)
        if isinstance(body, list) and inner in body:
            yield from _at_body(outer)
        if outer is function:
            return
        inner = outer


def _at_body(node: ast.AST) -> Iterator[str]:
    """The variables that a node sets before its body."""
    if isinstance(node, ast.For):
        yield from names_of([node.target]).writes
    elif isinstance(node, ast.match_case):
        yield from names_of([node.pattern]).writes
    elif isinstance(node, ast.With):
        yield from names_of([each for each in map(_as_name, node.items) if each]).writes
    elif isinstance(node, ast.ExceptHandler):
        yield from [node.name] if node.name else []
    elif isinstance(node, (ast.If, ast.While)):
        yield from _set_by_test(node.test)


def _set_by_test(test: ast.expr) -> Iterator[str]:
    """The variables that a test sets by `:=`, whatever its outcome is."""
    return (each.target.id for each in surely(test) if isinstance(each, ast.NamedExpr))


def surely_read(node: ast.AST) -> Iterator[str]:
    """The variables that a node always reads, so that an unset one is an error in any case."""
    for each in surely(node):
        name = each.target if isinstance(each, ast.AugAssign) else each
        is_read = each is not name or isinstance(getattr(name, "ctx", None), ast.Load)
        if isinstance(name, ast.Name) and is_read:
            yield name.id


def looped_over(node: ast.AST, function: Function, tree: Tree) -> Iterator[str]:
    """The variables of enclosing comprehensions that are set where a node is evaluated."""
    inner = node
    for outer in tree.above(node):
        if outer is function:
            return
        if isinstance(outer, ast.comprehension) and inner in outer.ifs:
            yield from names_of([outer.target]).writes
        elif isinstance(outer, COMPREHENSIONS) and not isinstance(inner, ast.comprehension):
            yield from names_of(each.target for each in outer.generators).writes
        inner = outer


def _lists_of(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        found = getattr(node, name, None)
        if isinstance(found, list):
            yield found


def written_by(statements: list[ast.stmt] | list[ast.AST]) -> Iterator[str]:
    """The variables that statements set on every path through them."""
    for node in statements:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Import, ast.ImportFrom)) or (
            isinstance(node, ast.AnnAssign) and node.value is not None
        ):
            yield from names_of([node]).writes
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.If):
            yield from _set_by_test(node.test)
            yield from _written_in_all([node.body, node.orelse])
        elif isinstance(node, ast.Match) and _is_whole_match(node):
            yield from _in_all([
                set(written_by(case.body)) | names_of([case.pattern]).writes
                for case in node.cases if not _ends(case.body)
            ])  # fmt: skip
        elif isinstance(node, ast.Try):
            handlers = (handler.body for handler in node.handlers)
            yield from _written_in_all([[*node.body, *node.orelse], *handlers])
            yield from written_by(node.finalbody)
        elif isinstance(node, (ast.For, ast.While)) and _ends_by_break(node):
            yield from _in_all(list(_at_breaks(node.body, set())))
        elif isinstance(node, ast.With):
            yield from names_of([each for each in map(_as_name, node.items) if each]).writes
            yield from written_by(node.body)


def _is_whole_match(node: ast.Match) -> bool:
    """Whether the last case always matches, by its syntax."""
    last = node.cases[-1]
    return last.guard is None and isinstance(last.pattern, ast.MatchAs) and not last.pattern.pattern


def _written_in_all(blocks: Iterable[list[ast.stmt]]) -> set[str]:
    """The variables that are set after these blocks, exactly one of which runs."""
    return _in_all([set(written_by(block)) for block in blocks if not _ends(block)])


def _in_all(found: list[set[str]]) -> set[str]:
    return set.intersection(*found) if found else set()


def _ends_by_break(loop: ast.For | ast.While) -> bool:
    """Whether control continues after a loop only from one of its breaks."""
    is_endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)
    return _ends(loop.orelse) or (is_endless and bool(loop.test.value))  # type: ignore[union-attr]


def _at_breaks(block: list[ast.stmt], before: set[str]) -> Iterator[set[str]]:
    """The variables that are set at each break of a loop with this block."""
    done = {*before}
    for node in block:
        if isinstance(node, ast.Break):
            yield done
            return
        inner = [] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else [*_lists_of(node)]
        if isinstance(node, (ast.For, ast.While)):
            inner.remove(node.body)  # its breaks are its own
        if isinstance(node, ast.Try):
            inner += [handler.body for handler in node.handlers]
        elif isinstance(node, ast.Match):
            inner += [case.body for case in node.cases]
        for each in inner:
            yield from _at_breaks(each, done)
        done |= set(written_by([node]))


def _ends(block: list[ast.stmt]) -> bool:
    """Whether control never continues after a block."""
    return any(
        _ends(node.body) and _ends(node.orelse)
        if isinstance(node, ast.If)
        else isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break))
        for node in block
    )


def _as_name(item: ast.withitem) -> ast.expr | None:
    return item.optional_vars


def read_first(nodes: Iterable[ast.AST], done: set[str]) -> Iterator[str]:
    """The names that may be read before they are set; done: names that are set already."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            yield from _reads([node.value, *node.targets]) - done
        elif isinstance(node, ast.If):
            yield from _reads([node.test]) - done
            yield from read_first(node.body, {*done})
            yield from read_first(node.orelse, {*done})
        elif isinstance(node, (ast.For, ast.While)):
            head = node.iter if isinstance(node, ast.For) else node.test
            targets = [node.target] if isinstance(node, ast.For) else []
            yield from _reads([head]) - done
            inside = done | names_of(targets).writes
            yield from _reads(targets) - done
            yield from read_first(node.body, {*inside})
            yield from read_first(node.orelse, {*done})
        elif isinstance(node, ast.Try):
            for part in (node.body, *(each.body for each in node.handlers), node.finalbody):
                named = {each.name for each in node.handlers if each.name}
                yield from read_first(part, done | named)
            yield from read_first(node.orelse, done | set(written_by(node.body)))
            yield from _reads([each.type for each in node.handlers if each.type]) - done
        elif isinstance(node, ast.With):
            inside = {*done}
            for item in node.items:
                yield from _reads([item]) - inside
                inside |= names_of([item]).writes
            yield from read_first(node.body, inside)
        elif isinstance(node, ast.Match):
            yield from _reads([node.subject]) - done
            for case in node.cases:
                inside = done | names_of([case.pattern]).writes
                yield from _reads([case.pattern, *([case.guard] if case.guard else [])]) - inside
                yield from read_first(case.body, {*inside})
        else:
            yield from _reads([node]) - done
        if isinstance(node, ast.stmt):
            done |= set(written_by([node]))


def _reads(nodes: Iterable[ast.AST]) -> set[str]:
    return names_of(nodes).reads


def variables_of(function: Function) -> frozenset[str]:
    body = function.body if isinstance(function.body, list) else [function.body]
    return frozenset(names_of(body).writes | parameters(function.args))


def read_elsewhere(node: ast.AST, function: Function) -> set[str]:
    inside = set(map(id, ast.walk(node)))
    return {
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and id(each) not in inside
    }
