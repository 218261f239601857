"""Finds the values for which a trace was stopped: the inputs of the operation that stopped it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

from sgc.core.markers import split_markers
from sgc.core.stops import TraceStop
from sgc.core.symbols import Symbol
from sgc.ir.graph import operand_refs
from sgc.tracing.paths.naming import Made
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.recorder import Recorder

MAX_SYMBOLS = 10_000


def blamed(
    session: Recorder, made: Mapping[str, Made], traceback: TracebackType | None
) -> set[str]:
    """The symbols among the operation's inputs, and the symbols that they were made from."""
    return made_from(_given(session, traceback), made)


def made_from(names: Iterable[str], made: Mapping[str, Made]) -> set[str]:
    """These symbols, and the symbols that they were made from."""
    found: set[str] = set()
    queue = list(names)
    while queue and len(found) < MAX_SYMBOLS:
        name = queue.pop()
        if name not in found:
            found.add(name)
            fields = made.get(name, ("", {}))[1]
            queue += [ref for operand in fields.values() for ref in operand_refs(operand)]
    return found


def _given(session: Recorder, traceback: TracebackType | None) -> Iterator[str]:
    """The symbols in the variables of our frames below the program's own."""
    values: list[Any] = []
    while traceback is not None:
        frame = traceback.tb_frame
        is_ours = str(frame.f_globals.get("__name__", "")).startswith("sgc.")
        values = [*values, *frame.f_locals.values()] if is_ours else []
        traceback = traceback.tb_next
    for value in values:
        if isinstance(value, str):
            # The marker may be cut, or from another trace; this may be why the trace stopped.
            with contextlib.suppress(ValueError, TraceStop):
                numbers = [n for n in split_markers(str.__str__(value)) if isinstance(n, int)]
                yield from (session.symbol_of(number).name for number in numbers)
        elif isinstance(value, Symbol):
            yield value.name
        elif isinstance(value, (AbstractNumber, AbstractList)):
            yield value.symbol.name
