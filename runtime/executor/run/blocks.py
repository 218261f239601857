"""Runs a program of several blocks: each terminator decides the next block.

A block's nodes are submitted all at once, and may still run while later blocks begin: a terminator
waits only for its test. In each iteration of a loop, the values of a block are renamed, since
generations of one iteration may still be running in the next.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sgc.errors import (
    AppendError,
    ArgumentError,
    ForkError,
    ProgramError,
    TurnsExceeded,
    raised_as,
)
from sgc.ir.analysis.dependencies import successors
from sgc.ir.analysis.host_calls import is_early
from sgc.ir.graph import Block, Graph, Node, Operand, Ref, Value, operand_refs
from sgc.runtime.executor.functions.once import made_once
from sgc.runtime.executor.functions.own_texts import own
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.run.context import Context
from sgc.runtime.executor.run.cuts import awaited
from sgc.runtime.executor.run.values import Values

MAX_BLOCKS = 1_000_000  # that one run may execute
YIELD_EVERY = 64  # blocks: a loop that waits for nothing must let other tasks run
AHEAD = -1  # the turn of blocks that may run
MAX_AHEAD = 4  # blocks that are considered before one is chosen
MAX_KEPT = 2048  # renamed blocks of one program

Names = Mapping[str, Ref]  # the names of a block's values in the current turn of its loop


class Walked(Protocol):
    """The run that executes the blocks."""

    values: Values
    context: Context

    def field(self, node: Node, name: str) -> Any:
        """The value of a field of a node that is ready."""
        ...

    def define(self, name: str, value: Any) -> None: ...

    def submit(self, nodes: Sequence[Node], waits: Iterable[Iterable[str]] | None = None) -> None:
        """Takes nodes whose operands are defined by earlier ones, with what each waits for."""
        ...

    def foresee(self, arms: Mapping[str, Sequence[Ahead]]) -> None:
        """Called while the run waits for the test that decides which of these blocks runs."""
        ...

    def decided(self, name: str) -> None:
        """Called with the foreseen block that runs."""
        ...

    def fail_unless_stopped(self, node: Node | None, error: BaseException) -> None:
        """Ends the run with an error of one of its tasks, unless the task itself was stopped."""
        ...


class Flow:
    """A program's blocks by name, with a cache of renamed blocks."""

    def __init__(self, graph: Graph) -> None:
        self.entry = graph.blocks[0].name
        self.blocks = {block.name: _Shape.of(block) for block in graph.blocks}
        self._kept: dict[tuple[Any, ...], Turn] = {}
        self._chains: dict[str, tuple[_Shape, ...]] = {}

    def renamed(self, shape: _Shape, names: Names, turn: int) -> Turn:
        """Returns the block's nodes with renamed values; the same objects for equal names."""
        if not turn and names.keys().isdisjoint(shape.uses):
            return shape.first
        used = [names[name].name if name in names else None for name in shape.uses]
        key = (shape.block.name, turn, *used)
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            found = self._kept[key] = Turn(
                tuple([row.renamed(names) for row in shape.rows]),
                tuple([_all_renamed(row.waits, names) for row in shape.rows]),
            )
        return found

    def ahead(self, name: str, names: Names) -> list[Ahead]:
        """The block itself and those that follow it, unless the run fails; none if no tool in them
        may be called early."""
        found: list[Ahead] = []
        names = dict(names)  # a value may have the name that another one gets in these blocks
        for shape in self._chain(name):
            names.update((each, Ref(f"{each}#?")) for each in (*shape.params, *shape.defines))
            params = tuple(names[each].name for each in shape.params)
            found.append(Ahead(params, self.renamed(shape, names, AHEAD).nodes))
        return found

    def _chain(self, name: str) -> tuple[_Shape, ...]:
        if name not in self._chains:
            chain: dict[str, _Shape] = {}
            following: str | None = name
            while following is not None and following not in chain and len(chain) < MAX_AHEAD:
                shape = chain[following] = self.blocks[following]
                following = self._following(shape.block.nodes[-1])
            is_any = any(is_early(node) for shape in chain.values() for node in shape.block.nodes)
            self._chains[name] = tuple(chain.values()) if is_any else ()
        return self._chains[name]

    def _following(self, last: Node) -> str | None:
        """The block that follows, unless the run fails; None if several may."""
        blocks = {name: self.blocks[name].block for name in successors(last)}
        names = [name for name, block in blocks.items() if block.nodes[0].op != "fail"]
        return names[0] if len(names) == 1 else None


@dataclass(frozen=True, slots=True)
class Turn:
    """The nodes of a block in one turn of its loop. waits: the values that each waits for."""

    nodes: tuple[Node, ...]
    waits: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Ahead:
    """A block that runs if an arm is taken. params get the arguments of the jump that ends the
    block before."""

    params: tuple[str, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A block with the names that it uses from outside and those that it defines.

    rows: its nodes, to be renamed; first: where none is renamed.
    """

    block: Block
    rows: tuple[_Row, ...]
    first: Turn
    uses: tuple[str, ...]
    defines: tuple[str, ...]
    params: tuple[str, ...]

    @staticmethod
    def of(block: Block) -> _Shape:
        defines = tuple(value.name for node in block.nodes for value in node.results)
        inside = frozenset(defines)
        used = dict.fromkeys(name for node in block.nodes for name in node.refs())
        uses = tuple(name for name in used if name not in inside)
        params = tuple(param.name for param in block.params)
        rows = tuple(map(_Row.of, block.nodes))
        first = Turn(block.nodes, tuple(row.waits for row in rows))
        return _Shape(block, rows, first, uses, defines, params)


@dataclass(frozen=True, slots=True)
class _Row:
    """A node of a block. A loop renames its nodes in each turn, so what does not change is found
    once: the fields that refer to values, by their places, and those that are lists of them.
    """

    node: Node
    fields: tuple[tuple[int, str, Ref], ...]
    lists: tuple[tuple[int, str, tuple[Operand, ...]], ...]
    waits: tuple[str, ...]  # the values that it waits for

    @staticmethod
    def of(node: Node) -> _Row:
        using = [
            (place, key, operand)
            for place, (key, operand) in enumerate(node.fields)
            if operand_refs(operand)
        ]
        fields = tuple(each for each in using if isinstance(each[2], Ref))
        lists = tuple(each for each in using if isinstance(each[2], tuple))
        return _Row(node, fields, lists, tuple(dict.fromkeys(awaited(node))))  # type: ignore[arg-type]

    def renamed(self, names: Names) -> Node:
        node, fields = self.node, [*self.node.fields]
        for place, key, ref in self.fields:
            fields[place] = key, names.get(ref.name, ref)
        for place, key, operands in self.lists:
            fields[place] = key, _renamed(operands, names)
        results = tuple([_defined(value, names) for value in node.results])
        return Node(node.op, results, tuple(fields), node.loc)


def _defined(value: Value, names: Names) -> Value:
    return Value(names[value.name].name, value.type) if value.name in names else value


def _all_renamed(waits: tuple[str, ...], names: Names) -> tuple[str, ...]:
    return tuple([names[name].name if name in names else name for name in waits])


def _renamed(operands: tuple[Operand, ...], names: Names) -> tuple[Operand, ...]:
    return tuple(
        [
            names.get(each.name, each)
            if type(each) is Ref
            else _renamed(each, names)
            if type(each) is tuple
            else each
            for each in operands
        ]
    )


@made_once
def flow_of(graph: Graph) -> Flow:
    """The flow of a program."""
    return Flow(graph)


async def walk(run: Walked, flow: Flow) -> None:
    """Runs the blocks from the entry to a `return` or `deopt`; an error ends the run."""
    try:
        await _walk(run, flow)
    except BaseException as error:
        run.fail_unless_stopped(None, error)


async def _walk(run: Walked, flow: Flow) -> None:
    names: dict[str, Ref] = {}
    turns: Counter[str] = Counter()
    shape, before, on_block = flow.blocks[flow.entry], "", run.context.on_block
    for number in range(MAX_BLOCKS):
        if on_block is not None:
            on_block(run.context.program, before, shape.block.name)
        before = shape.block.name
        turn = turns[shape.block.name]
        turns[shape.block.name] += 1
        if turn:
            for name in shape.defines:
                names[name] = Ref(f"{name}#{turn}")
        found = flow.renamed(shape, names, turn)
        last = found.nodes[-1]
        if last.op in ("return", "deopt"):
            run.submit(found.nodes, found.waits)
            return
        run.submit(found.nodes[:-1], found.waits)
        if number % YIELD_EVERY == YIELD_EVERY - 1:
            await asyncio.sleep(0)
        if last.op == "jump":
            shape = flow.blocks[last.text("target")]
            _bind(run, shape, last, names, turns[shape.block.name])
        else:
            is_foreseen = run.context.options.early_tools and _foresee(run, flow, last, names)
            shape = flow.blocks[await _decided(run, last)]
            if is_foreseen:
                run.decided(shape.block.name)
    raise ProgramError(f"the program ran {MAX_BLOCKS} blocks and did not end")


_DECIDING = {"branch": "test", "switch": "value"}


def _foresee(run: Walked, flow: Flow, last: Node, names: Names) -> bool:
    """Tells the run which blocks may follow a test without a value, if they call tools."""
    field = _DECIDING.get(last.op)
    test = None if field is None else last.get(field)
    if not isinstance(test, Ref) or test.name in run.values.by_name:
        return False
    arms = {name: flow.ahead(name, names) for name in successors(last)}
    calling = {name: arm for name, arm in arms.items() if arm}
    if calling:
        run.foresee(calling)
    return bool(calling)


def _bind(run: Walked, shape: _Shape, jump: Node, names: dict[str, Ref], turn: int) -> None:
    """Binds the parameters to the arguments of the jump."""
    args = jump.get("args")
    assert isinstance(args, tuple)
    bound = {}
    for name, arg in zip(shape.params, args, strict=True):
        if isinstance(arg, Ref):
            bound[name] = arg  # the jump is already renamed
        else:
            bound[name] = Ref(f"{name}#{turn}=")
            value, special = run.values.operand(arg), run.context.special
            run.define(bound[name].name, value if special is None else own(arg, value, special))
    names.update(bound)


# Errors of the language that programs cause by invalid values.
_OF_LANGUAGE = {
    each.__name__: each for each in (AppendError, ArgumentError, ForkError, TurnsExceeded)
}


async def _decided(run: Walked, last: Node) -> str:
    """Returns the block that a terminator continues with; waits for its test."""
    if last.op == "branch":
        is_true = await _awaited(run, last.get("test"))
        return last.text("then" if is_true else "orelse")
    if last.op == "switch":
        value = await _awaited(run, last.get("value"))
        cases, targets = run.field(last, "cases"), run.field(last, "targets")
        return str(dict(zip(cases, targets, strict=True)).get(value) or _default(last, value))
    of = last.get("failed")
    if isinstance(of, Ref) and type(failed := await run.values.value(of.name)) is Failed:
        raise failed.error()
    message = await _awaited(run, last.get("message"))
    name = last.text("error")
    if name in _OF_LANGUAGE:
        raise _OF_LANGUAGE[name](message, where=str(last.loc or ""))
    raise raised_as(name, last.text("base"))(f"{name}: {message}", where=str(last.loc or ""))


def _default(last: Node, value: Any) -> str:
    name = last.text("default")
    if not name:
        raise ProgramError(f"no case of a switch matches {value!r}", where=str(last.loc or ""))
    return name


async def _awaited(run: Walked, operand: Operand) -> Any:
    if isinstance(operand, Ref):
        await run.values.value(operand.name)
    return run.values.operand(operand)
