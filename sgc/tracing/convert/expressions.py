"""Rewrites expressions whose abstract operands Python would treat as plain text.

An f-string, `%`, `x in text`, a method of a plain text, and a comparison with a text of a user's
class call none of an abstract text's methods: CPython joins, searches or cuts its marker. Here each
becomes a call of an operator (`sgc.tracing.operators`), or its operands do. Everything keeps its
position and its order of evaluation, and is evaluated once.
"""

from __future__ import annotations

import ast
from typing import TypeVar

from sgc.tracing.code.operator_names import (
    ASCII,
    ATTRIBUTE,
    CALLEE,
    COMPARED,
    CONTAINS,
    FORMATTED,
    IDENTICAL,
    ITEM,
    LISTED,
    METHOD,
    MODULO,
    OPERATORS,
    OR_NONE,
    OVER,
    OWNER,
    READ_OF,
    RETURNED,
    SAME,
    SLICE,
    SPREAD,
    TEXT,
    UNPACKED,
    WHOLE,
)
from sgc.tracing.code.process_names import NAMES_OF_PROCESS
from sgc.tracing.convert.forms import (
    is_constant,
    is_identity,
    is_literal,
    is_modulo,
    is_none,
    is_quiet,
    is_spread,
    is_unpacked,
)
from sgc.tracing.convert.live import with_live
from sgc.tracing.convert.loops.comprehensions import with_loops
from sgc.tracing.convert.loops.keyed import with_keyed
from sgc.tracing.convert.loops.lambdas import with_named_lambdas
from sgc.tracing.convert.loops.mapped import with_mapped
from sgc.tracing.convert.loops.named_generators import with_named_generators
from sgc.tracing.convert.loops.nested import with_flat
from sgc.tracing.convert.loops.turns import endless, with_turns
from sgc.tracing.convert.loops.while_tests import with_while_tests
from sgc.tracing.convert.managers import is_own, with_managers
from sgc.tracing.convert.matches import with_matches
from sgc.tracing.convert.module_names import ModuleNames
from sgc.tracing.convert.pieces import with_pieces
from sgc.tracing.convert.spilling import with_spilled
from sgc.tracing.pieces.piece import NO_PIECES, Pieces
from sgc.tracing.values.json.abstract_object import INNER_NAMES, OWN_NAMES

_ITSELF = frozenset({"super", *OPERATORS})
# Builtins that C code calls if they are passed to it: `map(int, texts)`.
_PASSED = frozenset(
    {"all", "any", "ascii", "chr", "float", "int", "len", "max", "min", "ord", "sorted", "sum"}
)

_AS_ASCII = 97  # the conversion of `{x!a}` in the syntax tree

# Methods that must return a bool or a number of Python's own types.
_EXACT = frozenset({"__bool__", "__int__", "__index__", "__float__", "__len__", "__hash__"})

_Node = TypeVar("_Node", bound=ast.AST)


def convert(tree: ast.Module, names: ModuleNames, pieces: Pieces = NO_PIECES) -> ast.Module:
    """Rewrites the expressions of a module, or of a part of it, in place; its `pieces` become
    nodes. names: the whole module's.
    """
    loops = endless(tree) if pieces.are_counted else []
    if pieces.are_all:
        return with_turns(with_pieces(tree, pieces), loops)
    if pieces.live:
        tree = with_live(with_named_lambdas(tree, names), pieces.live)
        tree = with_keyed(tree, names)
    tree = with_while_tests(with_turns(tree, loops))
    is_live = bool(pieces.live)
    mapped = with_mapped(with_matches(with_pieces(tree, pieces), is_live), names)
    flat = with_flat(with_named_generators(mapped, names), names)
    looped = with_loops(with_spilled(flat, names, is_live=is_live), names, is_live)
    # What comprehensions have become are statements, too.
    spilled = with_spilled(looped, names, "item", is_live)
    converted: ast.Module = _Expressions(names, is_live).visit(spilled)
    return with_managers(converted)


class _Expressions(ast.NodeTransformer):
    def __init__(self, names: ModuleNames, is_live: bool) -> None:
        self._is_live = is_live
        self._of_process = names.of_process
        self._called: ast.expr | None = None  # the function of the call that is visited
        self._n_scopes = self._n_held = 0

    # -- what is evaluated -----------------------------------------------------------------

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        is_plain = not any(isinstance(value, ast.FormattedValue) for value in node.values)
        return node if is_plain else _call(TEXT, node, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        node.value = self.visit(node.value)
        if node.conversion == _AS_ASCII:
            node.value, node.conversion = _call(ASCII, node.value, node.value), -1
        spec = node.format_spec
        parts = getattr(spec, "values", ())
        if spec is not None and any(isinstance(each, ast.FormattedValue) for each in parts):
            value = node.value
            if node.conversion >= 0:
                shown = ast.FormattedValue(value, node.conversion, None)
                value = ast.JoinedStr([ast.copy_location(shown, value)])
                value = _call(TEXT, node.value, ast.copy_location(value, node.value))
            node.value = _call(FORMATTED, node.value, value, self.visit(spec))
            node.conversion, node.format_spec = -1, None
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _call(MODULO, node, node.left, node.right) if is_modulo(node) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        target = node.target
        if isinstance(target, ast.Attribute) and target.attr in OWN_NAMES:  # it is read, too
            target.value = _call(OWNER, target.value, target.value)
        if not is_modulo(node) or not isinstance(node.target, ast.Name):
            return node
        before = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = _call(MODULO, node, before, node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        op, right = node.ops[0], node.comparators[0]
        if len(node.ops) > 1:
            return self._chain(node)
        if isinstance(op, ast.In):
            return _call(CONTAINS, node, node.left, right)
        if isinstance(op, ast.NotIn):
            found = _call(CONTAINS, node, node.left, right)
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
        if is_identity(op) and self._is_live and not is_constant(node.left, right):
            same = _call(IDENTICAL, node, node.left, right)
            is_not = isinstance(op, ast.IsNot)
            return ast.copy_location(ast.UnaryOp(ast.Not(), same), node) if is_not else same
        return self._chain(node)

    def _chain(self, node: ast.Compare) -> ast.Compare:
        """The comparison with operands made abstract; operands of `is` keep their identity."""
        before = [ast.Is(), *node.ops]
        operands = [node.left, *node.comparators]
        for n, (op, following) in enumerate(zip(before, [*node.ops, ast.Is()], strict=True)):
            if isinstance(op, (ast.In, ast.NotIn)):
                operands[n] = _call(WHOLE, operands[n], operands[n])
            elif not (is_identity(op) and is_identity(following)):
                operands[n] = _operand(operands[n])
            else:
                beside = operands[max(n - 1, 0) : n + 2]
                operands[n] = _same(operands[n], OR_NONE if any(map(is_none, beside)) else SAME)
        node.left, *node.comparators = operands
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        is_called = node is self._called
        self.generic_visit(node)
        is_of_str = isinstance(node.value, ast.Name) and node.value.id == "str"
        if is_of_str and isinstance(node.ctx, ast.Load):
            return _call(CALLEE, node, node)
        module = self._of_process.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if module is not None and node.attr in NAMES_OF_PROCESS[module[0]]:
            return self._read_of(node, module[0], node.attr)
        is_method = is_called and node.attr not in INNER_NAMES
        if node.attr in OWN_NAMES and isinstance(node.ctx, ast.Load) and not is_method:
            name = ast.copy_location(ast.Constant(node.attr), node)
            return _call(ATTRIBUTE, node, node.value, name)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        module, name = self._of_process.get(node.id, ("", ""))
        return self._read_of(node, module, name) if name else node

    def _read_of(self, node: ast.Name | ast.Attribute, module: str, name: str) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            return node
        of = [ast.copy_location(ast.Constant(each), node) for each in (module, name)]
        return _call(READ_OF, node, *of, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or is_literal(node.slice):
            return node
        if isinstance(node.slice, ast.Slice):
            ends = [node.slice.lower, node.slice.upper, node.slice.step]
            if all(end is None or is_literal(end) for end in ends):
                return node
            given = [ast.Constant(None) if end is None else end for end in ends]
            return _call(SLICE, node, node.value, *(ast.copy_location(end, node) for end in given))
        return _call(ITEM, node, node.value, node.slice)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self._called = node.func
        spreads = is_spread(node)
        held = self._held(node) if spreads else None
        unpacks = self._is_live and not self._n_scopes and is_unpacked(node)
        held = self._name_held() if unpacks else held
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _ITSELF:
            return node
        if held is not None:
            node.func = ast.copy_location(ast.NamedExpr(_stored(held, node), node.func), node)
        if self._is_live and isinstance(node.func, ast.Attribute):
            node.func.value = _call(METHOD, node.func.value, node.func.value)
        node.func = _call(CALLEE, node.func, node.func)
        node.args = [_passed(value) for value in node.args]
        if unpacks:
            *before, star = node.args
            given = [ast.copy_location(each, node) for each in (
                ast.Constant(len(before)), ast.Name(str(held), ast.Load())
            )]  # fmt: skip
            star.value = _call(UNPACKED, star, star.value, *given)  # type: ignore[attr-defined]
            return _call(TEXT, node, node)
        for keyword in node.keywords:
            value = _passed(keyword.value)
            given = [] if held is None else [ast.copy_location(ast.Name(held, ast.Load()), node)]
            keyword.value = _call(SPREAD, value, value, *given) if spreads else value
        return _call(TEXT, node, node)

    def visit_scope(self, node: _Node) -> ast.AST:
        self._n_scopes += 1
        found = self.generic_visit(node)
        self._n_scopes -= 1
        return found

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_scope
    visit_Lambda = visit_scope

    def _held(self, node: ast.Call) -> str | None:
        """A name for the function of `f(**g())`, which `g` must not hide; None where no name can be
        set, and for `f(**data)`."""
        (given,) = node.keywords
        is_called = any(isinstance(each, ast.Call) for each in ast.walk(given))
        return None if not is_called or self._n_scopes else self._name_held()

    def _name_held(self) -> str:
        self._n_held += 1
        return f"__sgc_spread_{self._n_held}__"

    def visit_For(self, node: ast.For) -> ast.stmt:
        self.generic_visit(node)
        node.iter = _call(OVER, node.iter, node.iter)
        return node

    def visit_withitem(self, node: ast.withitem) -> ast.withitem:
        is_kept = isinstance(node.context_expr, ast.Call)  # `bytecode.py` looks for it
        if is_kept and not (self._is_live and not is_own(node.context_expr)):
            self._called = node.context_expr.func  # type: ignore[attr-defined]
            self.generic_visit(node.context_expr)
        else:
            node.context_expr = self.visit(node.context_expr)
        if node.optional_vars is not None:
            node.optional_vars = self.visit(node.optional_vars)
        return node

    def visit_List(self, node: ast.List) -> ast.expr:
        return self._display(node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return self._display(node)

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return self._display(node)

    def _display(self, node: ast.List | ast.Tuple | ast.Set) -> ast.expr:
        """`[*xs, x]`, where `xs` may be live; what comes after it must not change it."""
        stars = "".join("*" if isinstance(each, ast.Starred) else " " for each in node.elts)
        is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        is_one = self._is_live and "*" in stars and is_read
        is_one = is_one and all(map(is_quiet, node.elts[stars.index("*") + 1 :]))
        self.generic_visit(node)
        if not is_one:
            return node
        parts = [each.value if isinstance(each, ast.Starred) else each for each in node.elts]
        how = [ast.copy_location(ast.Constant(each), node) for each in (type(node).__name__, stars)]
        return _call(LISTED, node, *how, *parts)

    # -- what is not evaluated here ----------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        if node.name in _EXACT:
            _Returns().generic_visit(node)
        return self._definition(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self._definition(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return self._definition(node)

    def _definition(self, node: _Node) -> _Node:
        """Visits all parts but annotations, type parameters and decorators, of which only functions
        that they are given."""
        inside = _Lambdas(self)
        node.decorator_list = [inside.visit(each) for each in node.decorator_list]  # type: ignore[attr-defined]
        for name in ("args", "bases", "keywords", "body"):
            found = getattr(node, name, None)
            if isinstance(found, list):
                setattr(node, name, [self.visit(item) for item in found])
            elif found is not None:
                self.visit(found)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


class _Lambdas(ast.NodeTransformer):
    """Rewrites the lambdas inside an expression, and nothing else of it."""

    def __init__(self, expressions: _Expressions) -> None:
        self._expressions = expressions

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        found: ast.expr = self._expressions.visit(node)
        return found


class _Returns(ast.NodeTransformer):
    """Rewrites a function's return values, but not those of functions inside it."""

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if node.value is not None:
            node.value = _call(RETURNED, node.value, node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node


def _stored(name: str, at: ast.expr) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Store()), at)


def _same(node: ast.expr, name: str) -> ast.expr:
    return node if isinstance(node, ast.Constant) else _call(name, node, node)


def _operand(node: ast.expr) -> ast.expr:
    """An operand of a comparison; a constant stays as it is."""
    return node if isinstance(node, ast.Constant) else _call(COMPARED, node, node)


def _passed(node: ast.expr) -> ast.expr:
    is_builtin = isinstance(node, ast.Name) and node.id in _PASSED
    return _call(CALLEE, node, node) if is_builtin else node


def _call(name: str, at: ast.expr | ast.stmt, *args: ast.expr) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, list(args), []), at)
