"""Finds texts of a graph that name an object by its address, which differs in each process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sgc.errors import TraceError
from sgc.ir.graph import Graph, Lit, Operand

# How Python shows an object whose class does not define how.
_SHOWN = re.compile(r"<[^<>]*(?:<[^<>]*>[^<>]*)* at 0x[0-9a-f]{6,16}>")


def refuse_addresses(graph: Graph, own: Iterable[str]) -> None:
    """Raises TraceError at the line where a graph's text shows an object by its address. own: the
    program's own texts, which may look like that."""
    found = [
        (shown, node.loc)
        for node in graph.nodes()
        for _, operand in node.fields
        for text in _texts(operand)
        if " at 0x" in text
        for shown in _SHOWN.findall(text)
    ]
    if not found:
        return
    written = tuple(own)
    for shown, loc in found:
        if not any(shown in text for text in written):
            raise TraceError(
                f"the program shows an object by its address, {shown}, which is another in each "
                "process",
                where=str(loc or ""),
                hint="give its class a __repr__ or __str__, or show one of its attributes",
            )


def _texts(operand: Operand) -> Iterator[str]:
    if isinstance(operand, tuple):
        for each in operand:
            yield from _texts(each)
    elif isinstance(operand, Lit) and isinstance(operand.value, str):
        yield operand.value
