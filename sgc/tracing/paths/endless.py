"""Refuses a program that no path leaves."""

from __future__ import annotations

from sgc.core.stops import INTERPRET
from sgc.errors import TraceError
from sgc.lang.definition import Definition
from sgc.tracing.paths.segments import Goto, Segment, Stop, reached_from


def refuse_endless(entry: Segment, function: Definition) -> None:
    """Raises TraceError at a loop if no path from the entry ends."""
    reached = reached_from(entry).values()
    if any(isinstance(each.end, Stop) for each in reached):
        return
    ways = ((each.number, each.end) for each in reached if isinstance(each.end, Goto))
    back = (way.loc for number, way in ways if way.leads_to().number <= number and way.loc)
    raise TraceError(
        f"{function.name} never ends: no path leaves its loop",
        where=str(next(back, None) or function.loc),
        hint="end its loop by a bound, or by a test of what was generated; or " + INTERPRET,
    )
