"""Runs a graph's code: its tree is compiled once to closures, which each run calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NoReturn

from sgc.ir.code import Code, parse_code
from sgc.runtime.executor.code.along import Along, copied_along
from sgc.runtime.executor.code.fuel import NotAllowed, Run, here, note_steps
from sgc.runtime.executor.code.held import check_unchanged, unchanged
from sgc.runtime.executor.code.library import library_value
from sgc.runtime.executor.code.library.caching import cached
from sgc.runtime.executor.code.methods.builtin_functions import BUILTIN_VALUES
from sgc.runtime.executor.code.mutation import may_change
from sgc.runtime.executor.code.room import room
from sgc.runtime.executor.code.tree import (
    calls,
    classes,
    displays,
    expressions,
    fstrings,
    statements,
    trying,
)
from sgc.runtime.executor.code.tree.compiling import Names, compile_module
from sgc.runtime.executor.code.tree.driving import Closing
from sgc.runtime.executor.code.tree.scopes import UNSET
from sgc.runtime.executor.code.values import (
    Memo,
    always,
    check_arguments,
    check_result,
    copied,
    held_by,
)
from sgc.runtime.executor.interface.value_limits import LimitExceeded

NOTHING: Mapping[int, Any] = MappingProxyType({})
ROOMS = (calls, classes, displays, expressions, fstrings, statements, trying)


def run_code(
    source: str,
    args: Sequence[Any],
    fixed: Sequence[int] = (),
    originals: dict[int, Any] | None = None,
    along: Mapping[int, Along] = NOTHING,
) -> Any:
    """Calls the last function of some code with arguments, which it does not mutate.

    fixed: indices of arguments whose copies the code may not change either; originals: gets the
    original of each container in the copies, by the copy's id; along: for other arguments, by
    index, the only objects to copy. Raises what the code raises, LimitExceeded, NotAllowed, or
    CodeError.
    """
    program = _program(source)
    run = Run()
    given_steps = run.left
    run.named = program.classes
    kept: set[int] = set()
    outer, here.run = here.run, run
    try:
        with room():
            given = program.given(args, fixed, run.unchanged, along)
            if originals is not None:
                for memo in run.unchanged:
                    originals.update((id(copy), original) for original, copy in memo.values())
            try:
                result = program.call(run, given)
            finally:
                check_unchanged(run.unchanged)
            run.charge(0)  # Python may have dropped the error of a limit
            kept = check_result(result)
            return result
    except Closing:
        raise NotAllowed("a GeneratorExit leaves a graph's code") from None
    except Exception as error:
        kept = held_by(error)
        if not isinstance(error, (RecursionError, MemoryError)):
            raise
        raise LimitExceeded("a graph's code nests too deeply, or needs too much") from error
    finally:
        note_steps(given_steps - run.left)
        run.left = -1
        here.run = outer
        for each in run.kept:
            if id(each) not in kept:
                each.clear()


@dataclass(frozen=True, slots=True)
class _Program:
    """Compiled code. call: runs the module, and calls its last function; classes: the keys of its
    classes, by name.
    """

    call: Callable[[Run, Sequence[Any]], Any]
    may_change: bool
    classes: dict[str, str]

    def given(
        self,
        args: Sequence[Any],
        fixed: Sequence[int],
        unchanged: list[Memo],
        along: Mapping[int, Along],
    ) -> Sequence[Any]:
        """The arguments, or copies of them; the copies of `fixed` arguments go to `unchanged`."""
        if not self.may_change and check_arguments(args):
            return args
        memos: list[Memo] = [{} for _ in args]
        given = [
            copied_along(each, along[n]) if n in along else copied(each, memos[n])
            for n, each in enumerate(args)
        ]
        unchanged += [memos[index] for index in fixed]
        return given


@lru_cache(maxsize=128)
def _program(source: str) -> _Program:
    code = parse_code(source)
    with room():
        return _compiled(code)


def _compiled(code: Code) -> _Program:
    names = Names(code.imports, value_of, code.body)
    scope, module = compile_module(code.body, names)
    entry = scope.places[code.entry.name].slot

    def call(run: Run, args: Sequence[Any]) -> Any:
        return module(run)[entry](*args)

    return _Program(call, may_change(code), names.classes)


def value_of(module: str | None, name: str) -> Any:
    """The value of a free name of code."""
    if module:
        return library_value(module, name)
    return _ADDED[name] if name in _ADDED else BUILTIN_VALUES.get(name, UNSET)


def refused(text: Any, /) -> NoReturn:
    """Ends a run that only the interpreter can continue; no handler of the program sees it."""
    raise NotAllowed(str(text), hint="run it with --interpret")


_ADDED = {"always": always, "cached": cached, "refused": refused, "unchanged": unchanged}
