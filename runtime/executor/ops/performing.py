"""The handler of the op `perform`, which runs code on live objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sgc.errors import ProgramError, SgcError
from sgc.ir.graph import Lit, Node, Operand, Ref, Value
from sgc.ir.types import Kind
from sgc.runtime.executor.functions.own_texts import has_own, own
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.interface.records import refuse_leaving
from sgc.runtime.executor.ops.evaluation import check_type
from sgc.runtime.executor.ops.run import Run


@dataclass(frozen=True, slots=True, eq=False)
class Live:
    """A value of the type `live`: the object itself."""

    value: Any


def perform(run: Run, node: Node) -> tuple[Any, ...]:
    """The handler of the op `perform`."""
    operands = node.get("args")
    assert isinstance(operands, tuple)
    code, args = node.text("code"), [_operand(run, each) for each in operands]
    if run.context.special is not None and run.context.special.search(code):
        raise _special()
    try:
        value = run.memory.call(
            code, [given(run, *each) for each in zip(operands, args, strict=True)]
        )
        found = _each(value, len(node.results))
        return tuple(map(_result, node.results, found))
    except SgcError as error:
        error.where = error.where or str(node.loc or "")
        raise
    except Exception as error:
        failed = Failed.of("", error, str(node.loc or ""))
        if node.get("catches") == Lit(True):
            return (failed,) * len(node.results)
        raise failed.error() from None


def _each(value: Any, n: int) -> tuple[Any, ...]:
    """The values of so many results. Raises ProgramError if code gave fewer or more."""
    if n < 2:
        return (value,)
    if type(value) not in (list, tuple) or len(value) != n:
        found = f"{len(value)} values" if type(value) in (list, tuple) else type(value).__name__
        raise ProgramError(
            f"code gave {found}, which the graph says are {n}", hint="run it with --interpret"
        )
    return tuple(value)


def _operand(run: Run, operand: Operand) -> Any:
    """The value of an operand; for a failure, its error, which a handler has caught."""
    if isinstance(operand, Ref) and type(found := run.values.raw(operand.name)) is Failed:
        return found if found.cause is None else Live(found.cause)
    return run.values.operand(operand)


def _special() -> ProgramError:
    return ProgramError(
        "code computes with a special token that the program writes itself",
        hint="add special tokens to the stream by themselves, or run it with --interpret",
    )


def given(run: Run, operand: Operand, value: Any) -> Any:
    """An operand's value for code: a live object itself, or a copy of data that others hold."""
    from sgc.runtime.executor.code.values import copied  # loads many modules

    if type(value) is Live:
        return value.value
    special = run.context.special
    if special is not None:
        (value,) = own((operand,), [value], special)
        if has_own(value):
            raise _special()
    is_callers = isinstance(operand, Ref) and run.is_argument(operand.name)
    return run.memory.copied(value) if is_callers else copied(value)


def _result(of: Value, value: Any) -> Any:
    """A result: a live object, or data that nothing else holds."""
    from sgc.runtime.executor.code.values import check_result, copied

    if of.type.kind is Kind.LIVE:
        return Live(value)
    check_type(value, of.type)
    check_result(value)
    refuse_leaving(value)
    return copied(value)
