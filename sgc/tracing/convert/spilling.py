"""Takes the parts of a statement that are evaluated before a call into variables of their own.

While a function of the user's runs, or a comprehension, its caller's stack would hold what the
statement has evaluated so far, and paths cannot merge there. So

    total = ask(a) + ask(b)          one = ask(a)
                                     total = one + ask(b)

    s += ask(a) if x else "-"        if x:
                                         one = ask(a)
                                     else:
                                         one = "-"
                                     s += one

    self.n += ask(a)                 old = self.n
                                     old += ask(a)
                                     self.n = old

Everything is evaluated in its order, and once, and asked for its truth once. What a statement
evaluates first, `comprehensions.py` takes out of it.
"""

from __future__ import annotations

import ast
import builtins
from itertools import count
from typing import NamedTuple

from sgc.tracing.code.operator_names import OPERATORS
from sgc.tracing.code.using_up import USES_UP
from sgc.tracing.convert.evaluated import COMPREHENSIONS, OPAQUE, Part, parts_of
from sgc.tracing.convert.loops.looping import (
    DECIDES,
    EXTEND,
    FIRST,
    MAY_BE_USERS,
    assigned,
    is_extending,
    loaded,
    placed,
)
from sgc.tracing.convert.module_names import ModuleNames

_FIELDS: dict[type[ast.stmt], str] = {
    ast.Assign: "value", ast.AnnAssign: "value", ast.AugAssign: "value", ast.Return: "value",
    ast.Expr: "value", ast.If: "test", ast.For: "iter", ast.Raise: "exc", ast.Assert: "test",
    ast.Match: "subject",
}  # fmt: skip
_METHODS = frozenset(name for each in (str, list, dict, set, int) for name in dir(each))
# Of the language: they run none of the user's code.
_WORDS = frozenset({
    "gen", "gen_int", "gen_string", "select", "image", "video", "system", "user", "assistant",
    "role", "separate_reasoning", "join",
})  # fmt: skip


def with_spilled(
    tree: ast.Module, names: ModuleNames, kind: str = "part", is_live: bool = False
) -> ast.Module:
    """Rewrites the functions of a tree in place. A property is a call, too. kind: in the names of
    the variables; is_live: whether methods may be those of live objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names.properties:
            setattr(node, MAY_BE_USERS, isinstance(node.ctx, ast.Load))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            spiller = Spiller(node, names, kind, is_live)
            node.body = spiller.body(node.body)
    return tree


class _Kept(NamedTuple):
    """Whether a value is used if it is true, and if it is false; else only its truth is asked."""

    true: bool = True
    false: bool = True


_TRUTH = _Kept(False, False)


class Spiller:
    """One function's statements."""

    def __init__(self, node: ast.FunctionDef, names: ModuleNames, kind: str, is_live: bool) -> None:
        self._is_live = is_live
        self._rebound, self._replaced = names.rebound, names.replaced
        self._kind, self._n = kind, count(1)
        walrus = (each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr))
        self._rebound |= frozenset(walrus)

    def body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for stmt in body:
            if not isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._blocks(stmt)
                made += self._statement(stmt)
            else:
                made.append(stmt)
        return made

    def _blocks(self, stmt: ast.stmt) -> None:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(stmt, name, None)
            if isinstance(block, list):
                setattr(stmt, name, self.body(block))
        for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
            part.body = self.body(part.body)

    def _statement(self, stmt: ast.stmt) -> list[ast.stmt]:
        field = _FIELDS.get(type(stmt), "")
        value = getattr(stmt, field, None)
        targets = stmt.targets if isinstance(stmt, ast.Assign) else []
        if not isinstance(value, ast.expr) or not any(map(_has_call, (value, *targets))):
            return [stmt]
        if isinstance(stmt, ast.AugAssign) and not self._waits(stmt.target):
            return self._updated(stmt)
        spilled = _Spilled(self)
        kept = _TRUTH if field == "test" else _Kept()
        setattr(stmt, field, spilled.visit(value, is_whole=True, kept=kept))
        if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
            self._target(stmt, stmt.targets[0], spilled)
        return [*spilled.made, stmt]

    def _target(self, stmt: ast.Assign, target: ast.expr, spilled: _Spilled) -> None:
        """`a[f()] = g()`, of which the value comes first."""
        if not _has_call(target) or not isinstance(target, (ast.Attribute, ast.Subscript)):
            return
        stmt.value = spilled.held(stmt.value)
        target.value = spilled.held(target.value)
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            target.slice = spilled.held(target.slice)

    def _waits(self, target: ast.expr) -> bool:
        """Whether the old value of a target can be read after the call."""
        return isinstance(target, ast.Name) and target.id not in self._rebound

    def _updated(self, stmt: ast.AugAssign) -> list[ast.stmt]:
        """`a.b += f()` or `a[b] += f()`, whose old value is read before the call."""
        target = stmt.target
        if _has_call(target):
            return [stmt]
        spilled = _Spilled(self)
        if isinstance(target, ast.Attribute):
            target.value = spilled.held(target.value)
            read: ast.expr = ast.Attribute(target.value, target.attr, ast.Load())
        elif isinstance(target, ast.Name):
            read = ast.Name(target.id, ast.Load())
        else:
            if any(isinstance(each, (ast.Slice, ast.Starred)) for each in ast.walk(target.slice)):
                return [stmt]
            target.value = spilled.held(target.value)
            target.slice = spilled.held(target.slice)
            read = ast.Subscript(target.value, target.slice, ast.Load())
        name = self.fresh()
        spilled.made.append(assigned(name, placed(read, target), target))
        value = spilled.visit(stmt.value)
        old = placed(ast.Name(name, ast.Store()), target)
        update = placed(ast.AugAssign(old, stmt.op, value), stmt)
        return [
            *spilled.made, update, placed(ast.Assign([target], loaded(name, target)), stmt),
        ]  # fmt: skip

    def fresh(self) -> str:
        return f"__sgc_{self._kind}_{next(self._n)}__"

    def is_kept(self, node: ast.expr) -> bool:
        """Whether a part is the same whenever it is evaluated in its statement."""
        if isinstance(node, ast.Starred):
            return False
        if isinstance(node, (ast.Lambda, ast.GeneratorExp)):
            return all(self.is_kept(each.node) for each in parts_of(node))
        is_name = isinstance(node, ast.Name) and node.id not in self._rebound
        return is_name or isinstance(node, ast.Constant)

    def is_disordered(self, node: ast.expr, is_whole: bool) -> bool:
        """Whether anything of an expression has to be taken out of it."""
        if not _has_call(node):
            return False
        if self._is_live and is_extending(node):  # its method is looked up before its items
            return False
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            first, *rest = _branches(node)
            if self.is_disordered(first, is_whole):
                return True
            called = [each for each in rest if _has_call(each)]
            inside = (each for arm in called for each in ast.walk(arm))
            is_made = any(
                isinstance(each, COMPREHENSIONS)
                or (isinstance(each, ast.Call) and _goes_over(each))
                for each in inside
            )
            return is_made or any(
                not is_whole or self.is_disordered(each, is_whole) for each in called
            )
        parts = parts_of(node)
        last = _last(parts)
        if last is None:
            return False
        if self.is_looked_up(node) or not all(self.is_kept(each.node) for each in parts[:last]):
            return True
        return self.is_disordered(parts[last].node, False)

    def is_looked_up(self, node: ast.expr) -> bool:
        """Whether a method is on the stack while a property of its arguments is evaluated, which
        cannot put another in its place."""
        method = node.func if isinstance(node, ast.Call) else None
        if not isinstance(method, ast.Attribute) or not self.is_kept(method.value):
            return False
        last = parts_of(node)[-1].node
        inside = [*ast.walk(last)]
        is_read = any(isinstance(each, ast.Attribute) and _is_property(each) for each in inside)
        is_plain = not any(isinstance(each, (*OPAQUE, ast.Starred)) for each in inside)
        return is_read and is_plain and method.attr in _METHODS - self._replaced


class _Spilled:
    """The statements that come before one of a function's."""

    def __init__(self, function: Spiller) -> None:
        self._function = function
        self.made: list[ast.stmt] = []

    def visit(
        self,
        node: ast.expr,
        is_whole: bool = False,
        kept: _Kept = _Kept(),  # noqa: B008
    ) -> ast.expr:
        """An expression whose parts that are evaluated before its last call are variables."""
        if not self._function.is_disordered(node, is_whole):
            return node
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            return self._branched(node, kept)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self.visit(node.operand, kept=_TRUTH)
            return node
        parts = parts_of(node)
        last = _last(parts)
        assert last is not None
        if isinstance(node, ast.List) and _is_starred(node.elts[:last]):
            return self._joined(node, last)
        for each in parts[:last]:
            each.put(self.held(each.node))
        # The texts of a formatted string's parts are on the stack, which no variable tells.
        is_text = last > 0 and isinstance(node, ast.JoinedStr)
        is_held = is_text or self._function.is_looked_up(node)
        parts[last].put(self.held(parts[last].node) if is_held else self.visit(parts[last].node))
        return node

    def held(self, node: ast.expr) -> ast.expr:
        """A part as a variable, unless it is the same whenever it is evaluated."""
        if self._function.is_kept(node):
            return node
        if isinstance(node, ast.Starred):
            items = placed(ast.List([node], ast.Load()), node)
            return placed(ast.Starred(self.held(items), ast.Load()), node)
        if isinstance(node, ast.FormattedValue):
            text = placed(ast.JoinedStr([node]), node)
            return placed(ast.FormattedValue(self.held(text), -1, None), node)
        name = self._function.fresh()
        self.made.append(assigned(name, self.visit(node, is_whole=True), node))
        return loaded(name, node)

    def _joined(self, node: ast.List, at: int) -> ast.expr:
        """`[*a, f()]` as `[*a] + [f()]`: a list known only at run time is no item by item."""
        first = self.held(placed(ast.List(node.elts[:at], ast.Load()), node))
        rest = self.visit(placed(ast.List(node.elts[at:], ast.Load()), node))
        return placed(ast.BinOp(first, ast.Add(), rest), node)

    def _branched(self, node: ast.IfExp | ast.BoolOp, kept: _Kept) -> ast.expr:
        name = self._function.fresh()
        if isinstance(node, ast.IfExp):
            test = self._truth(node.test)
            arms = [self._arm(name, each, kept) for each in (node.body, node.orelse)]
            self.made.append(placed(ast.If(test, *arms), node))
        else:
            self.made += self._values(name, node.op, node.values, kept)
        return loaded(name, node)

    def _values(
        self, name: str, op: ast.boolop, values: list[ast.expr], kept: _Kept
    ) -> list[ast.stmt]:
        """What sets a variable to `a and b` or `a or b`. What is tested and not used is not kept,
        so that its truth is asked once."""
        first, *rest = values
        if not rest:
            return self._arm(name, first, kept)
        is_and = isinstance(op, ast.And)
        part = _Spilled(self._function)
        if kept.false if is_and else kept.true:
            part.made = self._arm(name, first, _Kept(not is_and, is_and))
            test = loaded(name, first)
        else:
            test = part._truth(first)
            part.made.append(assigned(name, placed(ast.Constant(not is_and), first), first))
        if not is_and:
            test = placed(ast.UnaryOp(ast.Not(), test), first)
        then = placed(ast.If(test, self._values(name, op, rest, kept), []), rest[0])
        return [*part.made, then]

    def _truth(self, node: ast.expr) -> ast.expr:
        """An expression of which only the truth is asked, and at once."""
        return self.visit(node, is_whole=True, kept=_TRUTH)

    def _arm(self, name: str, value: ast.expr, kept: _Kept) -> list[ast.stmt]:
        arm = _Spilled(self._function)
        if isinstance(value, (ast.IfExp, ast.BoolOp)) and kept != _Kept():
            found = arm._branched(value, kept)
        else:
            found = arm.visit(value, is_whole=True, kept=kept)
        return [*arm.made, assigned(name, found, value)]


def _is_starred(nodes: list[ast.expr]) -> bool:
    return any(isinstance(each, ast.Starred) for each in nodes)


def _last(parts: list[Part]) -> int | None:
    """The last of the parts with a call."""
    found = [n for n, each in enumerate(parts) if _has_call(each.node)]
    return found[-1] if found else None


def _branches(node: ast.IfExp | ast.BoolOp) -> list[ast.expr]:
    return [node.test, node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values


def _has_call(node: ast.AST) -> bool:
    """Whether an expression calls what may be the user's, or goes over items, at least at times."""
    if isinstance(node, COMPREHENSIONS):
        return True
    if isinstance(node, OPAQUE):
        return any(_has_call(each.node) for each in parts_of(node))
    if isinstance(node, ast.Call) and (_is_users(node) or _goes_over(node)):
        return True
    if isinstance(node, ast.Attribute) and _is_property(node):
        return True
    return any(map(_has_call, ast.iter_child_nodes(node)))


def _is_property(node: ast.Attribute) -> bool:
    return getattr(node, MAY_BE_USERS, False)


def _is_users(node: ast.Call) -> bool:
    if getattr(node, MAY_BE_USERS, False):
        return True
    if isinstance(node.func, ast.Name):
        name = node.func.id
        return not (name in vars(builtins) or name in _WORDS or name in OPERATORS)
    is_method = isinstance(node.func, ast.Attribute)
    return not is_method or (node.func.attr not in _METHODS | _WORDS)  # type: ignore[attr-defined]


def _goes_over(node: ast.Call) -> bool:
    """Whether a call goes over a generator expression at once."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    is_over = name in USES_UP or name in DECIDES or name in (FIRST, EXTEND)
    return is_over and any(isinstance(each, ast.GeneratorExp) for each in node.args)
