"""The part of one request that a step runs: positions of its sequence and of its choices."""

from __future__ import annotations

from dataclasses import dataclass

from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.requests.choices import Branch, ChoiceTrie
from sgc.runtime.engine.requests.request import Work

# Prompts are cut into chunks at multiples of this: attention over other lengths takes up to twice
# as long (torch's CPU kernel, bfloat16).
ALIGNED = 32


@dataclass(frozen=True, slots=True)
class BranchPart:
    """`n_tokens` positions of a choice branch, from `start`."""

    branch: Branch
    start: int
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Item:
    """The part of one request that a step runs: positions of its sequence, then of its choices.

    is_decode: the positions are one generated token, and then `guesses` (`lookup.py`): token ids,
    not counted by n_tokens.
    """

    work: Work
    n_tokens: int
    parts: tuple[BranchPart, ...] = ()
    is_decode: bool = False
    guesses: tuple[int, ...] = ()

    @property
    def n_positions(self) -> int:
        if not self.parts:
            return self.n_tokens + len(self.guesses)
        return self.n_tokens + sum(part.n_tokens for part in self.parts)


def take(work: Work, budget: int) -> Item:
    """As many positions of a request as the budget allows."""
    n_todo = work.n_todo
    n_tokens = min(n_todo, budget)
    if n_tokens < n_todo and n_tokens >= 2 * ALIGNED:
        n_tokens -= (work.n_computed + n_tokens) % ALIGNED
    if work.trie is None or n_tokens < n_todo:
        return Item(work, n_tokens)
    return Item(work, n_tokens, _parts(work.trie, budget - n_tokens))


def assign_pages(item: Item, pages: Ints) -> None:
    """Gives the item's positions their pages, in order."""
    at = item.n_tokens + len(item.guesses)
    item.work.pages.extend(pages[:at])
    for part in item.parts:
        part.branch.pages.extend(pages[at : at + part.n_tokens])
        at += part.n_tokens


def _parts(trie: ChoiceTrie, budget: int) -> tuple[BranchPart, ...]:
    parts: list[BranchPart] = []
    for branch in trie.pending():
        if budget == 0:
            break
        n = min(branch.n_todo, budget)
        parts.append(BranchPart(branch, branch.n_done, n))
        budget -= n
    return tuple(parts)
