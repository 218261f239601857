"""Finds syntax trees for running code: a code object's function, and the node at a place."""

from __future__ import annotations
import __future__

import ast
import dis
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType

from sgc.core.watching import unwatched
from sgc.tracing.code.opcodes import locals_of

Position = tuple[int, int, int, int]  # line, column, last line, last column
Function = ast.FunctionDef | ast.Lambda
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, eq=False, slots=True)
class Tree:
    """A file's syntax tree, its nodes in the order of `ast.walk`, and the parent of each node."""

    module: ast.Module
    nodes: tuple[ast.AST, ...]
    parents: dict[ast.AST, ast.AST]

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node


def tree_of(filename: str) -> Tree | None:
    """A file's tree; None if it cannot be read."""
    with unwatched():  # the program does not read its own source here
        lines = linecache.getlines(filename)
    known, tree = _trees.get(filename, (None, None))
    if known is not lines or not lines:  # the same list until the file is read anew
        tree = _parsed("".join(lines))
        if len(_trees) >= MAX_TREES:
            _trees.clear()
        _trees[filename] = lines, tree
    return tree


MAX_TREES = 64
_trees: dict[str, tuple[list[str], Tree | None]] = {}  # with the lines from which each was parsed


@lru_cache(maxsize=MAX_TREES)
def _parsed(source: str) -> Tree | None:
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    nodes = tuple(ast.walk(module))
    parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    return Tree(module, nodes, parents) if module.body else None


@lru_cache(maxsize=1024)
def function_of(code: CodeType, tree: Tree) -> Function | None:
    """The function with this code, or from which the code was converted; None if not unique."""
    found = [
        node
        for node in tree.nodes
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and _begins(node) == code.co_firstlineno
        and _name(node) == code.co_name
    ]  # fmt: skip
    if len(found) > 1:  # lambdas of one line: their returned expressions have different places
        places = {(line, col, end, end_col) for line, end, col, end_col in code.co_positions()}
        lambdas = [node for node in found if isinstance(node, ast.Lambda)]
        found = [node for node in lambdas if position(node.body) in places]
        # Python 3.12 gives returned constants the place of the lambda.
        found = found or [node for node in lambdas if position(node) in places]
    return found[0] if len(found) == 1 else None


CONVERTED: dict[int, CodeType] = {}  # converted codes by id, with the code in the file then
_FUTURES = 0
for _feature in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _feature).compiler_flag


def source_of(function: FunctionType) -> Function | None:
    """The syntax of a function, if its file says what the function does: the file may have been
    edited since it was imported, and the function's code may be another's."""
    code = function.__code__
    tree = tree_of(code.co_filename)
    node = None if tree is None else function_of(code, tree)
    if tree is None or node is None or CONVERTED.get(id(code)) is code:
        return node
    # pytest has rewritten a function with an `assert`
    if any(name.startswith("@py") for name in (*code.co_varnames, *code.co_names)):
        return node
    flags = code.co_flags & _FUTURES
    is_said = any(code in _codes(tree, code.co_filename, flags, apart) for apart in (False, True))
    return node if is_said else None


@lru_cache(maxsize=128)
def _codes(tree: Tree, filename: str, flags: int, is_apart: bool) -> frozenset[CodeType]:
    """The code of all functions of a file. is_apart: whether each statement is compiled by itself,
    as in notebooks."""
    parts = [ast.Module([each], []) for each in tree.module.body] if is_apart else [tree.module]
    left = [compile(each, filename, "exec", flags, dont_inherit=True) for each in parts]
    found: set[CodeType] = set()
    while left:
        inside = [each for each in left.pop().co_consts if isinstance(each, CodeType)]
        found.update(inside)
        left += inside
    return frozenset(found)


def _begins(node: Function) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(each.lineno for each in decorators)])


def _name(node: Function) -> str:
    return node.name if isinstance(node, ast.FunctionDef) else "<lambda>"


def position(node: ast.AST) -> Position | None:
    line = getattr(node, "lineno", None)
    if line is None:
        return None
    return line, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


@lru_cache(maxsize=4096)
def place_of(code: CodeType, offset: int) -> Position | None:
    """An instruction's position in its file."""
    positions = list(code.co_positions())
    line, end_line, column, end_column = positions[offset // 2]
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return line, column, end_line, end_column


@lru_cache(maxsize=4096)
def place_in(code: CodeType, offset: int, tree: Tree) -> Position | None:
    """The position of the statement or expression to which an instruction belongs. An instruction
    that takes a `for`'s items, or enters or leaves a `with`, belongs to the statement, although
    Python 3.13 places it at the iterable or the manager.
    """
    place = place_of(code, offset)
    if place is None or not _is_of_block(code, offset):
        return place
    inner = at(place, tree)
    for outer in () if inner is None else tree.above(inner):
        if position(outer) is not None and not isinstance(outer, ast.expr):
            heads = _heads(outer)
            return position(outer) if place in map(position, heads) else place
    return place


def _is_of_block(code: CodeType, offset: int) -> bool:
    """Whether an instruction belongs to a block, not to the expression at the block's head: an exit
    is called with constants that the expression does not have."""
    name, before = (dis.opname[code.co_code[each]] for each in (offset, offset - 2))
    is_exit = (name, before) == ("CALL", "LOAD_CONST")
    is_exit = is_exit and place_of(code, offset - 2) == place_of(code, offset)
    return is_exit or name in _OF_BLOCKS


_OF_BLOCKS = frozenset({"GET_ITER", "FOR_ITER", "BEFORE_WITH", "WITH_EXCEPT_START"})


def _heads(node: ast.AST) -> list[ast.expr]:
    """The expressions at the heads of a statement's blocks."""
    if isinstance(node, ast.For):
        return [node.iter]
    return [each.context_expr for each in node.items] if isinstance(node, ast.With) else []


@lru_cache(maxsize=1024)
def renamed_in(code: CodeType, place: Position) -> dict[str, str]:
    """The variables of a comprehension that converted code runs as a loop: their names there, by
    those of the source.
    """
    found = {}
    for op in dis.get_instructions(code):
        for own in (name for name, is_read in locals_of(op) if not is_read):
            name = _RENAMED.fullmatch(own)
            if name is not None and _is_inside(place_of(code, op.offset), place):
                found[name[1]] = own
    return found


# As `convert/loops/comprehensions.py` names them.
_RENAMED = re.compile(r"__sgc_\d+_(\w+)__")


def _is_inside(inner: Position | None, outer: Position) -> bool:
    return inner is not None and outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


@lru_cache(maxsize=4096)
def at(place: Position, tree: Tree) -> ast.AST | None:
    """The innermost node that covers a place: the smallest, and the deepest of equally small nodes.
    Python 3.11 gives some parts of an f-string the place of the whole f-string."""
    covering = [node for node in tree.nodes if covers(node, place)]
    return max(covering, key=lambda node: (*_smallness(node), _depth(node, tree)), default=None)


def statement_at(line: int, function: Function) -> ast.stmt | None:
    """The simple statement that begins at a line; None if there is not exactly one."""
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) and node.lineno == line
    ]
    return found[0] if len(found) == 1 else None


def statement_around(line: int | None, function: Function) -> ast.stmt | None:
    """The innermost statement to which a line belongs; None for instructions without a line, which
    Python itself adds to a function."""
    if line is None:
        return None
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.stmt) and node is not function
        and node.lineno <= line <= (node.end_lineno or line)
    ]  # fmt: skip
    return max(found, key=lambda node: (node.lineno, node.col_offset), default=None)


def covers(node: ast.AST, place: Position) -> bool:
    its = position(node)
    return its is not None and _is_inside(place, its)


def _smallness(node: ast.AST) -> Position:
    """A measure that, of nodes that cover one place, is greater for the inner node."""
    line, column, end_line, end_column = position(node) or (0, 0, 0, 0)
    return line, column, -end_line, -end_column


def _depth(node: ast.AST, tree: Tree) -> int:
    return sum(1 for _ in tree.above(node))


def surely(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are evaluated whenever a node is."""
    yield node
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield from surely(node.test)
    elif isinstance(node, ast.For):
        yield from surely(node.iter)
    elif isinstance(node, ast.BoolOp):
        yield from surely(node.values[0])
    elif isinstance(node, ast.Compare) and len(node.ops) > 1:
        yield from surely(node.left)
        yield from surely(node.comparators[0])
    elif isinstance(node, COMPREHENSIONS):
        yield from surely(node.generators[0].iter)
    elif isinstance(node, ast.Match):
        yield from surely(node.subject)
    elif isinstance(node, ast.With):
        yield from surely(node.items[0].context_expr)
    elif not isinstance(node, (ast.Lambda, ast.FunctionDef, ast.Try, ast.Assert)):
        for each in ast.iter_child_nodes(node):
            yield from surely(each)
