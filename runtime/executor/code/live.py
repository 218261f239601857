"""Runs a graph's code on live objects: all that refer to an object see its changes.

The code of all nodes of a run shares one memory. A constant that several nodes have, with the same
name and text, is one object, so that `best is RUBRICS[0]` is as in Python; no node may change it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sgc.ir.code import Code, parse_code
from sgc.runtime.executor.code.fuel import (
    MAX_STEPS,
    NotAllowed,
    Run,
    here,
    note_steps,
    steps_of_a_run,
)
from sgc.runtime.executor.code.held import Changed, check_unchanged
from sgc.runtime.executor.code.mutation import may_change
from sgc.runtime.executor.code.room import room
from sgc.runtime.executor.code.run import value_of
from sgc.runtime.executor.code.tree.compiling import Names, compile_module
from sgc.runtime.executor.code.tree.driving import Closing
from sgc.runtime.executor.code.tree.scopes import Frame
from sgc.runtime.executor.code.values import Memo, copied
from sgc.runtime.executor.interface.value_limits import LimitExceeded

MAX_LIVE_STEPS = 40 * MAX_STEPS  # of all nodes of a run: they bound its memory, too


@dataclass(slots=True)
class Memory:
    """What the code of one run has made. constants: by name and text, each with the memo that shows
    whether it is unchanged; of_classes: such memos of classes' attributes; left: the steps that all
    code of the run may still take; given: for each argument, the copies of its containers, by the
    ids of the caller's containers."""

    run: Run = field(default_factory=Run)
    constants: dict[tuple[str, str], tuple[Any, Memo | None]] = field(default_factory=dict)
    left: int = MAX_LIVE_STEPS
    given: list[Memo] = field(default_factory=list)
    of_classes: list[Memo] = field(default_factory=list)

    def call(self, source: str, args: Sequence[Any]) -> Any:
        """Calls the last function of some code. Raises what the code raises, LimitExceeded,
        NotAllowed, or CodeError."""
        program, run = _program(source), self.run
        given = run.left = min(steps_of_a_run(), self.left)
        run.named, run.unchanged, run.is_live = program.classes, [], True
        outer, here.run = here.run, run
        try:
            with room():
                frame = program.module(run)
                self._share(program, frame, run.unchanged)
                run.unchanged = []  # from here on, for values written out in the entry itself
                try:
                    result = frame[program.entry](*args)
                finally:
                    check_unchanged(run.unchanged)
                    check_unchanged(self.of_classes)  # any method may change them
                    if program.may_change:
                        check_unchanged(self._kept())
                run.charge(0)  # Python may have dropped the error of a limit
                return result
        except Closing:
            raise NotAllowed("a GeneratorExit leaves a graph's code") from None
        except (RecursionError, MemoryError) as error:
            raise LimitExceeded("a graph's code nests too deeply, or needs too much") from error
        finally:
            self.left -= given - run.left
            note_steps(given - run.left)
            run.depth, run.handled = 0, []
            here.run = outer

    def _share(self, program: _Program, frame: Frame, fresh: list[Memo]) -> None:
        """Puts the run's earlier constants in the places of equal new constants. fresh: the memos
        of the new constants."""
        for (name, text), slot in program.constants.items():
            value = frame[slot]
            made = next((memo for memo in fresh if id(value) in memo), None)
            fresh = [memo for memo in fresh if memo is not made]
            frame[slot], _ = self.constants.setdefault((name, text), (value, made))
        self.of_classes += fresh  # a class is made once

    def _kept(self) -> Iterator[Memo]:
        """The memos of the constants, which any code of the run may have been given."""
        return (memo for _, memo in self.constants.values() if memo is not None)

    def copied(self, argument: Any) -> Any:
        """A copy of an argument. The program may not change it: the caller would not see that."""
        memo: Memo = {}
        made = copied(argument, memo)
        self.given.append(memo)
        return made

    def check_given(self) -> None:
        """Raises NotAllowed if the program has changed an argument."""
        try:
            check_unchanged(self.given)
        except Changed:
            raise NotAllowed(
                "the program changes an argument, and its caller would not see it",
                hint="change a copy of it, copy.deepcopy(x), or run it with --interpret",
            ) from None

    def close(self) -> None:
        """Empties containers that CPython would free by recursion."""
        for each in self.run.kept:
            each.clear()
        self.run.kept.clear()
        self.constants.clear()


@dataclass(frozen=True, slots=True)
class _Program:
    """Compiled code. module: runs its statements; entry: the slot of its last function; constants:
    the slots of its constants, by name and text; classes: the keys of its classes, by name;
    may_change: whether it may change its arguments."""

    module: Callable[[Run], Frame]
    entry: int
    constants: dict[tuple[str, str], int]
    classes: dict[str, str]
    may_change: bool


@lru_cache(maxsize=512)
def _program(source: str) -> _Program:
    with room():
        return _compiled(parse_code(source))


def _compiled(code: Code) -> _Program:
    names = Names(code.imports, value_of, code.body)
    scope, module = compile_module(code.body, names)
    constants = {
        (name, ast.unparse(each.value)): scope.places[name].slot
        for each in code.constants
        if each.value is not None
        for name in _targets(each)
    }
    entry = scope.places[code.entry.name].slot
    return _Program(module, entry, constants, names.classes, may_change(code))


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [each.id for each in targets if isinstance(each, ast.Name)]
