"""Code for values that no op makes, and for objects made from data."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from sgc.core.watching import unhooked
from sgc.ir.code import parse_code
from sgc.tracing.pieces.made import Made
from sgc.tracing.pieces.text.constants import LostOrder
from sgc.tracing.pieces.text.entry import EntryWriter
from sgc.tracing.pieces.text.function_checks import Originals
from sgc.tracing.pieces.text.module_text import ModuleText


def displayed(originals: Originals, value: Any, is_live: bool = False) -> Made:
    """Code for a value that no op makes, such as a set or a dict with numbers as keys. Raises
    NotData, CodeError."""
    maker = EntryWriter(ModuleText(originals, is_live))
    expression = maker.written(value, "value")
    if any(maker.module.lost.values()):
        raise LostOrder("the order of a set is lost")
    head = f"def piece({', '.join(maker.params)}):\n    return {expression}"
    (entry,) = ast.parse(head).body
    assert isinstance(entry, ast.FunctionDef)
    code = maker.module.text(entry)
    parse_code(code)
    return Made(code, tuple(maker.args), classes=maker.module.classes)


@unhooked
def restoring(originals: Originals, expression: str, classes: Iterable[type]) -> Made:
    """Code that makes objects from `data` by an expression. Raises NotData, CodeError."""
    module = ModuleText(originals)
    for kind in classes:
        module.bind(kind.__name__, kind)
    (entry,) = ast.parse(f"def piece(data):\n    return {expression}").body
    assert isinstance(entry, ast.FunctionDef)
    code = module.text(entry)
    parse_code(code)
    return Made(code, (), classes=module.classes)
