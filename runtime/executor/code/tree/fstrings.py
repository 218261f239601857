"""F-strings as closures over a frame."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from sgc.runtime.executor.code.fuel import checked
from sgc.runtime.executor.code.methods.formatting import format_value, show
from sgc.runtime.executor.code.tree.compiling import Context, Ev, compile_expression, on_expression
from sgc.runtime.executor.code.tree.scopes import Frame
from sgc.runtime.executor.interface.value_limits import check_length


@on_expression(ast.JoinedStr)
def _joined(node: ast.JoinedStr, at: Context) -> Ev:
    parts = [compile_expression(part, at) for part in node.values]

    def join(f: Frame) -> str:
        texts = [part(f) for part in parts]
        check_length(sum(map(len, texts)))
        result: str = checked("".join(texts))
        return result

    return join


_CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("r"): repr, ord("a"): ascii, ord("s"): str}


@on_expression(ast.FormattedValue)
def _formatted(node: ast.FormattedValue, at: Context) -> Ev:
    value = compile_expression(node.value, at)
    spec = compile_expression(node.format_spec, at) if node.format_spec else None
    convert = _CONVERSIONS.get(node.conversion)

    def form(f: Frame) -> str:
        shown = value(f)
        if convert is not None:
            shown = show(convert, shown)
        if spec is None and type(shown) is str:
            return shown
        return format_value(shown, "" if spec is None else spec(f))

    return form
