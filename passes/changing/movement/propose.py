"""From a program to what is moved, whoever proposes: drafts, proposals, the check, the outcome.

A proposer is given a draft, a stream's parts under their numbers, and gives a proposal. Only legal
ones are carried out; the others are kept with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sgc.ir.graph import Graph, Loc
from sgc.passes.changing.movement.check import Part, breach
from sgc.passes.changing.movement.pieces import Kind, Piece, cut
from sgc.passes.changing.movement.rebuild import Rewrite, apply
from sgc.passes.changing.movement.rules import plan
from sgc.passes.changing.movement.streams import Passage, Segment, passages

MAX_SHOWN_CHARS = 60
MAX_CHARS = 50_000  # of a stream's text; longer ones are left alone


@dataclass(frozen=True)
class Draft:
    """A stream whose pieces may be put in another order.

    target: which part of the passage is the segment that may change: the first one with an
    argument, all before it being constant.
    """

    passage: Passage
    target: int

    @property
    def segment(self) -> Segment:
        part = self.passage.parts[self.target]
        assert isinstance(part, Segment)
        return part

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        return cut(self.segment)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Everything that is numbered, from the stream's beginning."""
        return tuple(part for number in range(len(self.passage.parts)) for part in self._of(number))

    @cached_property
    def first(self) -> int:
        """The number of the target's first piece."""
        return sum(len(self._of(number)) for number in range(self.target))

    def _of(self, number: int) -> tuple[Part, ...]:
        part = self.passage.parts[number]
        if isinstance(part, Segment):
            pieces = self.pieces if number == self.target else cut(part)
            return tuple(Part(p.kind, part.shown(p.start, p.end)) for p in pieces)
        return (Part(None, part.text),)

    @property
    def loc(self) -> Loc | None:
        return self.segment.nodes[0].loc

    def order_of(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """An order of all parts from one of the target's pieces."""
        end = self.first + len(self.pieces)
        moved = tuple(self.first + i for i in inner)
        return (*range(self.first), *moved, *range(end, len(self.parts)))


@dataclass(frozen=True, slots=True)
class Stay:
    """Text that was not proposed, and why."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """An order of a draft's parts. reason: the proposer's word for it; stays: what it refused."""

    draft: Draft
    order: tuple[int, ...]
    reason: str = ""
    stays: tuple[Stay, ...] = ()

    @property
    def is_move(self) -> bool:
        return self.order != tuple(range(len(self.draft.parts)))

    @property
    def led(self) -> tuple[str, ...]:
        """The texts that stand in front of the first argument, and did not."""
        old, new = (_led(self.draft.parts, o) for o in (range(len(self.order)), self.order))
        return tuple(self.draft.parts[i].text for i in new if i not in set(old))

    @property
    def gained_chars(self) -> int:
        return sum(map(len, self.led))


def _led(parts: tuple[Part, ...], order: range | tuple[int, ...]) -> list[int]:
    found: list[int] = []
    for number in order:
        if parts[number].kind is Kind.ARGUMENT:
            break
        found.append(number)
    return found


@dataclass(frozen=True, slots=True)
class Rejected:
    """A proposal that is not carried out, and why."""

    proposal: Proposal
    reason: str


# Gives what it proposes, or why it can propose nothing.
Proposer = Callable[[Draft], Proposal | Rejected]


@dataclass(frozen=True, slots=True)
class Outcome:
    """graph: the same object where nothing moved; untouched: streams that nothing may move in."""

    graph: Graph
    moved: tuple[Proposal, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    kept: tuple[Proposal, ...] = ()
    untouched: tuple[Stay, ...] = field(default=())


def by_rules(draft: Draft) -> Proposal:
    """The rule-based proposer."""
    found = plan(draft.segment, draft.pieces)
    show = draft.segment.shown
    stays = [Stay(show(r.piece.start, r.piece.end), r.reason) for r in found.refusals]
    stays += [Stay(show(0, len(draft.segment.text)), found.reason)] if found.reason else []
    return Proposal(draft, draft.order_of(found.order), "the rules know it", tuple(stays))


def move(graph: Graph, proposer: Proposer = by_rules) -> Outcome:
    """Asks for a proposal for each stream, and carries out those that are legal."""
    if any(node.op == "deopt" for node in graph.nodes()):
        stay = Stay(graph.name, "it may go on in its source, which asks with the text as it was")
        return Outcome(graph, untouched=(stay,))
    moved: list[Proposal] = []
    rejected: list[Rejected] = []
    kept: list[Proposal] = []
    untouched: list[Stay] = []
    for found in drafts(graph):
        if isinstance(found, Stay):
            untouched.append(found)
            continue
        proposal = proposer(found)
        if isinstance(proposal, Rejected):
            rejected.append(proposal)
        elif reason := reject(proposal):
            rejected.append(Rejected(proposal, reason))
        else:
            (moved if proposal.is_move else kept).append(proposal)
    after = apply(graph, [_rewrite(proposal) for proposal in moved])
    return Outcome(after, tuple(moved), tuple(rejected), tuple(kept), tuple(untouched))


def reject(proposal: Proposal) -> str:
    """Why a proposal is not carried out; "" if it is legal."""
    draft = proposal.draft
    reason = breach(draft.parts, proposal.order)
    if reason:
        return reason
    end = draft.first + len(draft.pieces)
    others = [i for i in proposal.order if not draft.first <= i < end]
    if others != sorted(others):
        return "it changes what lies before or behind the first argument's text, and gains nothing"
    if proposal.is_move and not proposal.led:
        return "no text comes in front of the first argument"
    return ""


def _rewrite(proposal: Proposal) -> Rewrite:
    draft = proposal.draft
    end = draft.first + len(draft.pieces)
    inner = tuple(i - draft.first for i in proposal.order if draft.first <= i < end)
    return Rewrite(draft.passage.block, draft.segment, draft.pieces, inner)


def drafts(graph: Graph) -> Iterator[Draft | Stay]:
    """The streams in which something could move; of those in which nothing may, the reason."""
    for passage in passages(graph):
        target = _target(passage)
        if target is None:
            continue
        draft = Draft(passage, target)
        size = sum(len(part.text) for part in passage.parts)
        if size > MAX_CHARS:
            yield Stay(
                draft.segment.shown(0, MAX_SHOWN_CHARS), f"it has over {MAX_CHARS} characters"
            )
            continue
        pieces = [piece.kind for piece in draft.pieces]
        if Kind.TEXT not in pieces[pieces.index(Kind.ARGUMENT) :]:
            continue
        reason = _frozen(draft.segment)
        shown = draft.segment.shown(0, len(draft.segment.text))
        yield Stay(shown, reason) if reason else draft


def _target(passage: Passage) -> int | None:
    for number, segment in passage.segments:
        if segment.slots:
            return number if segment.is_shared else None
    return None


def _frozen(segment: Segment) -> str:
    if segment.is_read:
        return "the program reads this text back"
    if segment.role == "assistant":
        return "it is the beginning of the reply"
    return ""
