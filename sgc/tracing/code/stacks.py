"""The entries of a function's stack: their kinds, the stack after an instruction, and the stack
where two paths meet."""

from __future__ import annotations

import dis
from enum import Enum, auto

from sgc.tracing.code import opcodes
from sgc.tracing.code.operator_names import OPERATORS


class Slot(Enum):
    """What a stack entry holds."""

    ITERATOR = auto()  # of a `for` loop
    EXIT = auto()  # of a `with` block of the language
    MANAGED = auto()  # the exit of another `with` block, whose manager a variable holds
    HANDLING = auto()  # the error handled before the current `except` block began
    OPERATOR = auto()  # an operator of converted code, about to be called: always the same
    LOADED = auto()  # a value determined by variables, globals and constants, unchanged since
    MEMBER = auto()  # an attribute of a LOADED value, perhaps about to be called
    OTHER = auto()


Stack = tuple[tuple[Slot, int], ...]  # with the offset of the instruction that pushed the entry


def is_clean(stack: Stack | None) -> bool:
    """Whether a stack is known, and variables determine all of its entries of an expression."""
    return stack is not None and all(
        slot is not Slot.OTHER and slot is not Slot.MEMBER for slot, _ in stack
    )


def stack_after(op: dis.Instruction, stack: Stack, is_jump: bool, block: Slot) -> Stack:
    """The stack after an instruction; entries that it may have changed become unknown."""
    effect = dis.stack_effect(op.opcode, op.arg, jump=is_jump)
    depth = len(stack) + effect
    if op.opname == "GET_ITER":
        return (*stack[:-1], (Slot.ITERATOR, op.offset))
    if op.opname == "BEFORE_WITH":
        return (*stack[:-1], (block, op.offset), (Slot.OTHER, op.offset))
    if op.opname == "PUSH_EXC_INFO":
        return (*stack[:-1], (Slot.HANDLING, op.offset), (Slot.OTHER, op.offset))
    if op.opname == "FOR_ITER" and not is_jump:
        return (*stack, (Slot.OTHER, op.offset))
    if op.opname == "PUSH_NULL" or (op.opname == "LOAD_GLOBAL" and op.argval in OPERATORS):
        return (*stack, *[(Slot.OPERATOR, op.offset)] * effect)
    n_popped = opcodes.n_popped(op, effect)
    kept = stack if n_popped == 0 else stack[:-n_popped]
    kept = kept[: max(depth, 0)]
    return (*kept, *[(Slot.OTHER, op.offset)] * (depth - len(kept)))


def joined(one: Stack, other: Stack) -> Stack:
    """The stack where two paths meet; an entry stays determined if it is so on both paths."""
    return tuple(
        (Slot.OTHER, mine[1])
        if mine != theirs and not {mine[0], theirs[0]}.isdisjoint((Slot.LOADED, Slot.MEMBER))
        else mine
        for mine, theirs in zip(one, other, strict=False)
    )
