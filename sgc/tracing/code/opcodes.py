"""The effects of CPython's instructions on variables and the stack, for the versions listed here.

A version is listed once the tests have run on it. An instruction that is in no table is unknown:
code that has one counts as reading every variable.
"""

from __future__ import annotations

import dis
import platform
import sys

from sgc.errors import TraceError

PYTHONS = ((3, 11), (3, 12), (3, 13))  # on which programs compile


def refuse_unlisted() -> None:
    """Raises TraceError on a Python that is not listed; programs can still be interpreted."""
    if platform.python_implementation() == "CPython" and sys.version_info[:2] in PYTHONS:
        return
    listed = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    raise TraceError(
        f"programs compile on CPython {listed}; this is {platform.python_implementation()} "
        f"{platform.python_version()}",
        hint="run it with --interpret (or f.run), which needs no trace, or use one of these",
    )


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# For each instruction, whether it reads the local variables in its argument, in order.
READS_LOCAL = {
    "LOAD_FAST": (True,),
    "LOAD_FAST_CHECK": (True,),
    "LOAD_FAST_AND_CLEAR": (True,),
    "DELETE_FAST": (True,),  # it fails if the variable is not set
    "STORE_FAST": (False,),
    "LOAD_FAST_LOAD_FAST": (True, True),
    "STORE_FAST_LOAD_FAST": (False, True),
    "STORE_FAST_STORE_FAST": (False, False),
}


def locals_of(op: dis.Instruction) -> list[tuple[str, bool]]:
    """The local variables of an instruction in order, and whether it reads them."""
    reads = READS_LOCAL.get(op.opname, ())
    names = op.argval if len(reads) > 1 and isinstance(op.argval, tuple) else (op.argval,) * 2
    return list(zip(names, reads, strict=False))


# Instructions whose result follows from local variables, globals or constants.
LOADS = names("LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_CONST LOAD_GLOBAL")
JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
NO_FALL_THROUGH = names(
    "RETURN_VALUE RETURN_CONST RAISE_VARARGS RERAISE JUMP_FORWARD JUMP_BACKWARD"
    " JUMP_BACKWARD_NO_INTERRUPT JUMP_ABSOLUTE JUMP JUMP_NO_INTERRUPT INTERPRETER_EXIT"
)
CALLS = names("CALL CALL_KW CALL_FUNCTION_EX")
LOADS_CALLEE = names("LOAD_GLOBAL LOAD_NAME LOAD_FAST LOAD_DEREF LOAD_METHOD LOAD_ATTR")

# Instructions by the number of results that they push; the rest of their stack effect is popped.
_PUTS_NONE = names(
    "RESUME NOP CACHE EXTENDED_ARG PRECALL KW_NAMES MAKE_CELL COPY_FREE_VARS SETUP_ANNOTATIONS"
    " JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT DELETE_FAST DELETE_NAME DELETE_GLOBAL"
    " DELETE_DEREF POP_TOP STORE_FAST STORE_FAST_STORE_FAST STORE_GLOBAL STORE_NAME STORE_DEREF"
    " RETURN_VALUE RETURN_CONST DELETE_ATTR STORE_ATTR DELETE_SUBSCR STORE_SUBSCR STORE_SLICE"
    " RAISE_VARARGS RERAISE POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE"
    " POP_JUMP_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE"
    " POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE"
    " POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE"
    " LIST_APPEND SET_ADD MAP_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE END_FOR POP_EXCEPT"
    " IMPORT_STAR PRINT_EXPR INTERPRETER_EXIT"
)
_PUTS_ONE = names(
    "LOAD_CONST LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR STORE_FAST_LOAD_FAST LOAD_NAME"
    " LOAD_DEREF LOAD_CLASSDEREF LOAD_CLOSURE LOAD_LOCALS LOAD_FROM_DICT_OR_DEREF"
    " LOAD_FROM_DICT_OR_GLOBALS LOAD_ASSERTION_ERROR LOAD_BUILD_CLASS PUSH_NULL COPY UNARY_NOT"
    " UNARY_NEGATIVE UNARY_POSITIVE UNARY_INVERT TO_BOOL BINARY_OP BINARY_SUBSCR BINARY_SLICE"
    " COMPARE_OP IS_OP CONTAINS_OP CALL CALL_KW CALL_FUNCTION_EX BUILD_LIST BUILD_TUPLE BUILD_SET"
    " BUILD_STRING BUILD_SLICE BUILD_MAP BUILD_CONST_KEY_MAP MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE"
    " FORMAT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC CONVERT_VALUE LIST_TO_TUPLE IMPORT_NAME"
    " IMPORT_FROM GET_LEN MATCH_MAPPING MATCH_SEQUENCE CALL_INTRINSIC_1 CALL_INTRINSIC_2"
    " MATCH_CLASS CHECK_EXC_MATCH GET_YIELD_FROM_ITER GET_AWAITABLE GET_AITER GET_ANEXT END_SEND"
    " YIELD_VALUE"
)
_POPS = {
    "LOAD_GLOBAL": 0, "LOAD_ATTR": 1, "LOAD_METHOD": 1, "LOAD_SUPER_ATTR": 3,
    "LOAD_FAST_LOAD_FAST": 0, "UNPACK_SEQUENCE": 1, "UNPACK_EX": 1, "FOR_ITER": 1,
    "JUMP_IF_TRUE_OR_POP": 1, "JUMP_IF_FALSE_OR_POP": 1, "MATCH_KEYS": 0, "DICT_MERGE": 3,
    "WITH_EXCEPT_START": 0,
}  # fmt: skip
# Instructions that readers of the stack handle by name, and those after which the stack is unknown.
_BY_NAME = names("GET_ITER BEFORE_WITH PUSH_EXC_INFO SWAP")
_TAKES_ALL = names(
    "SEND ASYNC_GEN_WRAP BEFORE_ASYNC_WITH CHECK_EG_MATCH CLEANUP_THROW END_ASYNC_FOR"
    " PREP_RERAISE_STAR RETURN_GENERATOR"
)
EVERYTHING = 10**6

KNOWN = _PUTS_NONE | _PUTS_ONE | _POPS.keys() | _BY_NAME | _TAKES_ALL


def n_popped(op: dis.Instruction, effect: int) -> int:
    """How many stack entries an instruction pops or changes; all entries if that is unknown."""
    if op.opname == "SWAP":
        return op.arg or 0
    if op.opname in _PUTS_NONE:
        return -effect
    if op.opname in _PUTS_ONE:
        return 1 - effect
    return _POPS.get(op.opname, EVERYTHING)


def callee_depth(op: dis.Instruction) -> int | None:
    """The depth of the callee in the stack, 1 being the top; None if this is no call."""
    n = op.arg or 0
    if op.opname == "CALL_FUNCTION_EX":
        return 2 + (n & 1) + (sys.version_info >= (3, 13))
    if op.opname == "CALL":
        return 1 if sys.version_info < (3, 12) else n + 1 + (sys.version_info >= (3, 13))
    return n + 3 if op.opname == "CALL_KW" else None


def reads_by_line(ops: list[dis.Instruction], cells: set[str]) -> dict[int | None, frozenset[str]]:
    """The variables that each line reads, without those in cells."""
    found: dict[int | None, frozenset[str]] = {}
    for op in ops:
        names = {name for name, is_read in locals_of(op) if is_read}
        line = op.positions.lineno if op.positions is not None else None
        found[line] = found.get(line, frozenset()) | (names - cells)
    return found
