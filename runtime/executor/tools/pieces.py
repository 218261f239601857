"""Runs pieces of a program's source, which its caller has: the op `host`.

A piece gets copies of its arguments and returns data. Other effects, such as changing an argument,
would be lost, so they end the run with an error; the interpreter does not continue there, since it
would run the piece again. No log keeps a piece's result: a resumed run runs the piece again, as the
interpreter does.
"""

from __future__ import annotations

import reprlib
from typing import Any

from sgc.errors import ProgramError
from sgc.ir.analysis.host_calls import shown_piece
from sgc.ir.code_types import parse_code_type
from sgc.ir.graph import Node
from sgc.runtime.executor.functions.own_texts import has_own, own
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.tools.threads import call_on_thread
from sgc.runtime.executor.tools.tool_calls import Caller

MAX_DEPTH = 64
_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})
_HINT = (
    "give it texts, numbers, bools, None, and lists, tuples and dicts of them, and make such data "
    "of what it gives, as by str(x), float(x) or list(xs); or run it with --interpret"
)


async def call_piece(run: Caller, node: Node) -> Any:
    """Runs the piece of a node when it is its turn; returns its value, or how it failed."""
    place = run.tools.order.begin(node)
    return await run.tools.in_turn(run, node, place, lambda: _called(run, node))


async def _called(run: Caller, node: Node) -> Any:
    given = _arguments(run, node)
    try:
        args = [_data_copy(each) for each in given]
        python = run.tools.piece(node)
        value, error = await call_on_thread(lambda: python(*args), None)
        if error is None:
            return _checked(node, given, args, value)
    except NoData as no_data:
        raise ProgramError(
            f"{shown_piece(node)} {no_data}", where=str(node.loc or ""), hint=_HINT
        ) from None
    failed = Failed.of("", error, str(node.loc or ""))
    if not isinstance(error, Exception):
        raise failed.error()
    return failed


def _arguments(run: Caller, node: Node) -> list[Any]:
    args, special = list(run.field(node, "args")), run.context.special
    if special is not None and any(map(has_own, own(node.get("args"), args, special))):
        raise ProgramError(
            "a piece in Python computes with a special token that the program writes itself",
            hint="add special tokens to the stream by themselves, or run it with --interpret",
        )
    return args


class NoData(Exception):
    """A piece takes or returns something that is not data."""


def _checked(node: Node, given: list[Any], args: list[Any], value: Any) -> Any:
    """A copy of a piece's result. given: its arguments; args: the copies that it was called with.
    Raises NoData.
    """
    if [_data_copy(each) for each in given] != args:
        raise NoData("changes what it is given")
    found = _data_copy(value)
    if not _containers(value).isdisjoint(_containers(args)):
        raise NoData("gives a part of what it is given")
    gives = node.text("gives")
    if gives and not parse_code_type(gives).fits(found):
        raise NoData(f"gave {reprlib.repr(found)}, where tracing expected {gives}")
    return found


def _data_copy(value: Any, depth: int = MAX_DEPTH) -> Any:
    """A copy of data, of the same types; raises NoData for anything else."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if depth == 0:
        raise NoData(f"takes or gives a value that nests deeper than {MAX_DEPTH}")
    if kind in (list, tuple):
        return kind(_data_copy(item, depth - 1) for item in value)
    if kind is dict:
        return {_data_copy(k, depth - 1): _data_copy(each, depth - 1) for k, each in value.items()}
    raise NoData(f"takes or gives a {kind.__name__}")


def _containers(value: Any) -> set[int]:
    """The ids of the lists and dicts in some data."""
    found: set[int] = set()
    left = [value]
    while left:
        each = left.pop()
        if type(each) in (list, dict):
            found.add(id(each))
        if type(each) in (list, tuple):
            left += each
        elif type(each) is dict:
            left += each.values()
    return found
