"""Sets of the program whose order differs in a copy, or in a set that code makes.

The order of texts in a set differs by process. The order of numbers follows from how the set was
made, and is the same in each run of a program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sgc.runtime.executor.code.set_order import copied_set, is_constant, merged

_NUMBERS = (int, float, bool, Decimal, Fraction)


def order_is_fixed(value: Any) -> bool:
    """Whether the hash of a value, or the hashes of its items, are the same in each process."""
    if type(value) in (tuple, frozenset, set):
        return all(map(order_is_fixed, value))
    return type(value) in _NUMBERS


def has_open_order(node: ast.Set) -> bool:
    """Whether the order of a display of numbers depends on the order in which they were added; this
    order differs if Python has read a module's constants from its `.pyc`."""
    if not all(map(is_constant, node.elts)):
        return False
    try:
        items = [ast.literal_eval(each) for each in node.elts]
    except ValueError:  # to be computed
        return True
    if not order_is_fixed(tuple(items)):
        return False
    each_order = [items[n:] + items[:n] for n in range(len(items))]
    each_order += [order[::-1] for order in each_order]
    made = {(*frozenset(order),) for order in each_order}
    return len(made) > 1 or len({(*merged(order),) for order in each_order}) > 1


def sets_in(value: Any) -> Iterator[Any]:
    """The sets and frozensets in plain data."""
    if isinstance(value, (set, frozenset)):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from sets_in(each)


def copied_data(value: Any) -> Any:
    """A deep copy of plain data, whose sets have the same order as the originals where possible."""
    return deepcopy(value, {id(each): _copied(each) for each in sets_in(value)})


def _copied(value: Any) -> Any:
    return value if isinstance(value, frozenset) else copied_set(value)[0]


def has_lost(value: Any) -> bool:
    """Whether a copy of plain data has a set of another order."""
    return any(isinstance(each, set) and not copied_set(each)[1] for each in sets_in(value))


# -- where the order of a set is seen -----------------------------------------------------------

# Functions whose result, for a single set, is the same in any order.
BLIND = frozenset({
    "all", "any", "bool", "frozenset", "isinstance", "len", "max", "min", "set", "sorted",
})  # fmt: skip
# Methods of a set whose results and effects are the same in any order.
_BLIND_METHODS = frozenset({
    "add", "clear", "difference_update", "discard", "intersection_update", "isdisjoint", "issubset",
    "issuperset", "remove", "symmetric_difference_update", "update",
})  # fmt: skip
_MAKING = frozenset({"copy", "difference", "intersection", "symmetric_difference", "union"})
# Methods that only sets have, and that put no item of their argument into the set they change.
_OF_SETS_ALONE = frozenset({
    "difference", "difference_update", "intersection", "isdisjoint", "issubset", "issuperset",
    "symmetric_difference", "union",
})  # fmt: skip
# Nodes that may be computed for each item in any order: they call and set nothing and cannot fail.
_PLAIN = (
    ast.Name, ast.Constant, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.UnaryOp,
    ast.unaryop, ast.IfExp, ast.Tuple, ast.expr_context, ast.comprehension,
)  # fmt: skip


def order_seen(
    trees: Sequence[ast.AST], names: Set[str], given: Set[str] = frozenset()
) -> ast.expr | None:
    """An expression of one of these names, or of a part of its value, by which code may see the
    order of a set's items; None if there is none. Variables that get such a set, or a set that
    operators make from it, count as these names. given: the variables that code returns. The names
    in BLIND are Python's own there."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    seeing = _Seeing.of(nodes)
    known, left = set(names), set(names)
    while left:
        found = {node: seeing.variables_of(node) for node in _reads(nodes, left)}
        left = set().union(*found.values()) - known
        known |= left
        for node, variables in found.items():
            is_kept = bool(variables) and variables.isdisjoint(given)
            if not is_kept and not seeing.is_blind(node):
                return node
            if is_kept and not seeing.is_blind_beside(node):
                return node
    return None


def blind_uses(nodes: Sequence[ast.AST]) -> Callable[[ast.AST], bool]:
    """Whether the use of a set, one of these nodes, has the same result in any order."""
    return _Seeing.of(nodes).is_blind


def _reads(nodes: Iterable[ast.AST], names: Set[str]) -> Iterator[ast.expr]:
    """The expressions that read a variable or an attribute of one of these names."""
    for node in nodes:
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
        if name in names and isinstance(getattr(node, "ctx", None), ast.Load):
            yield node  # type: ignore[misc]


def is_pythons_own(node: ast.expr, is_gone_over: bool = False) -> bool:
    """Whether an expression is a display that Python's compiler makes a constant set: a display of
    three or more constants, or any display of constants that a loop iterates. Unless the constants
    are numbers, the set's order depends on more than their order."""
    if not isinstance(node, ast.Set) or not all(map(is_constant, node.elts)):
        return False
    if len(node.elts) < (2 if is_gone_over else 3):
        return False
    try:
        return not order_is_fixed(tuple(map(ast.literal_eval, node.elts)))
    except ValueError:  # to be computed
        return True


def order_of_display_seen(trees: Sequence[ast.AST], given: Set[str]) -> bool:
    """Whether code may see the order of a display that Python's compiler makes a set. given: the
    variables that the code returns."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    seeing = _Seeing.of(nodes)
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Set) and seeing.is_pythons_own(node):
            found = seeing.variables_of(node)
            names |= found
            if not (seeing.is_blind_beside(node) if found else seeing.is_blind(node)):
                return True
    return not names.isdisjoint(given) or order_seen(trees, names, given) is not None


_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


class _Seeing:
    """Where the order of a set is seen. parents: the parent of each node; own: the names of the
    program's own functions and methods, which do not count as a set's."""

    def __init__(self, parents: Mapping[ast.AST, ast.AST], own: Set[str]) -> None:
        self._parents, self._own = parents, own

    @classmethod
    def of(cls, nodes: Sequence[ast.AST]) -> _Seeing:
        return cls(
            {child: node for node in nodes for child in ast.iter_child_nodes(node)},
            {node.name for node in nodes if isinstance(node, ast.FunctionDef)},
        )

    def is_pythons_own(self, display: ast.Set) -> bool:
        around = self._parents.get(display)
        is_gone_over = isinstance(around, (ast.For, ast.comprehension)) and around.iter is display
        return is_pythons_own(display, is_gone_over)

    def is_blind(self, node: ast.AST) -> bool:
        """Whether a use of a set, or of a value that holds it, has the same result in any order."""
        around = self._parents.get(node)
        if isinstance(around, ast.Compare):
            return True
        if isinstance(around, ast.Subscript):
            return around.slice is node or self.is_blind(around)
        if isinstance(around, ast.Attribute):
            return self._is_blind_method(around)
        if isinstance(around, ast.Call):
            return self._is_blind_call(around, node)
        if isinstance(around, ast.BinOp):
            if isinstance(around.op, ast.Sub) and around.right is node:
                return self._own.isdisjoint(("__sub__", "__rsub__"))  # leaves the others in place
            return isinstance(around.op, _OPERATORS) and self.is_blind(around)
        if isinstance(around, ast.comprehension):
            return around.iter is node and self._is_blind_over(self._parents[around], node)
        if isinstance(around, (ast.If, ast.While, ast.IfExp)):
            return around.test is node
        return isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not)

    def variables_of(self, made: ast.expr) -> set[str]:
        """The variables to which a set, or a set that operators make from it, is assigned."""
        around = self._parents.get(made)
        if isinstance(around, ast.BinOp) and isinstance(around.op, _OPERATORS):
            is_taken_away = isinstance(around.op, ast.Sub) and around.right is made
            return set() if is_taken_away else self.variables_of(around)
        if isinstance(around, ast.Assign):
            targets = around.targets
        else:
            is_one = isinstance(around, (ast.AnnAssign, ast.NamedExpr))
            targets = [around.target] if is_one else []  # type: ignore[union-attr]
        names = {each.id for each in targets if isinstance(each, ast.Name)}
        return names if len(names) == len(targets) else set()

    def is_blind_beside(self, made: ast.expr) -> bool:
        """Whether other uses of a set beside its assignment by `:=` have the same result in any
        order."""
        around = self._parents.get(made)
        if isinstance(around, ast.BinOp):
            return self.is_blind_beside(around)
        return not isinstance(around, ast.NamedExpr) or self.is_blind(around)

    def _is_blind_method(self, method: ast.Attribute) -> bool:
        """Whether a method of a set, or `get` of a dict of sets, has one result for all orders."""
        call = self._parents.get(method)
        if not isinstance(call, ast.Call) or call.func is not method or method.attr in self._own:
            return False
        is_making = method.attr in _MAKING or method.attr == "get"
        return method.attr in _BLIND_METHODS or (is_making and self.is_blind(call))

    def _is_blind_call(self, call: ast.Call, node: ast.AST) -> bool:
        function = call.func
        if isinstance(function, ast.Attribute):  # of another set
            is_of_set = function.attr in _OF_SETS_ALONE - self._own
            is_making = function.attr in _MAKING - {"difference"}
            return is_of_set and (not is_making or self.is_blind(call))
        if not isinstance(function, ast.Name) or call.keywords or function.id not in BLIND:
            return False
        if function.id == "isinstance":
            return call.args[0] is node
        # `max` of several arguments returns one of them.
        is_making = function.id in ("set", "frozenset")
        return call.args == [node] and (not is_making or self.is_blind(call))

    def _is_blind_over(self, made: ast.AST, node: ast.AST) -> bool:
        """Whether a comprehension over a set has the same result in any order."""
        apart = (made, node)
        if not all(isinstance(each, _PLAIN) for each in ast.walk(made) if each not in apart):
            return False
        if isinstance(made, ast.SetComp):
            return self.is_blind(made)
        around = self._parents.get(made)
        is_of_one = isinstance(made, (ast.GeneratorExp, ast.ListComp))
        return is_of_one and isinstance(around, ast.Call) and self._is_blind_call(around, made)
