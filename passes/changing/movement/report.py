"""What code movement did and did not do, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from sgc.ir.graph import Graph, Loc
from sgc.passes.changing.movement.propose import MAX_SHOWN_CHARS, Outcome, Proposal, Stay, move


def report(graph: Graph) -> list[str]:
    """What the rules would do to a program and those that it calls."""
    return [line for each in (graph, *graph.called) for line in lines(move(each))]


def lines(outcome: Outcome) -> Iterator[str]:
    """Each move with what it gains, each refusal and rejection with its reason and line."""
    for proposal in outcome.moved:
        gained = f"{proposal.gained_chars} characters more in the constant prefix"
        yield f"{_place(proposal.draft.loc)}moved in front of the arguments: {gained}"
        yield from (f"  {_short(text)}" for text in proposal.led)
    for rejected in outcome.rejected:
        proposal = rejected.proposal
        yield f"{_place(proposal.draft.loc)}rejected: {rejected.reason}"
        if proposal.is_move:
            yield f"  proposed order: {list(proposal.order)}"
    for proposal in (*outcome.moved, *outcome.kept):
        yield from (_stays(proposal, stay) for stay in proposal.stays)
    yield from (f"stays: {_short(stay.text)}: {stay.reason}" for stay in outcome.untouched)


def _stays(proposal: Proposal, stay: Stay) -> str:
    return f"{_place(proposal.draft.loc)}stays: {_short(stay.text)}: {stay.reason}"


def _place(loc: Loc | None) -> str:
    return f"{loc}: " if loc is not None else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= MAX_SHOWN_CHARS else line[: MAX_SHOWN_CHARS - 1] + "…")
