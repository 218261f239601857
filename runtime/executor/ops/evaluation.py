"""The handler of the op `evaluate`, which runs code that is data."""

from __future__ import annotations

import reprlib
from typing import Any

from sgc.errors import ProgramError, SgcError
from sgc.ir.code_types import parse_code_type
from sgc.ir.graph import Lit, Node
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.functions.own_texts import has_own, own
from sgc.runtime.executor.functions.sharing import Several, refused
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.ops.run import Run

MAX_SHOWN = 80
_PYTHON = {Kind.TEXT: str, Kind.INT: int, Kind.FLOAT: float, Kind.BOOL: bool, Kind.LIST: list}


def evaluate(run: Run, node: Node) -> tuple[Any]:
    """The handler of the op `evaluate`."""
    from sgc.runtime.executor.code.along import mutable_along  # loads many modules
    from sgc.runtime.executor.code.held import Changed
    from sgc.runtime.executor.code.mutation import mutated
    from sgc.runtime.executor.code.run import run_code

    code, args = node.text("code"), list(run.field(node, "args"))
    special = run.context.special
    if special is not None:
        args = own(node.get("args"), args, special)
        if special.search(code) or any(map(has_own, args)):
            raise ProgramError(
                "code computes with a special token that the program writes itself",
                hint="add special tokens to the stream by themselves, or run it with --interpret",
            )
    sharing, changed = run.context.sharing, run.field(node, "changed")
    shared: list[int] = []  # these must not change
    try:
        found = {n: mutable_along(args[n], mutated(code)[n]) for n in changed}
        mutable = {n: each.objects for n, each in found.items() if each is not None}
        if sharing is not None:
            shared = [
                n for n in changed
                if sharing.has(args[n], mutable.get(n)) and not sharing.is_unseen(node, n)
            ]  # fmt: skip
            changed = [n for n in changed if n not in shared]
        fixed = [n for n in range(len(args)) if n not in changed]
        along = {n: each for n, each in found.items() if n in changed and each is not None}
        originals: dict[int, Any] | None = {} if sharing is not None else None
        value = run_code(code, args, fixed, originals, along)
    except SgcError as error:
        left = refused(args[shared[0]]) if isinstance(error, Changed) and shared else error
        left.where = left.where or str(node.loc or "")
        raise left from error.__cause__
    except Exception as error:
        return (Failed.of("", error, str(node.loc or "")),)
    check_type(value, node.results[0].type)
    gives = node.text("gives")
    if gives:
        _check_gives(value, gives, is_several=node.get("is_several") == Lit(True))
    if sharing is not None:
        sharing.note(value, [args[n] for n in fixed], originals or {}, node)
        for index in changed:  # its holders now hold the value with which the code replaced it
            sharing.note_changed(args[index], mutable.get(index))
    if node.get("is_several") == Lit(True):
        value = Several(value)
        if sharing is not None:
            sharing.note_among(value)
    return (value,)


def check_type(value: Any, type_: Type) -> None:
    """Raises ProgramError if a result of code is not of its type."""
    if not _is_of(value, type_):
        found = type(value).__name__
        raise ProgramError(
            f"code gave a {found}, which the graph says is a {type_}",
            hint="run it with --interpret",
        )


def _is_of(value: Any, type_: Type) -> bool:
    expected = _PYTHON.get(type_.kind)
    if expected is float and type(value) is int:
        return True  # as in arguments
    if expected is not None and type(value) is not expected:
        return False
    item = type_.item
    return item is None or item.kind not in _PYTHON or all(_is_of(each, item) for each in value)


def _check_gives(value: Any, gives: str, is_several: bool) -> None:
    if not parse_code_type(gives).fits(tuple(value) if is_several else value):
        raise ProgramError(
            f"code gave {reprlib.repr(value)}, which the graph says is {gives[:MAX_SHOWN]}",
            hint="run it with --interpret",
        )
