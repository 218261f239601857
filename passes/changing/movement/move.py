"""Moves text in a program's prompts: asks for proposals, checks them and applies them.

A proposal, whoever made it, may only reorder pieces, so that labels and delimiters stay with their
argument. Nothing crosses a generation, a turn or a state that the program reads, because a prompt
ends there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from sgc.ir.graph import Graph, Node
from sgc.passes.changing.movement.pieces import SLOT, Kind
from sgc.passes.changing.movement.prompts import Prompt, prompts
from sgc.passes.changing.movement.rule import plan
from sgc.passes.facts.appended import constant_text
from sgc.passes.facts.text_runs import with_runs

MAX_SHOWN_CHARS = 60

# Returns an order of a prompt's pieces, and the reason if nothing moves.
Proposer = Callable[[Prompt], tuple[tuple[int, ...], str]]


@dataclass(frozen=True, slots=True)
class Proposal:
    """An order of a prompt's pieces. reason: why nothing is moved."""

    prompt: Prompt
    order: tuple[int, ...]
    reason: str

    @property
    def led(self) -> list[str]:
        """The texts that move in front of the first argument."""
        kinds, texts = self.prompt.kinds, self.prompt.shown_pieces()
        before = set(leading(kinds, range(len(kinds))))
        return [texts[number] for number in leading(kinds, self.order) if number not in before]

    @property
    def n_chars(self) -> int:
        """The characters that the constant prefix gains."""
        return sum(map(len, self.led))


@dataclass(frozen=True, slots=True)
class Outcome:
    """graph: the same object if nothing moved; stays: the proposals that move nothing."""

    graph: Graph
    moved: tuple[Proposal, ...]
    stays: tuple[Proposal, ...]


def move(graph: Graph, proposer: Proposer = plan) -> Outcome:
    """Asks for a proposal for each prompt, and applies those that are legal."""
    found = [_checked(prompt, proposer) for prompt in prompts(graph)]
    moved = tuple(each for each in found if not each.reason)
    after = with_runs(graph, [(each.prompt.nodes, _parts(each)) for each in moved])
    return Outcome(after, moved, tuple(each for each in found if each.reason))


def _checked(prompt: Prompt, proposer: Proposer) -> Proposal:
    order, reason = ((), prompt.frozen) if prompt.frozen else proposer(prompt)
    return Proposal(prompt, order, reason or violation(prompt.kinds, order))


def violation(kinds: Sequence[Kind], order: Sequence[int]) -> str:
    """The first rule that an order of the pieces breaks, as a sentence; empty if it is legal."""
    counts = Counter(order)
    for number in sorted({*counts, *range(len(kinds))}):
        if not 0 <= number < len(kinds):
            return f"there is no piece {number}"
        if counts[number] != 1:
            return f"piece {number} is there {counts[number]} times"
    arguments = [number for number in order if kinds[number] is Kind.ARGUMENT]
    if arguments != sorted(arguments):
        return "arguments change places"
    if Kind.CUE in kinds and order[-1] != len(kinds) - 1:
        return f"piece {len(kinds) - 1} begins the reply and must stay last"
    before, after = leading(kinds, range(len(kinds))), leading(kinds, order)
    return "" if set(after) > set(before) else "no text comes in front of the first argument"


def leading(kinds: Sequence[Kind], order: Sequence[int]) -> list[int]:
    """The pieces in front of the first argument."""
    return list(takewhile(lambda number: kinds[number] is not Kind.ARGUMENT, order))


def _parts(proposal: Proposal) -> list[str | Node]:
    """The texts and arguments in the proposed order."""
    text = proposal.prompt.reordered(proposal.order)
    arguments = (node for node in proposal.prompt.nodes if constant_text(node) is None)
    parts = filter(None, re.split(f"({SLOT})", text))
    return [next(arguments) if part == SLOT else part for part in parts]


def lines(outcome: Outcome) -> Iterator[str]:
    """Lines on each move and its gain, and on each unchanged prompt and the reason."""
    for each in (*outcome.moved, *outcome.stays):
        loc = each.prompt.nodes[0].loc
        place = f"{loc}: " if loc is not None else ""
        if each.reason:
            behind = each.prompt.text.rpartition(SLOT)[2].strip() or each.prompt.shown()
            yield f"{place}stays: {_short(behind)}: {each.reason}"
        else:
            gained = f"{each.n_chars} characters more in the constant prefix"
            yield f"{place}moved in front of the arguments: {gained}"
            yield from (f"  {_short(text)}" for text in each.led)


def report(graph: Graph) -> list[str]:
    """Lines on what the rule would do to a program and the programs it calls."""
    return [line for each in (graph, *graph.called) for line in lines(move(each))]


def _short(text: str) -> str:
    line = " ".join(text[: 4 * MAX_SHOWN_CHARS].split())
    return repr(line if len(line) <= MAX_SHOWN_CHARS else line[: MAX_SHOWN_CHARS - 1] + "…")
