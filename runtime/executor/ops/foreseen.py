"""The pure tools of an arm whose arguments can be told before it is known that the arm comes.

An argument has a value, or follows from values by functions in the arm. The functions are tried on
separate values: the run does not change, and an error means that nothing is foreseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from sgc.ir.analysis.host_calls import is_early
from sgc.ir.graph import Node, Operand, Ref, operand_refs
from sgc.runtime.executor.interface.plain import canonical
from sgc.runtime.executor.ops.functions import TAKES_PLACE
from sgc.runtime.executor.ops.handlers import HANDLERS
from sgc.runtime.executor.ops.run import Run
from sgc.runtime.executor.run.blocks import Ahead
from sgc.runtime.executor.run.values import Values
from sgc.runtime.executor.tools.early import Foreseen
from sgc.runtime.executor.tools.tool_calls import arguments_of

_FUNCTIONS = frozenset({"compute", "concat", "format"})
_UNKNOWN = object()


class _Tried:
    """The run as handlers of functions see it, with the values of this arm."""

    def __init__(self, run: Run) -> None:
        self.context = replace(run.context, sharing=None)
        self.values = Values({}, run.work.finished)
        self._run = run

    def field(self, node: Node, name: str) -> Any:
        return self.values.operand(node.get(name))

    def enter(self, block: Ahead, args: Sequence[Operand]) -> None:
        """Begins a block; its parameters get the arguments that have values."""
        given = [self._value(arg) for arg in args]
        for name, value in zip(block.params, given, strict=bool(args)):
            if value is not _UNKNOWN:
                self.values.define(name, value)

    def _value(self, operand: Operand) -> Any:
        """The value of an operand. A jump also passes on failures, which are errors only when
        used."""
        if not self._have(operand_refs(operand)):
            return _UNKNOWN
        if isinstance(operand, Ref):
            return self.values.raw(operand.name)
        return _UNKNOWN if isinstance(operand, tuple) else operand.value

    def has_values(self, node: Node) -> bool:
        return self._have(node.refs())

    def _have(self, names: Iterable[str]) -> bool:
        """Whether all of these names have values; copies those of the run."""
        of_run = self._run.values
        for name in names:
            if name in self.values.by_name:
                continue
            if name not in of_run.by_name:
                return False
            self.values.define(name, of_run.raw(name))
        return True


def foreseen(run: Run, arms: Mapping[str, Sequence[Ahead]]) -> Iterator[Foreseen]:
    """The calls that can be foreseen in arms, by the arms' names."""
    for arm, blocks in arms.items():
        tried, args = _Tried(run), tuple[Operand, ...]()
        for block in blocks:
            tried.enter(block, args)
            for node in block.nodes:
                yield from _of_node(tried, arm, node)
            given = block.nodes[-1].get("args") if block.nodes[-1].op == "jump" else ()
            args = given if isinstance(given, tuple) else ()


def _of_node(tried: _Tried, arm: str, node: Node) -> Iterator[Foreseen]:
    is_tool = is_early(node)
    if not (is_tool or _is_function(node)) or not tried.has_values(node):
        return
    try:
        if is_tool:
            arguments = arguments_of(cast(Run, tried), node)
            timeout_s = tried.field(node, "timeout_s")
            yield Foreseen(arm, node, arguments, canonical(arguments), timeout_s)
        else:
            (value,) = HANDLERS[node.op](cast(Run, tried), node)
            tried.values.define(node.results[0].name, value)
    except Exception:  # the arm itself will raise the error, if it is taken
        return


def _is_function(node: Node) -> bool:
    return node.op in _FUNCTIONS and not (node.op == "compute" and node.text("fn") in TAKES_PLACE)
