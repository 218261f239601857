"""Statements one after the other as a closure over a frame."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from sgc.runtime.executor.code.fuel import spent
from sgc.runtime.executor.code.tree.compiling import Context, Do, Ev, compile_statement, head_weight
from sgc.runtime.executor.code.tree.scopes import Frame


def compile_block(body: Sequence[ast.stmt], at: Context) -> Do:
    """Statements one after the other, paid for at once; an `else` that is not there is free."""
    if not body:
        return lambda f: None
    statements = [
        compile_statement(each, at) for each in body if not isinstance(each, ast.Nonlocal)
    ]
    cost = 1 + sum(head_weight(each) for each in body)
    if len(statements) == 1:
        return paid(cost, statements[0])

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


def paid(cost: int, do: Ev) -> Ev:
    """What takes steps before it does a thing."""

    def pay(f: Frame) -> Any:
        run = f[0]
        run.left -= cost
        if run.left < 0:
            raise spent()
        return do(f)

    return pay
