"""Statements one after the other as a closure over a frame."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from sgc.runtime.executor.code.fuel import spent
from sgc.runtime.executor.code.tree.compiling import Context, Do, compile_statement, head_weight
from sgc.runtime.executor.code.tree.scopes import Frame


def compile_block(body: Sequence[ast.stmt], at: Context) -> Do:
    """Statements one after the other, paid for at once."""
    statements = [
        compile_statement(each, at) for each in body if not isinstance(each, ast.Nonlocal)
    ]
    cost = 1 + sum(head_weight(each) for each in body)
    if len(statements) == 1:
        (only,) = statements

        def single(f: Frame) -> Any:
            run = f[0]
            run.left -= cost
            if run.left < 0:
                raise spent()
            return only(f)

        return single

    def block(f: Frame) -> Any:
        run = f[0]
        run.left -= cost
        if run.left < 0:
            raise spent()
        for statement in statements:
            result = statement(f)
            if result is not None:
                return result
        return None

    return block
