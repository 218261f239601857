"""The handler of the op `evaluate`, which runs code that is data."""

from __future__ import annotations

from typing import Any

from sgc.errors import ProgramError, SgcError
from sgc.ir.graph import Lit, Node
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.functions.own_texts import OwnText, own
from sgc.runtime.executor.functions.sharing import Several
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.ops.run import Run

_PYTHON = {Kind.TEXT: str, Kind.INT: int, Kind.FLOAT: float, Kind.BOOL: bool, Kind.LIST: list}


def evaluate(run: Run, node: Node) -> tuple[Any]:
    """The handler of the op `evaluate`."""
    from sgc.runtime.executor.code.run import run_code  # loads many modules

    code, args = node.text("code"), list(run.field(node, "args"))
    special = run.context.special
    if special is not None:
        args = own(node.get("args"), args, special)
        if special.search(code) or any(map(_is_own, args)):
            raise ProgramError(
                "code computes with a special token that the program writes itself",
                hint="add special tokens to the stream by themselves, or run it with --interpret",
            )
    sharing, changed = run.context.sharing, run.field(node, "changed")
    try:
        if sharing is not None:
            for index in changed:
                sharing.check(args[index])
        fixed = [n for n in range(len(args)) if n not in changed]
        originals: dict[int, Any] | None = {} if sharing is not None else None
        value = run_code(code, args, fixed, originals)
    except SgcError as error:
        error.where = error.where or str(node.loc or "")
        raise
    except Exception as error:
        return (Failed.of("", error, str(node.loc or "")),)
    _check_type(value, node.results[0].type)
    if sharing is not None:
        sharing.note(value, args, originals or {})
    if node.get("is_several") == Lit(True):
        value = Several(value)
        if sharing is not None:
            sharing.note_among(value)
    return (value,)


def _check_type(value: Any, type_: Type) -> None:
    expected = _PYTHON.get(type_.kind)
    if expected is not None and type(value) is not expected:
        found = type(value).__name__
        raise ProgramError(f"code gave a {found}, which the graph says is a {type_}")


def _is_own(value: Any) -> bool:
    """Whether a value holds a special token of the program's, which code would make plain text."""
    if isinstance(value, dict):
        return any(map(_is_own, value.values()))
    return type(value) is OwnText or (isinstance(value, (list, tuple)) and any(map(_is_own, value)))
