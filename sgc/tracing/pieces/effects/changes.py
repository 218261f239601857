"""Finds the inputs of code, such as lists and dicts, that the code may change."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from sgc.tracing.kinds.sets import BLIND
from sgc.tracing.pieces.effects.holds import ITERATING
from sgc.tracing.pieces.names import names_of, parameters

# Methods of Python's own types that change their object.
CHANGING = frozenset({
    "add", "append", "appendleft", "betavariate", "choice", "choices", "clear",
    "difference_update", "discard", "expovariate", "extend", "extendleft", "gammavariate",
    "gauss", "getrandbits", "insert", "intersection_update", "lognormvariate", "move_to_end",
    "normalvariate", "paretovariate", "pop", "popitem", "popleft", "randbytes", "randint",
    "random", "randrange", "read", "readline", "remove", "reverse", "rotate", "sample", "seed",
    "seek", "setdefault", "shuffle", "sort", "subtract", "symmetric_difference_update",
    "triangular", "truncate", "uniform", "update", "vonmisesvariate", "weibullvariate", "write",
    "writeheader", "writerow", "writerows",
})  # fmt: skip
# Functions that change their first argument.
CHANGERS = frozenset({
    "delattr", "heapify", "heappop", "heappush", "heappushpop", "heapreplace", "insort",
    "insort_left", "insort_right", "next", "setattr",
})  # fmt: skip

# For the program's own functions, by name: which arguments of a call the function may change.
Changers = Mapping[str, Callable[[ast.Call], Iterable[ast.expr]]]
NO_CHANGERS: Changers = MappingProxyType({})


def read_by_key(node: ast.AST) -> set[str | None]:
    """The variables that code reads by a key, which a `defaultdict` adds if it is missing; without
    reads by the variable's own keys, `max(d, key=lambda k: d[k])`."""
    nodes = [*_evaluated(node)]
    own = {*map(id, _read_by_own_keys(nodes))}
    found = (each for each in nodes if isinstance(each, ast.Subscript) and id(each) not in own)
    return {root_of(each) for each in found}


def _read_by_own_keys(nodes: Iterable[ast.AST]) -> Iterator[ast.Subscript]:
    """The look-ups `d[k]` where `k` goes over the keys of `d`."""
    for node in nodes:
        if isinstance(node, ast.Call) and _variable(node.func) in _ORDERING and node.args:
            keys = [each.value for each in node.keywords if each.arg == "key"]
            for key in keys:
                if isinstance(key, ast.Lambda) and len(key.args.args) == 1:
                    yield from _looked_up(key.body, _variable(node.args[0]), key.args.args[0].arg)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            (first, *rest) = node.generators
            if not rest:
                for part in (*parts, *first.ifs):
                    yield from _looked_up(part, _variable(first.iter), _variable(first.target))


_ORDERING = frozenset({"max", "min", "sorted"})


def _variable(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _looked_up(node: ast.expr, whole: str, key: str) -> Iterator[ast.Subscript]:
    """The look-ups `whole[key]` in an expression that binds no names."""
    inside = [*ast.walk(node)]
    if whole and key and not any(isinstance(each, _BINDING) for each in inside):
        for each in inside:
            is_one = isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load)
            if is_one and _variable(each.value) == whole and _variable(each.slice) == key:  # type: ignore[attr-defined]
                yield each  # type: ignore[misc]


_BINDING = (ast.Lambda, ast.NamedExpr, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes in a node, without annotations."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        hidden = (getattr(node, "annotation", None), getattr(node, "returns", None))
        left += [each for each in ast.iter_child_nodes(node) if each not in hidden]


def may_change(node: ast.AST, changers: Changers = NO_CHANGERS) -> bool:
    """Whether code may change a list, dict or other object."""
    return any(True for _ in _changed(node, (), changers))


def changed_names(
    node: ast.AST, given: Collection[str], changers: Changers = NO_CHANGERS
) -> frozenset[str]:
    """The names in `given` whose values code may change; all of them if that is not clear."""
    made = made_inside(node)
    roots = list(changed_roots(node, made, (), changers))
    if all(root in given or root in made for root in roots):
        return frozenset(root for root in roots if root is not None and root in given)
    return frozenset(given)


def changes_outside(
    function: ast.FunctionDef,
    may_be: Collection[str],
    changing: Collection[str] = (),
    changers: Changers = NO_CHANGERS,
) -> bool:
    """Whether a function may change objects that it has not made, except the given arguments.
    changing: methods of the user's classes that change their object.
    """
    made = made_inside(function)
    own = made | set(may_be)
    return any(root not in own for root in changed_roots(function, made, changing, changers))


def changed_roots(
    node: ast.AST,
    made: Collection[str],
    changing: Collection[str] = (),
    changers: Changers = NO_CHANGERS,
) -> Iterator[str | None]:
    """The variables whose values, or parts of them, are changed; None for an unknown variable.
    made: variables that hold only new objects; changing: methods that change their object."""
    found = (arm for each in _changed(node, changing, changers) for arm in _arms(each))
    return (_root(each, made) for each in found)


def _arms(node: ast.expr) -> Iterator[ast.expr]:
    """The branches of a conditional expression; of any other expression, the expression itself."""
    if isinstance(node, ast.IfExp):
        yield from (*_arms(node.body), *_arms(node.orelse))
    else:
        yield node


def _changed(
    node: ast.AST, changing: Collection[str] = (), changers: Changers = NO_CHANGERS
) -> Iterator[ast.expr]:
    """The expressions whose values are changed."""
    called = {id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    for each in ast.walk(node):
        is_passed = _name_of(each) in _PASSED or getattr(each, "id", None) in changers
        if is_passed and id(each) not in called:
            yield ast.Constant(None)  # the function may be called later, with any argument
        if isinstance(each, ast.Call):
            yield from _by_function(each)
            if isinstance(each.func, ast.Name) and each.func.id in changers:
                yield from (arg for arg in changers[each.func.id](each) if not _is_fresh(arg))
            if method_of(each) == "getattr" and (changing or _names_change(each)):
                yield from each.args[:1]
        elif isinstance(each, ast.AugAssign):
            yield each.target
        elif isinstance(each, (ast.Subscript, ast.Attribute)) and not is_read(each):
            yield each.value
        elif isinstance(each, ast.Attribute) and (each.attr in CHANGING or each.attr in changing):
            # The object of a method, even if the method is called later. Changes of a new object do
            # not count: nothing else refers to it.
            of = _written_by(each.value) or each.value
            yield from () if _is_fresh(of) else (of,)


_PASSED = CHANGERS - {"next"}  # a common name of variables; it changes only iterators


def _name_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _names_change(node: ast.Call) -> bool:
    """Whether `getattr` is given the name of a method that changes its object."""
    return any(isinstance(each, ast.Constant) and each.value in CHANGING for each in node.args[1:2])


def is_read(node: ast.Subscript | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def root_of(node: ast.expr) -> str | None:
    """The variable of which an expression reads a part."""
    return _root(node, ())


def _by_function(node: ast.Call) -> Iterator[ast.expr]:
    if method_of(node) in CHANGERS | {"shuffle"} and node.args and not _is_lazy(node.args[0]):
        yield node.args[0]


def _is_lazy(node: ast.expr) -> bool:
    """Whether an expression makes a new iterator: `next` changes only that."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return isinstance(node, ast.GeneratorExp) or (is_call and node.func.id in _LAZY)  # type: ignore[attr-defined]


_LAZY = frozenset({"enumerate", "filter", "iter", "map", "range", "reversed", "zip"})


def _root(node: ast.expr, made: Collection[str]) -> str | None:
    """The variable of whose value an expression is a part or a method's result. None if it is
    unknown, and for a part of an object in `made`, into which any value may have been put.
    """
    is_part = False
    while True:
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif is_super(node):
            return SUPER
        elif isinstance(node, ast.Name):
            return None if is_part and node.id in made else node.id
        else:
            return None
        is_part = True


SUPER = "super()"  # stands for the object of a method


def is_super(node: ast.expr) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return is_call and node.func.id == "super" and not node.args  # type: ignore[attr-defined]


def made_inside(node: ast.AST) -> set[str]:
    """The variables that a piece sets only to objects that it has made."""
    made: set[str] = set()
    others: set[str] = set()
    writers: list[tuple[str, str]] = []  # variables, with those of their files
    for each in ast.walk(node):
        pairs = [*_pairs(each)] if isinstance(each, (ast.Assign, ast.AnnAssign)) else []
        if each is node and isinstance(each, ast.FunctionDef):
            others |= parameters(each.args) - _renewed(each)
        elif pairs:
            for name, value in pairs:
                file = _written_by(value)
                if isinstance(file, ast.Name):
                    writers.append((name, file.id))
                is_made = isinstance(file, ast.Name) or _is_fresh(file or value)
                (made if is_made else others).add(name)
        elif not isinstance(each, ast.AugAssign):
            others |= _bound_by(each)
    others |= {name for name, file in writers if file not in made - others}
    return made - others


def _renewed(function: ast.FunctionDef) -> set[str]:
    """The parameters that a function sets to new objects before it changes them."""
    found: set[str] = set()
    changed: set[str | None] = set()
    for stmt in function.body:
        changed |= set(changed_roots(stmt, ()))
        if None in changed:
            break
        pairs = _pairs(stmt) if isinstance(stmt, (ast.Assign, ast.AnnAssign)) else ()
        found |= {name for name, value in pairs if _is_fresh(value) and name not in changed}
    return found & parameters(function.args)


def _pairs(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[str, ast.expr]]:
    """The names that an assignment sets, each with its value, or with both values of a conditional
    expression; none if the assignment sets anything else."""
    if isinstance(node, ast.AnnAssign):
        if isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value
        return
    if isinstance(node.value, ast.IfExp):
        arms = [
            [*_pairs(ast.Assign(node.targets, each))]
            for each in (node.value.body, node.value.orelse)
        ]
        yield from (pair for arm in arms for pair in arm if all(arms))
        return
    if all(isinstance(target, ast.Name) for target in node.targets):
        yield from ((target.id, node.value) for target in node.targets)  # type: ignore[attr-defined]
    target, value = node.targets[0], node.value
    if len(node.targets) > 1 or not isinstance(target, ast.Tuple):
        return
    is_plain = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
    if is_plain and all(isinstance(each, ast.Name) for each in target.elts):
        yield from zip((each.id for each in target.elts), value.elts, strict=True)  # type: ignore[attr-defined, misc]


def _bound_by(node: ast.AST) -> set[str]:
    """The names that a node binds, except by `=` to single names."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.For, ast.comprehension, ast.NamedExpr)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return names_of(targets).writes
    if isinstance(node, (ast.MatchAs, ast.MatchStar, ast.MatchMapping)):
        return names_of([node]).writes
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):  # bound in its own scope
        return set(parameters(node.args))
    if isinstance(node, ast.ExceptHandler):
        return {node.name} if node.name else set()
    if isinstance(node, ast.With):
        return names_of(each.optional_vars for each in node.items if each.optional_vars).writes
    return set()


def _is_fresh(node: ast.expr) -> bool:
    """Whether an expression makes a new object, to which nothing else refers."""
    if isinstance(node, _DISPLAYS):
        return True
    if isinstance(node, ast.IfExp):
        return _is_fresh(node.body) and _is_fresh(node.orelse)
    if isinstance(node, ast.BinOp):  # an operator of the program's own might give an operand
        return isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List)
    return isinstance(node, ast.Call) and _is_making(node.func)


def _written_by(node: ast.expr) -> ast.expr | None:
    """The file of a new `csv` writer."""
    of = node.func if isinstance(node, ast.Call) and node.args else None
    if not isinstance(of, ast.Attribute) or of.attr not in ("writer", "DictWriter"):
        return None
    is_csv = isinstance(of.value, ast.Name) and of.value.id == "csv"
    return node.args[0] if is_csv else None  # type: ignore[attr-defined]


def _is_making(function: ast.expr) -> bool:
    """Whether a called function makes a new object; a method of the same name may return any."""
    if isinstance(function, ast.Attribute):
        of = function.value
        return isinstance(of, ast.Name) and of.id in _MODULES and function.attr in _MAKING
    return isinstance(function, ast.Name) and function.id in _MAKING


_DISPLAYS = (
    ast.List, ast.Set, ast.Dict, ast.Tuple, ast.Constant, ast.JoinedStr, ast.ListComp, ast.SetComp,
    ast.DictComp,
)  # fmt: skip
_MODULES = frozenset({"collections", "io", "random"})
_MAKING = frozenset({
    "list", "dict", "set", "sorted", "Counter", "defaultdict", "deque", "OrderedDict", "Random",
    "StringIO", "restored",
})  # fmt: skip


# Python's functions whose names decide what code may do.
DECIDING = ITERATING | _MAKING | BLIND | {"repr", "str"}


def method_of(node: ast.Call) -> str:
    return _name_of(node.func)
