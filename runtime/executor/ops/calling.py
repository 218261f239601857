"""Calls of the host's code at run time: handlers of `tool`, `host`, `show` and `outcome`."""

from __future__ import annotations

from typing import Any

from sgc.ir.graph import Node
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.ops.run import Run
from sgc.runtime.executor.tools.pieces import call_piece
from sgc.runtime.executor.tools.shown import show_text


async def call_tool(run: Run, node: Node) -> tuple[Any]:
    """The handler of the op `tool`."""
    return (await run.tools.call(run, node),)


async def run_piece(run: Run, node: Node) -> tuple[Any]:
    """The handler of the op `host`."""
    return (await call_piece(run, node),)


async def show(run: Run, node: Node) -> tuple[bool]:
    """The handler of the op `show`."""
    await show_text(run, node)
    return (True,)


def outcome(run: Run, node: Node) -> tuple[Any, ...]:
    """The handler of the op `outcome`."""
    value = run.values.raw_field(node, "value")
    if type(value) is Failed:
        return False, value.why, value.kind, list(value.classes)
    return True, "", "", []
