"""Checks of the classes of a graph's code."""

from __future__ import annotations

import ast
from typing import Protocol

from sgc.ir.code_errors import Import, refuse
from sgc.ir.code_names import DATACLASS_OPTIONS, DECORATORS, EXCEPTIONS, SPECIAL_METHODS

DATACLASS = Import("dataclasses", "dataclass")
ORDERED = Import("functools", "total_ordering")
ORDERING = frozenset({"__lt__", "__le__", "__gt__", "__ge__"})
NAMED_TUPLE = Import("typing", "NamedTuple")
ENUMS = frozenset(Import("enum", name) for name in ("Enum", "IntEnum", "StrEnum"))
MIXED: dict[str, type] = {"str": str, "int": int}
MODEL = Import("pydantic", "BaseModel")
_NOT_FIELDS = frozenset({"InitVar", "KW_ONLY"})


class Checks(Protocol):
    """The checks of a class's parts. classes: the module's classes; defined: those before it."""

    classes: set[str]
    defined: set[str]

    def imported(self, node: ast.expr) -> Import | None: ...

    def is_bound(self, name: str) -> bool: ...

    def check_name(self, node: ast.AST, name: str) -> None: ...

    def see(self, node: ast.AST, of_class: set[str] | None = None) -> None: ...

    def see_method(self, node: ast.FunctionDef, of_class: set[str]) -> None: ...


def check_class(node: ast.ClassDef, checks: Checks) -> None:
    """Raises CodeError for a class that is not in the subset."""
    checks.check_name(node, node.name)
    is_ordered = bool(node.decorator_list) and checks.imported(node.decorator_list[0]) == ORDERED
    if is_ordered:
        _check_ordered(node)
    others = node.decorator_list[is_ordered:]
    for each in others:
        _check_decorator(each, checks)
    if len(others) > 1:
        raise refuse(node, "one decorator at most", f"{len(others)} of {node.name}")
    if node.keywords:
        raise refuse(node, "bases alone", f"{node.keywords[0].arg}= of the class {node.name}")
    for base in node.bases:
        _check_base(base, node, checks)
    names: set[str] = set()
    for statement in node.body:
        _check_part(statement, node, names, checks)
    checks.defined.add(node.name)


def _check_decorator(node: ast.expr, checks: Checks) -> None:
    called = node.func if isinstance(node, ast.Call) else node
    if checks.imported(called) != DATACLASS:
        raise refuse(node, "dataclass as the decorator of a class", ast.unparse(node)[:80])
    if not isinstance(node, ast.Call):
        return
    for each in node.keywords:
        is_constant = isinstance(each.value, ast.Constant) and isinstance(each.value.value, bool)
        if each.arg not in DATACLASS_OPTIONS or not is_constant:
            expected = f"True or False for one of {', '.join(sorted(DATACLASS_OPTIONS))}"
            raise refuse(node, expected, ast.unparse(node)[:80])
    if node.args:
        raise refuse(node, "names of dataclass's options", ast.unparse(node)[:80])


def _check_ordered(node: ast.ClassDef) -> None:
    """`total_ordering` is the first decorator of a class that has one of the methods itself."""
    own = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    if own.isdisjoint(ORDERING):
        raise refuse(node, f"one of {', '.join(sorted(ORDERING))} in {node.name}", "none")


def _check_base(base: ast.expr, node: ast.ClassDef, checks: Checks) -> None:
    name = base.id if isinstance(base, ast.Name) else ""
    is_own = name in checks.defined
    if is_own or (name in EXCEPTIONS and not checks.is_bound(name)):
        return
    found = checks.imported(base)
    if _is_mixed(node, checks):
        return
    if found not in (NAMED_TUPLE, MODEL) and found not in ENUMS:
        expected = "a class above, NamedTuple, Enum, BaseModel or an exception as a base"
        raise refuse(base, expected, ast.unparse(base)[:80])
    if len(node.bases) > 1 or node.decorator_list:
        shown = ast.unparse(base)
        raise refuse(base, f"{shown} alone for the class {node.name}", "another base, too")
    if found in ENUMS and not any(isinstance(each, ast.Assign) for each in node.body):
        raise refuse(node, f"members of {node.name}", "none")


def _is_mixed(node: ast.ClassDef, checks: Checks) -> bool:
    """Whether a class is an Enum whose members are texts or whole numbers: `(str, Enum)`."""
    if len(node.bases) != 2 or node.decorator_list:
        return False
    mixed, base = node.bases
    name = mixed.id if isinstance(mixed, ast.Name) else ""
    is_plain = name in MIXED and not checks.is_bound(name)
    has_members = any(isinstance(each, ast.Assign) for each in node.body)
    return is_plain and has_members and checks.imported(base) == Import("enum", "Enum")


def _check_part(node: ast.stmt, around: ast.ClassDef, names: set[str], checks: Checks) -> None:
    if isinstance(node, ast.FunctionDef):
        is_tuple = any(checks.imported(base) == NAMED_TUPLE for base in around.bases)
        _check_method(node, names, is_tuple, checks)
        names.add(node.name)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        _check_assignment(node, around, names, checks)
    elif not isinstance(node, ast.Pass) and not _is_text(node):
        expected = "methods, attributes and fields in a class"
        raise refuse(node, expected, type(node).__name__)


def _check_method(node: ast.FunctionDef, names: set[str], is_tuple: bool, checks: Checks) -> None:
    if node.name not in SPECIAL_METHODS:
        checks.check_name(node, node.name)
    for each in node.decorator_list:
        if not (isinstance(each, ast.Name) and each.id in DECORATORS) or checks.is_bound(each.id):
            expected = f"one of {', '.join(sorted(DECORATORS))} as the decorator of a method"
            raise refuse(each, expected, ast.unparse(each)[:80])
    if len(node.decorator_list) > 1:
        raise refuse(node, "one decorator at most", f"{len(node.decorator_list)} of {node.name}")
    if node.decorator_list and node.name in SPECIAL_METHODS:
        raise refuse(node, f"{node.name} without decorators", ast.unparse(node.decorator_list[0]))
    if node.name in names:
        raise refuse(node, f"{node.name} once in its class", "another definition")
    used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    if is_tuple and "super" in used:
        raise refuse(node, "a NamedTuple's method without super()", "super()")
    checks.see_method(node, names)


def _check_assignment(
    node: ast.Assign | ast.AnnAssign, around: ast.ClassDef, names: set[str], checks: Checks
) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        if not isinstance(target, ast.Name):
            raise refuse(node, "an attribute with a name", "another target")
        checks.check_name(node, target.id)
        if target.id in names:
            raise refuse(node, f"{target.id} once in its class", "another definition")
    if isinstance(node, ast.AnnAssign):
        _check_annotation(node.annotation)
    if node.value is not None:
        if any(isinstance(each, ast.NamedExpr) for each in ast.walk(node.value)):
            raise refuse(node, f"an attribute of {around.name} without :=", ":= in a class")
        checks.see(node.value, names)
        names |= {target.id for target in targets if isinstance(target, ast.Name)}


def _check_annotation(node: ast.expr) -> None:
    for each in ast.walk(node):
        name = each.id if isinstance(each, ast.Name) else getattr(each, "attr", None)
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            found = [part for part in _NOT_FIELDS if part in each.value]
            name = found[0] if found else None
        if name in _NOT_FIELDS:
            raise refuse(node, "a field with a type", f"{name}")


def is_class_variable(node: ast.expr) -> bool:
    """Whether an annotation is `ClassVar[...]`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.split("[")[0].split(".")[-1].strip() == "ClassVar"
    inner = node.value if isinstance(node, ast.Subscript) else node
    return (inner.id if isinstance(inner, ast.Name) else getattr(inner, "attr", "")) == "ClassVar"


def _is_text(node: ast.AST) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)
