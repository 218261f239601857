"""Calls of tools at run time: the handlers of `tool` and `outcome`."""

from __future__ import annotations

from typing import Any

from sgc.ir.graph import Node
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.ops.run import Run


async def call_tool(run: Run, node: Node) -> tuple[Any]:
    """The handler of the op `tool`."""
    return (await run.tools.call(run, node),)


def outcome(run: Run, node: Node) -> tuple[Any, ...]:
    """The handler of the op `outcome`."""
    value = run.values.raw_field(node, "value")
    if type(value) is Failed:
        return False, value.why, value.kind, list(value.classes)
    return True, "", "", []
