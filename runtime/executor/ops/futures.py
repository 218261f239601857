"""The handler of the op `future`, which waits for none of the values that it is given."""

from __future__ import annotations

from functools import partial
from typing import Any

from sgc.errors import ProgramError
from sgc.ir.graph import Node, Operand, Ref
from sgc.runtime.executor.ops.performing import Live, given
from sgc.runtime.executor.ops.run import Run


def future(run: Run, node: Node) -> tuple[Any, ...]:
    """The handler of the op `future`."""
    from sgc.runtime.executor.code.methods.futures import StreamFuture  # loads many modules

    items, returned = node.get("items"), node.get("returned")
    assert isinstance(items, tuple)
    parts = {
        str(key): partial(_value, run, item)
        for key, item in zip(run.field(node, "keys"), items, strict=True)
    }
    asked = None if returned is None else partial(_value, run, returned)
    return (Live(StreamFuture(parts, asked)),)


def _value(run: Run, operand: Operand) -> Any:
    if isinstance(operand, Ref) and run.values.known(operand.name) is None:
        raise ProgramError(
            "code reads a call that still runs", hint="run it with --interpret; please report it"
        )
    return given(run, operand, run.values.operand(operand))
