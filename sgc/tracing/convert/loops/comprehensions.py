"""Rewrites comprehensions as loops, for iterables that are known only at run time.

While a comprehension runs, its expression is partly evaluated, so paths cannot merge there. A
comprehension that its statement evaluates first is taken out: `x = [f(t) for t in xs if t]` becomes

    it = xs
    if loops(it):
        made = []
        for u in it:
            if u:
                made.append(f(u))
    else:
        made = [f(t) for t in it if t]
    x = made

The same is done for comprehensions of sets and dicts, which are made of that list at the end, and
for generators that `join`, `sum`, `any`, `all` and the like consume at once, and for `next` of one
that calls a tool or a program. A comprehension that
is evaluated after a call, or only conditionally, stays. Where data are live objects, those inside
of another are loops inside of its loop; there, they are never what they were written.
"""

from __future__ import annotations

import ast
import builtins
from enum import IntEnum

from sgc.tracing.code.operator_names import ALWAYS, OWN, UNCHANGED
from sgc.tracing.code.using_up import USES_UP
from sgc.tracing.convert.loops.extended import extending
from sgc.tracing.convert.loops.looping import (
    COPIED,
    DECIDES,
    FIRST,
    MAY_BE_USERS,
    Made,
    are_loops,
    assigned,
    can_be_twice,
    is_simple,
    loaded,
    loop_of,
    placed,
    statements,
)
from sgc.tracing.convert.loops.stepping import listed, may_be_generator, stepped, used_up
from sgc.tracing.convert.loops.substitutions import substitution
from sgc.tracing.convert.module_names import ModuleNames
from sgc.tracing.convert.spilling import Spiller


def with_loops(tree: ast.Module, names: ModuleNames, is_live: bool = False) -> ast.Module:
    """Rewrites the tree's comprehensions in place, so that each is a loop too. is_live: the lists
    that they make are live."""
    _Functions(names, is_live).visit(tree)
    return tree


class _Functions(ast.NodeVisitor):
    def __init__(self, names: ModuleNames, is_live: bool) -> None:
        self._names, self._is_live = names, is_live

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.generic_visit(node)
        names = _Names(self._names, self._is_live, node)
        node.body = _body(node.body, names)


class _Names:
    """Makes names that no program has. rebound, replaced: the program's names and attributes that a
    call may set; yields, generators: whether it has generators, and the names of some; spiller:
    takes the calls of loops inside of others apart."""

    def __init__(self, of: ModuleNames, is_live: bool, function: ast.FunctionDef) -> None:
        self.is_live, self.bound = is_live, of.bound
        self.spiller = Spiller(function, of, "inner", is_live)
        self._n, self.rebound, self.replaced = 0, of.rebound, of.replaced
        self.yields, self.generators = of.yields, of.generators

    def fresh(self, name: str = "") -> str:
        self._n += 1
        return f"__sgc_{self._n}_{name}__"


def _body(body: list[ast.stmt], names: _Names) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for stmt in body:
        if not isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            _blocks(stmt, names)
            extended = _extended(stmt, names)
            if extended is not None:
                made += extended
                continue
            made += _hoisted(stmt, names)
        made.append(stmt)
    return made


def _extended(stmt: ast.stmt, names: _Names) -> list[ast.stmt] | None:
    """A statement that extends a list by a generator expression, as a loop; None for others."""
    found = extending(stmt, names)
    if found is None:
        return None
    loop = _loop(found.made, found.made, found.it, found.to, names, are_added=True)
    before = _body(names.spiller.body(found.before), names)
    return [*before, *found.after(None if loop is None else loop[0])]


def _loop(
    node: ast.expr, made: Made, it: str, result: str, names: _Names, are_added: bool = False
) -> tuple[list[ast.stmt], bool] | None:
    """The loop of a comprehension, and whether others in it have become loops; None if one has to
    stay. are_added: to a list that is there."""
    if names.is_live and not is_simple(made):
        body = loop_of(node, made, it, result, names, is_nested=True)[are_added:]
        body = _body(names.spiller.body(body), names)
        if are_loops(body):
            return body, True
    if not is_simple(made, names.is_live):
        return None
    return loop_of(node, made, it, result, names)[are_added:], False


def _blocks(stmt: ast.stmt, names: _Names) -> None:
    """Rewrites the blocks inside a statement."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(stmt, name, None)
        if isinstance(block, list):
            setattr(stmt, name, _body(block, names))
    for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
        part.body = _body(part.body, names)


def _hoisted(stmt: ast.stmt, names: _Names) -> list[ast.stmt]:
    """Takes the parts that a statement evaluates first out of it, as statements before it."""
    made: list[ast.stmt] = []
    field = _FIELDS.get(type(stmt))
    value = getattr(stmt, field) if field is not None else None
    if not isinstance(value, ast.expr):
        return made
    if isinstance(stmt, (ast.Assign, ast.AugAssign)) and not _targets_wait(stmt, names):
        return made
    finder = _First(names)
    if isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name):
        finder.read.add(stmt.target.id)
    is_whole = not isinstance(stmt, (ast.AugAssign, ast.If, ast.For, ast.Assert, ast.Match))
    setattr(stmt, field, finder.visit(value, is_whole))  # type: ignore[arg-type]
    return finder.made


_FIELDS: dict[type[ast.stmt], str] = {
    ast.Assign: "value", ast.AnnAssign: "value", ast.AugAssign: "value", ast.Return: "value",
    ast.Expr: "value", ast.If: "test", ast.For: "iter", ast.Raise: "exc", ast.Assert: "test",
    ast.Match: "subject",
}  # fmt: skip


def _targets_wait(stmt: ast.Assign | ast.AugAssign, names: _Names) -> bool:
    """Whether the target can be evaluated after the value without a difference."""
    if isinstance(stmt, ast.Assign):
        return True
    return isinstance(stmt.target, ast.Name) and stmt.target.id not in names.rebound


class _Before(IntEnum):
    """What a statement evaluates before the current part."""

    NOTHING = 0  # nothing whose order relative to the part matters
    READS = 1  # reads of values that a call of a user's function may change
    EFFECTS = 2


class _First:
    """Takes comprehensions and calls out of an expression, as long as the parts before them can be
    evaluated after them instead.
    """

    def __init__(self, names: _Names) -> None:
        self._names = names
        self.made: list[ast.stmt] = []
        self._before = _Before.NOTHING
        self.read: set[str] = set()  # names that the parts before read, which stay in their place

    def visit(self, node: ast.expr, is_whole: bool = False) -> ast.expr:
        """Visits an expression. is_whole: the statement evaluates nothing else."""
        if self._before is _Before.EFFECTS or isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Name):
            self.read.add(node.id)
            self._saw(_Before.READS if node.id in self._names.rebound else _Before.NOTHING)
            return node
        made = _decided(node, self._names) or _listed(node)
        if made is not None:
            taken = self._taken(node, made)
            if taken is not None:
                return taken
        if isinstance(node, ast.Call):
            return self._substituted(node) or self._stepped(node) or self._call(node, is_whole)
        if isinstance(node, ast.Attribute):
            node.value = self.visit(node.value)
            self._saw(_Before.READS)
            return node
        if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
            self.read.add(node.value.id)
            self._saw(_Before.READS if node.format_spec is None else _Before.EFFECTS)
            return node
        if isinstance(node, (ast.BoolOp, ast.IfExp)):
            self._conditional(node)
        elif isinstance(node, ast.Compare):  # the rest of a chain is evaluated conditionally
            node.left = self.visit(node.left)
            node.comparators[0] = self.visit(node.comparators[0])
        elif isinstance(node, ast.NamedExpr):
            node.value = self.visit(node.value)
        elif isinstance(node, _IN_ORDER):
            node = self._hoist_before_generator(node) or node
            if not isinstance(node, ast.Name):
                self._in_order(node)
        self._saw(_Before.EFFECTS)
        return node

    def _saw(self, what: _Before) -> None:
        self._before = max(self._before, what)

    def _taken(self, node: ast.expr, made: Made) -> ast.expr | None:
        """Takes a comprehension out; None if it has to stay."""
        before, first = self._before, made.generators[0]
        first.iter = self.visit(first.iter)  # which is evaluated before all else of it
        if not self.read.isdisjoint(named_in(made)):
            return None
        if before and not (before is _Before.READS and _is_pure(node)):
            return None
        found = self._take(node, made)
        self._before = self._before if found is None else before
        return found

    def _substituted(self, node: ast.Call) -> ast.expr | None:
        """Takes out what a call of `sub` gives for the matches; None if that has to stay."""
        if self._before:
            return None
        found = substitution(node, self._names.fresh)
        if found is None:
            return None
        self.made += found.before
        self._before = _Before.EFFECTS
        return found.value

    def _stepped(self, node: ast.Call) -> ast.expr | None:
        """Takes out `next` of what may be a generator; None if it has to stay."""
        if self._before or not self._names.yields:
            return None
        found = stepped(node, self._names)
        if found is None:
            return None
        self.made += found.before
        return found.value

    def _used_up(self, node: ast.expr, by: ast.expr | None) -> ast.expr | None:
        """Takes out the items of what may be a generator; None if that has to stay."""
        if self._before or not self._names.yields:
            return None
        found = used_up(node, by, self._names)
        if found is None:
            return None
        self.made += found.before
        return found.value

    def _hoist_before_generator(self, node: ast.expr) -> ast.expr | None:
        """Takes out what a display has before the items of what may be a generator, and these;
        returns what takes its place, if that is something else."""
        if self._before or not self._names.yields:
            return None
        if not isinstance(node, (ast.List, ast.Tuple, ast.Set)) or not _is_read(node):
            return None
        stars = [n for n, each in enumerate(node.elts) if isinstance(each, ast.Starred)]
        first = node.elts[stars[0]] if stars else None
        if not isinstance(first, ast.Starred) or not may_be_generator(first.value, self._names):
            return None
        for n, each in enumerate(node.elts[: stars[0]]):
            if not isinstance(each, ast.Constant):
                node.elts[n] = self._held(each)
        if isinstance(node, ast.List):
            found = listed(node, stars[0], self._names)
            self.made += found.before
            return found.value
        first.value = self._used_up(first.value, None) or first.value
        return None

    def _held(self, part: ast.expr) -> ast.expr:
        """A part that is evaluated before the statement, as a variable."""
        value, name = self.visit(part), self._names.fresh()
        self.made.append(assigned(name, value, part))
        self._before = _Before.NOTHING
        return loaded(name, part)

    def _call(self, node: ast.Call, is_whole: bool) -> ast.expr:
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
            if node.func.attr in self._names.replaced:
                self._saw(_Before.READS)
        else:
            node.func = self.visit(node.func)
        n_made = len(self.made)
        uses_up = _name_of(node.func) in USES_UP
        for n, arg in enumerate(node.args):
            is_used = uses_up and isinstance(arg, ast.GeneratorExp)
            taken = self._taken(arg, arg) if is_used else None  # type: ignore[arg-type]
            if taken is None and uses_up and not is_used and n == 0 and len(node.args) == 1:
                taken = self._used_up(arg, node.func)
            node.args[n] = taken or self.visit(arg)
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if len(self.made) > n_made and isinstance(node.func, ast.Attribute):
            self._look_up_first(node.func, n_made)
        is_first = self._before is _Before.NOTHING
        self._saw(_Before.EFFECTS)
        if is_whole or not is_first or not _is_users(node):
            return node
        self._before = _Before.NOTHING
        name = self._names.fresh()
        self.made.append(assigned(name, node, node))
        return loaded(name, node)

    def _look_up_first(self, method: ast.Attribute, n_made: int) -> None:
        """Holds a variable's method against what it was before the parts taken out since."""
        if not isinstance(method.value, ast.Name):
            return
        held, name = self._names.fresh(), placed(ast.Constant(method.attr), method)
        found = placed(ast.Call(loaded(OWN, method), [method.value, name], []), method)
        self.made.insert(n_made, assigned(held, found, method))
        now = [method.value, name, loaded(held, method)]
        method.value = placed(ast.Call(loaded(UNCHANGED, method), now, []), method)

    def _conditional(self, node: ast.BoolOp | ast.IfExp) -> None:
        if isinstance(node, ast.BoolOp):
            node.values[0] = self.visit(node.values[0])
        elif isinstance(node.test, ast.Name) and node.test.id == ALWAYS:
            node.body = self.visit(node.body)
        else:
            node.test = self.visit(node.test)

    def _in_order(self, node: ast.expr) -> None:
        if isinstance(node, ast.Dict):
            for n, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
                node.keys[n] = key and self.visit(key)
                node.values[n] = self.visit(value)
                if key is None:  # its items are read
                    self._saw(_Before.EFFECTS)
            return
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, name, self.visit(value))
            elif isinstance(value, list):
                value[:] = [self.visit(e) if isinstance(e, ast.expr) else e for e in value]

    def _take(self, node: ast.expr, made: Made) -> ast.expr | None:
        it, result = self._names.fresh(), self._names.fresh()
        found = _loop(node, made, it, result, self._names)
        if found is None:
            return None
        self.made += statements(node, made, it, result, *found)
        return ast.copy_location(ast.Name(result, ast.Load()), node)


_IN_ORDER = (
    ast.BinOp, ast.UnaryOp, ast.JoinedStr, ast.FormattedValue, ast.Attribute,
    ast.Subscript, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred,
)  # fmt: skip


_KNOWN = frozenset(name for each in (str, list, dict, set, int) for name in dir(each))


def _is_read(node: ast.List | ast.Tuple | ast.Set) -> bool:
    return isinstance(node, ast.Set) or isinstance(node.ctx, ast.Load)


def _is_users(node: ast.Call) -> bool:
    """Whether this is a call on one line of what may be a user's function, which may have loops."""
    if node.lineno != node.end_lineno:
        return False  # the parts on its other lines are evaluated in the order of lines
    if isinstance(node.func, ast.Name):
        return getattr(node, MAY_BE_USERS, False) or node.func.id not in vars(builtins)
    return isinstance(node.func, ast.Attribute) and node.func.attr not in _KNOWN


def _is_pure(node: ast.expr) -> bool:
    """Whether an expression calls only Python's own functions."""
    calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
    return not any(_is_users(call) for call in calls)


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _decided(node: ast.expr, names: _Names) -> ast.GeneratorExp | None:
    """The generator of `any(…)`, `all(…)` or `next(…, default)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        return None
    if node.func.id in DECIDES:
        is_taken = len(node.args) == 1
    else:
        is_taken = node.func.id == FIRST and len(node.args) == 2
        is_taken = is_taken and not isinstance(node.args[1], ast.Starred)
        is_taken = is_taken and can_be_twice(node.args[1])
    arg = node.args[0] if is_taken else None
    if not isinstance(arg, ast.GeneratorExp) or not (names.is_live or is_simple(arg)):
        return None
    if hasattr(arg, COPIED) and not {node.func.id, "*"}.isdisjoint(names.bound):
        return None  # whether it is Python's own is not asked there
    return arg if node.func.id in DECIDES or len(arg.generators) == 1 else None


def _listed(node: ast.expr) -> ast.ListComp | None:
    """The comprehension of the list of which a comprehension is made; itself for a list."""
    if isinstance(node, ast.ListComp):
        return node
    if isinstance(node, ast.SetComp):
        return placed(ast.ListComp(node.elt, node.generators), node)
    if isinstance(node, ast.DictComp):
        item = placed(ast.Tuple([node.key, node.value], ast.Load()), node.key)
        return placed(ast.ListComp(item, node.generators), node)
    return None


def named_in(made: ast.AST) -> set[str]:
    """The names that walruses of a comprehension set in its function."""
    return {each.target.id for each in ast.walk(made) if isinstance(each, ast.NamedExpr)}
