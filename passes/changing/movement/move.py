"""Moves text in a program's prompts: asks for proposals, checks them and applies them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sgc.ir.graph import Graph
from sgc.passes.changing.movement.check import led, violation
from sgc.passes.changing.movement.pieces import SLOT
from sgc.passes.changing.movement.prompts import Prompt, prompts, shown
from sgc.passes.changing.movement.rebuild import apply, reordered
from sgc.passes.changing.movement.rule import plan

MAX_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Proposal:
    """An order of a prompt's pieces. reason: why nothing is moved."""

    prompt: Prompt
    order: tuple[int, ...]
    reason: str = ""

    @property
    def is_move(self) -> bool:
        return not self.reason and list(self.order) != sorted(self.order)

    @property
    def led(self) -> list[str]:
        """The texts that move in front of the first argument."""
        kinds, texts = self.prompt.kinds, self.prompt.shown
        before = set(led(kinds, sorted(self.order)))
        return [texts[i] for i in led(kinds, self.order) if i not in before]

    @property
    def n_chars(self) -> int:
        """The characters that the constant prefix gains."""
        return sum(map(len, self.led))

    @property
    def before(self) -> str:
        """The prompt as it is, arguments as `{name}`."""
        return shown(self.prompt.text, self.prompt.names)

    @property
    def after(self) -> str:
        """The prompt in the proposed order."""
        return shown(reordered(self.prompt, self.order), self.prompt.names)


Proposer = Callable[[Prompt], Proposal]


def by_rule(prompt: Prompt) -> Proposal:
    """The proposal of the rule, which keeps the prompt's meaning."""
    return Proposal(prompt, *plan(prompt))


@dataclass(frozen=True, slots=True)
class Outcome:
    """graph: the same object if nothing moved; stays: the proposals that move nothing."""

    graph: Graph
    moved: tuple[Proposal, ...]
    stays: tuple[Proposal, ...]


def move(graph: Graph, proposer: Proposer = by_rule) -> Outcome:
    """Asks for a proposal for each prompt, and applies those that are legal."""
    found = [_checked(prompt, proposer) for prompt in prompts(graph)]
    moved = tuple(each for each in found if each.is_move)
    after = apply(graph, [(each.prompt, each.order) for each in moved])
    return Outcome(after, moved, tuple(each for each in found if not each.is_move))


def _checked(prompt: Prompt, proposer: Proposer) -> Proposal:
    if prompt.frozen:
        return Proposal(prompt, (), prompt.frozen)
    proposal = proposer(prompt)
    reason = proposal.reason or violation(prompt.kinds, proposal.order)
    return replace(proposal, reason=reason)


def lines(outcome: Outcome) -> Iterator[str]:
    """Lines on each move and its gain, and on each unchanged prompt and the reason."""
    for each in outcome.moved:
        gained = f"{each.n_chars} characters more in the constant prefix"
        yield f"{_place(each)}moved in front of the arguments: {gained}"
        yield from (f"  {_short(text)}" for text in each.led)
    for each in outcome.stays:
        behind = each.prompt.text.rpartition(SLOT)[2].strip() or each.before
        yield f"{_place(each)}stays: {_short(behind)}: {each.reason}"


def report(graph: Graph) -> list[str]:
    """Lines on what the rule would do to a program and those it calls."""
    return [line for each in (graph, *graph.called) for line in lines(move(each))]


def _place(proposal: Proposal) -> str:
    return f"{proposal.prompt.loc}: " if proposal.prompt.loc is not None else ""


def _short(text: str) -> str:
    line = " ".join(text[: 4 * MAX_SHOWN_CHARS].split())
    return repr(line if len(line) <= MAX_SHOWN_CHARS else line[: MAX_SHOWN_CHARS - 1] + "…")
