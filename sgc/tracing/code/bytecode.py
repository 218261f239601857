"""Analyses a function's bytecode: the live variables and the stack's contents at each place.

Two runs may merge only if they agree on everything that either will read. Dead variables do not
count. Values that cannot be inspected (a loop's iterator, a partly evaluated expression) are at
least known to be on the stack. Whatever is not understood counts as a partly evaluated expression.
"""

from __future__ import annotations

import dis
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType

from sgc.core.watching import unhooked
from sgc.tracing.code import opcodes
from sgc.tracing.code.operator_names import (
    CALLEE,
    COMPARED,
    MANAGER,
    METHOD,
    OWN_WITHS,
    TEXT,
    WHOLE,
)
from sgc.tracing.code.stacks import Slot, Stack, is_clean, joined, stack_after


@dataclass(frozen=True, slots=True)
class Place:
    """The place before an instruction runs."""

    live: frozenset[str]  # local variables that may still be read
    stack: Stack | None  # None: not known

    @property
    def is_clean(self) -> bool:
        """Whether a statement begins here: the stack holds entries of blocks only."""
        return is_clean(self.stack)


class CodeInfo:
    """The places of a code object, by offset; one inside an instruction counts as its start."""

    def __init__(self, code: CodeType) -> None:
        instructions = list(dis.get_instructions(code))
        bytecode = dis.Bytecode(code)
        self._ops = instructions
        self._index = {op.offset: n for n, op in enumerate(instructions)}
        self._handlers = [
            # A handler finds the error on the stack, with `lasti` the raising instruction below it.
            (entry.start, entry.end, entry.target, entry.depth, 1 + entry.lasti)
            for entry in bytecode.exception_entries  # type: ignore[attr-defined]
        ]
        self._next = [list(self._successors(n)) for n in range(len(instructions))]
        is_known = all(op.opname in opcodes.KNOWN for op in instructions)
        everything = frozenset(code.co_varnames)
        live_in = self._live() if is_known else [everything] * len(instructions)
        self._owners: dict[int, frozenset[str]] = {}
        self._loaded: dict[int, frozenset[str]] = {}  # the variables that determine such entries
        self._managers = dict(self._named_managers())
        stacks = self._stacks() if is_known else {}
        self._places = {
            op.offset: Place(live_in[n], stacks.get(n)) for n, op in enumerate(instructions)
        }
        self._around: dict[int, tuple[int, ...]] = {}  # handlers, by offset
        self._after: dict[int, Place] = {}
        for n, op in enumerate(instructions):
            first = self._next[n][0] if self._next[n] else None
            after = [*self._next[n], *self._handler_indices(op.offset)]
            live = frozenset().union(*(live_in[m] for m in after))
            self._after[op.offset] = Place(live, None if first is None else stacks.get(first))
        self.for_iters = {op.offset for op in instructions if op.opname == "FOR_ITER"}
        self._callees = {op.offset: self._called(op, stacks) for op in instructions}
        self._looked_at = dict(self._looks(stacks))
        self.loops = dict(self._loop_heads(code))
        self.n_offsets = len(code.co_code)
        self._read = opcodes.reads_by_line(instructions, {*code.co_cellvars, *code.co_freevars})
        self._alike = dict(self._copies())

    def before(self, offset: int) -> Place:
        """The place before the instruction at an offset."""
        return self._places[self.start_of(offset)]

    def after(self, offset: int) -> Place:
        """The place after the instruction if it falls through; used for a call under way."""
        return self._after[self.start_of(offset)]

    def loaded(self, stack: Stack | None) -> frozenset[str]:
        """The local variables that determine entries of a stack."""
        of = (Slot.LOADED, Slot.MEMBER)
        managers = [self._managers[at] for slot, at in stack or () if slot is Slot.MANAGED]
        return frozenset(managers).union(
            *(self._loaded[at] for slot, at in stack or () if slot in of)
        )

    def read_on(self, line: int) -> frozenset[str]:
        """The local variables that a line reads and that no other function can set."""
        return self._read.get(line, frozenset())

    def owners(self, stack: Stack | None) -> frozenset[str]:
        """The local variables whose values have attributes on a stack."""
        return frozenset().union(*(self._owners.get(at, ()) for _, at in stack or ()))

    def callee(self, offset: int) -> tuple[str, str] | None:
        """For a call: the instruction that loads the callee, and the name that is loaded."""
        return self._callees[self.start_of(offset)]

    def looked_at(self, offset: int) -> int | None:
        """For a call: the offset of the operator that gets the callee first, if there is one."""
        return self._looked_at.get(self.start_of(offset))

    def canonical(self, offset: int) -> int:
        """The offset that represents all copies of a place: Python copies the end of a function,
        `return x`, to the jumps to it, some versions more often than others.
        """
        return self._alike.get(self.start_of(offset), offset)

    def is_at_loop(self, offset: int) -> bool:
        """Whether a loop gets its iterator's next item at an offset."""
        return self.start_of(offset) in self.for_iters

    def head_at(self, offset: int) -> int:
        """The offset of the instruction itself, after its prefixes, which long loops have."""
        n = self._index[self.start_of(offset)]
        while self._ops[n].opname == "EXTENDED_ARG":
            n += 1
        return self._ops[n].offset

    def handlers(self, offset: int) -> tuple[int, ...]:
        """The offsets of the handlers of an error raised at an offset, innermost first; `with`
        blocks count as handlers, except those of the language.
        """
        start = self.start_of(offset)
        if start not in self._around:
            self._around[start] = tuple(self._handlers_of(start))
        return self._around[start]

    def _handlers_of(self, start: int) -> Iterator[int]:
        handler, seen = self._handler(start), set()
        while handler is not None and handler[0] not in seen:
            seen.add(handler[0])
            n = self._index[handler[0]]
            first, second = self._ops[n], self._ops[n + 1]
            if first.opname == "PUSH_EXC_INFO":
                stack = self._places[handler[0]].stack
                is_own = second.opname == "WITH_EXCEPT_START" and self._is_own_exit(stack)
                if not is_own:
                    yield handler[0]
            handler = self._handler(second.offset)

    def manager_at(self, target: int) -> str | None:
        """The variable that holds the manager of the `with` block whose handler is at `target`."""
        stack = self._places[target].stack
        offsets = [at for slot, at in (stack or ())[-3:] if slot is Slot.MANAGED]
        return self._managers[offsets[-1]] if offsets else None

    def _named_managers(self) -> Iterator[tuple[int, str]]:
        """The offset of each BEFORE_WITH whose manager is in a variable, and the variable."""
        for before, op in itertools.pairwise(self._ops):
            is_named = before.opname == "STORE_FAST" and before.argval.startswith(MANAGER)
            if op.opname == "BEFORE_WITH" and is_named:
                yield op.offset, before.argval

    def _copies(self) -> Iterator[tuple[int, int]]:
        """Pairs of an instruction and the last instruction that is followed by the same
        instructions up to the return."""
        found: dict[object, int] = {}
        # Each sequence up to the return has a number, found by its first instruction and the number
        # of the rest. Comparing whole sequences would cost the square of a function's length.
        end: int | None = None
        numbers: dict[object, int] = {}
        for n in reversed(range(len(self._ops))):
            op = self._ops[n]
            follows = self._next[n] == [n + 1]
            if not op.opname.startswith("RETURN_") and (end is None or not follows):
                end = None
                continue
            here = (op.opname, op.argrepr, op.positions, tuple(self._handler_indices(op.offset)))
            end = numbers.setdefault((here, end if follows else None), len(numbers))
            stack = self._places[op.offset].stack
            slots = None if stack is None else tuple([slot for slot, _ in stack])
            last = found.setdefault((end, slots), op.offset)
            if last != op.offset:
                yield op.offset, last

    def _is_own_exit(self, stack: Stack | None) -> bool:
        """Whether a `with` block that handles an error belongs to the language."""
        return stack is not None and any(slot is Slot.EXIT for slot, _ in stack[-3:])

    def is_caught(self, offset: int) -> bool:
        """Whether the program itself, not only a `with` block, handles an error at an offset."""
        handler, seen = self._handler(self.start_of(offset)), set()
        while handler is not None and handler[0] not in seen:
            seen.add(handler[0])
            first, second = (self._ops[self._index[handler[0]] + k] for k in (0, 1))
            if first.opname == "PUSH_EXC_INFO" and second.opname != "WITH_EXCEPT_START":
                return True
            handler = self._handler(second.offset)  # the first only cleans up and raises again
        return False

    def is_in_block(self, offset: int) -> bool:
        """Whether a `try` or a `with` block of the program covers an offset."""
        handler = self._handler(self.start_of(offset))
        # Handlers that begin differently are Python's own, around a `yield from` or a generator.
        while handler is not None and self._begins(handler[0]) != "PUSH_EXC_INFO":
            handler = self._handler(handler[0])
        return handler is not None

    def _begins(self, offset: int) -> str:
        return self._ops[self._index[offset]].opname

    def is_yield(self, offset: int) -> bool:
        """Whether a waiting generator is at an offset: from Python 3.13 on, after the yield."""
        return self._begins(self.start_of(offset)) in ("YIELD_VALUE", "RESUME")

    def start_of(self, offset: int) -> int:
        while offset not in self._index:  # the offset is in an instruction's inline cache
            offset -= 2
        return offset

    def _loop_heads(self, code: CodeType) -> Iterator[tuple[int, int]]:
        """The offset of each GET_ITER, with that of its FOR_ITER."""
        for n, op in enumerate(self._ops):
            if op.opname == "GET_ITER":
                following = next(o for o in self._ops[n + 1 :] if o.opname != "EXTENDED_ARG")
                if following.opname == "FOR_ITER":
                    yield op.offset, following.offset

    def _called(self, op: dis.Instruction, stacks: Mapping[int, Stack]) -> tuple[str, str] | None:
        """The callee of an instruction; reading an attribute may call a property."""
        is_read = op.opname == "LOAD_ATTR"
        return (op.opname, op.argval) if is_read else self._callee(op, stacks)

    def _looks(self, stacks: Mapping[int, Stack]) -> Iterator[tuple[int, int]]:
        """The offsets of calls, with those of the operators that get their callees first."""
        for op in self._ops:
            depth, stack = opcodes.callee_depth(op), stacks.get(self._index[op.offset])
            if depth is not None and stack is not None and len(stack) >= depth:
                looks = self._ops[self._index[stack[-depth][1]]]
                looking = self._callee(looks, stacks) if looks.opname in opcodes.CALLS else None
                if looking is not None and looking[1] == CALLEE:
                    yield op.offset, looks.offset

    def _callee(self, op: dis.Instruction, stacks: Mapping[int, Stack]) -> tuple[str, str] | None:
        """The instruction that loads the callee, also if an operator gets it first."""
        depth, stack = opcodes.callee_depth(op), stacks.get(self._index[op.offset])
        if depth is None or stack is None or len(stack) < depth:
            return None
        n = self._index[stack[-depth][1]]
        loads = self._ops[n]
        if loads.opname in opcodes.CALLS:
            called = self._callee(loads, stacks)
            # If a call is two instructions, the first takes the arguments.
            before = stacks.get(n - (self._ops[n - 1].opname == "PRECALL"))
            if called is not None and called[1] == CALLEE and before:
                loads = self._ops[self._index[before[-1][1]]]
        return (loads.opname, loads.argval) if loads.opname in opcodes.LOADS_CALLEE else None

    # -- control flow ---------------------------------------------------------------------

    def _successors(self, n: int) -> Iterator[int]:
        op = self._ops[n]
        if op.opname not in opcodes.NO_FALL_THROUGH and n + 1 < len(self._ops):
            yield n + 1
        if op.opcode in opcodes.JUMPS and op.argval in self._index:
            yield self._index[op.argval]

    def _handler(self, offset: int) -> tuple[int, int, int] | None:
        """The handler that covers an offset, the depth of the stack below it, and the number of
        entries pushed for it.
        """
        for start, end, target, depth, n_put in self._handlers:
            if start <= offset < end:
                return target, depth, n_put
        return None

    def _handler_indices(self, offset: int) -> list[int]:
        handler = self._handler(offset)
        return [] if handler is None else [self._index[handler[0]]]

    def _live(self) -> list[frozenset[str]]:
        """Variables that may be read at or after each instruction."""
        live: list[frozenset[str]] = [frozenset()] * len(self._ops)
        is_changed = True
        while is_changed:
            is_changed = False
            for n in range(len(self._ops) - 1, -1, -1):
                op = self._ops[n]
                after: set[str] = set()
                for m in self._next[n]:
                    after |= live[m]
                for name, is_read in reversed(opcodes.locals_of(op)):
                    after.add(name) if is_read else after.discard(name)
                handler = self._handler(op.offset)
                if handler is not None:
                    after |= live[self._index[handler[0]]]
                if after != live[n]:
                    live[n], is_changed = frozenset(after), True
        return live

    # -- the stack ------------------------------------------------------------------------

    def _stacks(self) -> dict[int, Stack]:
        """The stack before each reachable instruction."""
        found: dict[int, Stack] = {0: ()}
        queue = [0]
        while queue:
            n = queue.pop()
            op, stack = self._ops[n], found[n]
            handler = self._handler(op.offset)
            block = self._block(op, stack, found)
            # If a call is two instructions, the first takes the arguments.
            given = found[n - 1] if n and self._ops[n - 1].opname == "PRECALL" else stack
            reached = [
                (m, self._following(op, given, stack_after(op, stack, m != n + 1, block)))
                for m in self._next[n]
            ]
            if handler is not None:
                target, depth, n_put = handler
                under = (*stack[:depth], *[(Slot.OTHER, target)] * n_put)
                reached.append((self._index[target], under))
            for m, after in reached:
                met = after if m not in found else joined(found[m], after)
                if met != found.get(m):
                    found[m] = met
                    queue.append(m)
        return found

    def _following(self, op: dis.Instruction, before: Stack, after: Stack) -> Stack:
        """The stack after an instruction, with the entries marked that variables determine."""
        written = {name for name, is_read in opcodes.locals_of(op) if not is_read}
        if written:
            after = tuple(
                (Slot.OTHER, offset)
                if slot is Slot.LOADED and written & self._loaded[offset]
                else (slot, offset)
                for slot, offset in after
            )
        n_put = sum(1 for slot, offset in after if offset == op.offset and slot is Slot.OTHER)
        if not n_put:
            return after
        slot, names = self._pushed(op, before[len(after) - n_put :])
        self._loaded[op.offset] = names
        return (*after[:-n_put], *[(slot, op.offset)] * n_put)

    def _pushed(self, op: dis.Instruction, popped: Stack) -> tuple[Slot, frozenset[str]]:
        """The kind of entry that an instruction pushes, and the variables that determine it."""
        if op.opname in opcodes.LOADS:
            return Slot.LOADED, frozenset(
                name for name, is_read in opcodes.locals_of(op) if is_read
            )
        if not popped or not all(slot in _FOLLOWING for slot, _ in popped):
            return Slot.OTHER, frozenset()
        names = self.loaded(popped)
        if op.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            return Slot.MEMBER, names
        operators = {
            str(self._ops[self._index[offset]].argval)
            for slot, offset in popped
            if slot is Slot.OPERATOR and self._begins(offset) == "LOAD_GLOBAL"
        }
        is_pure = op.opname in opcodes.CALLS and operators and operators <= _PURE
        if any(slot is Slot.MEMBER for slot, _ in popped):
            self._owners[op.offset] = names
        return (Slot.LOADED if is_pure else Slot.OTHER), names

    def _block(self, op: dis.Instruction, stack: Stack, found: dict[int, Stack]) -> Slot:
        """The kind of exit that a `with` block pushes on the stack; for some blocks, unknown."""
        if op.opname != "BEFORE_WITH":
            return Slot.OTHER
        if op.offset in self._managers:
            return Slot.MANAGED
        callee = self._callee(self._ops[self._index[stack[-1][1]]], found)
        return Slot.EXIT if callee is not None and callee[1] in OWN_WITHS else Slot.OTHER


_FOLLOWING = frozenset({Slot.OPERATOR, Slot.LOADED, Slot.MEMBER})
_PURE = frozenset({CALLEE, COMPARED, METHOD, TEXT, WHOLE})


MAX_INFOS = 4096
# By id: a code object's hash reads all its names and constants each time. The code is kept, so that
# no other object gets its id.
_infos: dict[int, tuple[CodeType, CodeInfo]] = {}


def forget_infos() -> None:
    """Forgets the places of all code objects, which are computed again when needed."""
    _infos.clear()


def info_of(code: CodeType) -> CodeInfo:
    """The places of a code object, computed once."""
    found = _infos.get(id(code))
    return found[1] if found is not None else _new_info(code)


@unhooked
def _new_info(code: CodeType) -> CodeInfo:
    if len(_infos) >= MAX_INFOS:
        forget_infos()
    found = CodeInfo(code)
    _infos[id(code)] = code, found
    return found  # not looked up again: another thread may call `forget_infos` at any time
