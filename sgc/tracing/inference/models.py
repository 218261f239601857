"""The types of the fields of pydantic's models, as described in the code: pydantic validates the
values when a model is made."""

from __future__ import annotations

import ast
from collections.abc import Callable

from sgc.runtime.executor.code.classes.models import DESCRIBED
from sgc.tracing.inference.cells import Cell, Cells

VALIDATING = frozenset({"model_validate", "model_validate_json"})
_KINDS = {"str": "str", "int": "int", "float": "float", "bool": "bool", "None": "None"}


def described_fields(node: ast.ClassDef) -> dict[str, ast.expr] | None:
    """The types of a model's own fields, as described in the code; None for another class."""
    for each in node.body:
        if not isinstance(each, ast.Assign) or not isinstance(each.value, ast.Dict):
            continue
        if isinstance(each.targets[0], ast.Name) and each.targets[0].id == DESCRIBED:
            fields = _item(each.value, "fields")
            assert isinstance(fields, ast.Dict)
            return {_text(key): _item(how, "type") for key, how in _pairs(fields)}
    return None


def is_validated(node: ast.ClassDef) -> bool:
    """Whether a model's validators may return values of other types than the fields'."""
    described = next(each.value for each in node.body if isinstance(each, ast.Assign))
    assert isinstance(described, ast.Dict)
    validators = _item(described, "validators")
    return isinstance(validators, ast.Dict) and bool(validators.keys)


def cell_of(form: ast.expr, cells: Cells, object_of: Callable[[str], Cell | None]) -> Cell:
    """The cell of a value of a described type."""
    if isinstance(form, ast.Constant) and form.value in _KINDS:
        return cells.new(_KINDS[form.value])
    if isinstance(form, ast.Name):
        return object_of(form.id) or cells.any()
    if not isinstance(form, ast.Tuple):
        return cells.any()
    kind, *parts = form.elts
    assert isinstance(kind, ast.Constant)
    if kind.value == "literal":
        return cells.new(
            *(type(part.value).__name__ for part in parts if isinstance(part, ast.Constant))
        )
    if kind.value == "annotated":
        return cell_of(parts[0], cells, object_of)
    inner = [cell_of(each, cells, object_of) for each in parts]
    if kind.value == "list":
        return cells.holding("list", *inner)
    if kind.value == "dict":
        return cells.holding("dict", *inner)
    if kind.value == "union":
        joined = cells.new()
        for each in inner:
            cells.flow(each, joined)
        return joined
    return cells.any()


def _pairs(node: ast.Dict) -> list[tuple[ast.expr, ast.expr]]:
    return [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key]


def _item(node: ast.expr, name: str) -> ast.expr:
    assert isinstance(node, ast.Dict)
    return next(value for key, value in _pairs(node) if _text(key) == name)


def _text(node: ast.expr) -> str:
    assert isinstance(node, ast.Constant)
    return str(node.value)
