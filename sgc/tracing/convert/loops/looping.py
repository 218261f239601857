"""A comprehension as the statements of a loop, for iterables that are known only at run time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from sgc.tracing.code.operator_names import ALWAYS, AS_DICT, AS_SET, BORN, HASHED, IS_LIVE, LOOPS

Made = ast.ListComp | ast.GeneratorExp
SCOPES = (
    ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Await, ast.Yield,
    ast.YieldFrom,
)  # fmt: skip
MAY_BE_USERS = "may_be_users"  # of a call, `str(x)`: a class's own method may do it
# Of a comprehension: it is also elsewhere, as it was written, so it is a loop here.
COPIED = "copied"
DECIDES = {"any": True, "all": False}  # the truth of the item that ends it
EXTEND = "extend"  # of a list and a generator: adds each item before it takes the next
FIRST = "next"  # of a generator and a default: the first item ends it


class Names(Protocol):
    """Makes names that no program has."""

    is_live: bool

    def fresh(self, name: str = "") -> str: ...


def is_extending(node: ast.AST) -> bool:
    """Whether it is `xs.extend(… for …)`."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return False
    is_extend = isinstance(node.func, ast.Attribute) and node.func.attr == EXTEND
    return is_extend and isinstance(node.args[0], ast.GeneratorExp)


def only_item(each: ast.comprehension) -> ast.expr | None:
    """The item of `for x in [item]`, which is an assignment; None for other clauses."""
    is_one = isinstance(each.iter, ast.List) and len(each.iter.elts) == 1 and not each.is_async
    item = each.iter.elts[0] if is_one else None  # type: ignore[attr-defined]
    return None if isinstance(item, ast.Starred) else item


def loop_of(
    node: ast.expr, made: Made, it: str, result: str, names: Names, is_nested: bool = False
) -> list[ast.stmt]:
    """The loop over `it` that sets `result` to a comprehension, or to `any`, `all` or `next` of
    one. is_nested: it keeps the comprehensions inside, which must become loops."""
    default = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
    loop = _Loop(made, it, result, _decides(node), names, default, is_nested)
    loop.of = node
    body = loop.body()
    if isinstance(node, (ast.SetComp, ast.DictComp)):
        kind = loaded(AS_SET if isinstance(node, ast.SetComp) else AS_DICT, node)
        body.append(
            assigned(result, placed(ast.Call(kind, [loaded(result, node)], []), node), node)
        )
    return body


def statements(
    node: ast.expr, made: Made, it: str, result: str, body: list[ast.stmt], is_nested: bool
) -> Iterator[ast.stmt]:
    """The statements that set `result` to a comprehension, or to `any`, `all` or `next` of one.
    body: its loop, in which other comprehensions are loops if `is_nested`."""
    first = made.generators[0]
    yield assigned(it, first.iter, first.iter)
    if hasattr(node, COPIED) or hasattr(made, COPIED):
        yield from body
    else:
        asked: list[ast.expr] = [loaded(it, first.iter)]
        if isinstance(node, ast.Call):
            asked.append(node.func)
            if len(node.args) > 1:
                asked += [placed(ast.Constant(name), node) for name in _called(made)]
        first.iter = loaded(it, first.iter)
        test = placed(ast.Call(loaded(LOOPS, node), asked, []), node)
        if is_nested:
            test.keywords.append(
                placed(ast.keyword("is_nested", placed(ast.Constant(True), node)), node)
            )
        yield placed(ast.If(test, body, [assigned(result, node, node)]), node)
    # A view of a dict would be one more reference to it.
    yield assigned(it, placed(ast.Constant(None), first.iter), first.iter)


def _decides(node: ast.expr) -> bool | None:
    return DECIDES.get(node.func.id) if isinstance(node, ast.Call) else None  # type: ignore[attr-defined]


def _called(made: Made) -> list[str]:
    """The names of the functions that a comprehension calls by them."""
    calls = (each.func for each in ast.walk(made) if isinstance(each, ast.Call))
    return sorted({each.id for each in calls if isinstance(each, ast.Name)})


def is_simple(node: Made, is_live: bool = False) -> bool:
    """Whether a comprehension's parts can be written twice: they contain no scopes of their own, or
    in a loop none but those that the run performs (`LiveAlone`)."""
    parts: list[ast.expr] = [node.elt]
    for n, each in enumerate(node.generators):
        if each.is_async:
            return False
        parts += [each.target, *each.ifs, *([each.iter] if n else [])]
    return all(
        can_be_twice(LiveAlone().visit(copy.deepcopy(each)) if is_live else each) for each in parts
    )


def can_be_twice(part: ast.AST) -> bool:
    return not any(isinstance(inner, SCOPES) for inner in ast.walk(part))


class LiveAlone(ast.NodeTransformer):
    """Leaves of what is performed by the run, or traced, only that it is performed: a scope inside
    of it has its code where it stands first."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test = node.test
        is_one = isinstance(test, ast.Call) and getattr(test.func, "id", "") == IS_LIVE
        has_scopes = is_one and any(isinstance(each, SCOPES) for each in ast.walk(node.orelse))
        return node.body if has_scopes else self.generic_visit(node)  # type: ignore[return-value]


def are_loops(body: list[ast.stmt]) -> bool:
    """Whether all comprehensions in a loop's body have become loops."""
    return all(map(can_be_twice, body))


class _Inside(ast.NodeTransformer):
    """Marks the comprehensions of a copy, which stand elsewhere as they were written. Of what is
    performed, or traced, and can be no loop, it leaves only that it is performed."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.test, ast.Name) and node.test.id == ALWAYS:
            return node.body
        test = node.test
        is_one = isinstance(test, ast.Call) and getattr(test.func, "id", "") == IS_LIVE
        return node.body if is_one and any(map(_is_no_loop, ast.walk(node.orelse))) else node

    def visit_comprehension_of(self, node: ast.expr) -> ast.expr:
        self.generic_visit(node)
        setattr(node, COPIED, True)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_of


def _is_no_loop(node: ast.AST) -> bool:
    return isinstance(node, (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom))


class _Loop:
    """A comprehension as a loop with renamed variables. default: what `next` gives if there is no
    item; is_nested: comprehensions inside stay, and are marked."""

    def __init__(
        self,
        made: Made,
        it: str,
        result: str,
        decides: bool | None,
        names: Names,
        default: ast.expr | None = None,
        is_nested: bool = False,
    ) -> None:
        self.of: ast.expr = made
        made = (_Inside() if is_nested else LiveAlone()).visit(copy.deepcopy(made))
        bound = {
            name.id
            for each in made.generators
            for name in ast.walk(each.target)
            if isinstance(name, ast.Name)
        }
        renamed = {name: names.fresh(name) for name in sorted(bound)}
        for name in ast.walk(made):
            if isinstance(name, ast.Name) and name.id in renamed:
                name.id = renamed[name.id]
        made.generators[0].iter = loaded(it, made.generators[0].iter)
        self._made, self._result, self._decides = made, result, decides
        self._default = copy.deepcopy(default)
        self._names, self._is_live, self._is_nested = names, names.is_live, is_nested

    def body(self) -> list[ast.stmt]:
        start: ast.expr = self._default or ast.List([], ast.Load())
        if self._decides is not None:
            start = ast.Constant(not self._decides)
        at = self._made.elt
        if self._is_live and isinstance(start, ast.List):
            start = ast.Call(loaded(BORN, at), [placed(start, at)], [])
        return [assigned(self._result, placed(start, at), at), *self._loops(self._made.generators)]

    def _loops(self, generators: Sequence[ast.comprehension]) -> list[ast.stmt]:
        if not generators:
            return self._item()
        each, *rest = generators
        body = self._loops(rest)
        if rest and self._decides is not None:  # the inner loop may have decided it
            body = [
                *body,
                placed(ast.If(self._is_decided(), [placed(ast.Break(), each.iter)], []), each.iter),
            ]
        for test in reversed(each.ifs):
            body = [placed(ast.If(test, body, []), test)]
        item = only_item(each) if each is not self._made.generators[0] else None
        if item is not None:
            return [placed(ast.Assign([each.target], item), each.iter), *body]
        return [placed(ast.For(each.target, each.iter, body, []), each.iter)]

    def _is_decided(self) -> ast.expr:
        at = self._made.elt
        found = loaded(self._result, at)
        return found if self._decides else placed(ast.UnaryOp(ast.Not(), found), at)

    def _item(self) -> list[ast.stmt]:
        item = self._made.elt
        if self._default is not None:
            return [assigned(self._result, item, item), placed(ast.Break(), item)]
        if self._decides is None:
            before, given = self._held(item)
            append = placed(ast.Attribute(loaded(self._result, item), "append", ast.Load()), item)
            added = placed(ast.Call(append, [self._hashed(given)], []), item)
            return [*before, placed(ast.Expr(added), item)]
        test = item if self._decides else placed(ast.UnaryOp(ast.Not(), item), item)
        found = assigned(self._result, placed(ast.Constant(self._decides), item), item)
        return [placed(ast.If(test, [found, placed(ast.Break(), item)], []), item)]

    def _held(self, item: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
        """An item in which comprehensions are loops, as a variable, before the list is used."""
        if not self._is_nested or can_be_twice(item):
            return [], item
        name = self._names.fresh()
        return [assigned(name, item, item)], loaded(name, item)

    def _hashed(self, item: ast.expr) -> ast.expr:
        """An item of a set, or a dict's key with its value, which Python hashes at once."""
        if not isinstance(self.of, (ast.SetComp, ast.DictComp)):
            return item
        is_pair = placed(ast.Constant(isinstance(self.of, ast.DictComp)), item)
        return placed(ast.Call(loaded(HASHED, item), [item, is_pair], []), item)


def loaded(name: str, at: ast.AST) -> ast.expr:
    return placed(ast.Name(name, ast.Load()), at)


def assigned(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    return placed(ast.Assign([placed(ast.Name(name, ast.Store()), at)], value), at)


_Node = TypeVar("_Node", bound=ast.AST)


def placed(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)
