"""The trie of a score request's choices: which positions to run after the prompt, and how to
assemble each choice's log-probabilities from them.

Path-compressed: a branch is a run of tokens that the same choices share. Each branch is a row of
the flat batch, whose pages are the prompt's, its ancestors' and its own. Every position that some
choice continues is run once. The last position of a choice that no other continues is not run: its
logits are not needed. If the choice is taken, a later request runs that position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.ints import NO_INTS, IntBuffer, Ints, common_prefix


class Branch:
    """depth: the index of its first token after the prompt."""

    __slots__ = ("children", "depth", "logprobs", "n_done", "pages", "parent", "tokens")

    def __init__(self, tokens: Ints, parent: Branch | None, depth: int) -> None:
        self.tokens = tokens
        self.parent = parent
        self.depth = depth
        self.children: dict[int, Branch] = {}  # by first token
        self.logprobs: npt.NDArray[np.float64] = np.zeros(len(tokens))
        self.pages = IntBuffer(NO_INTS)
        self.n_done = 0

    @property
    def n_to_run(self) -> int:
        """The number of positions to run: all, or all but the last of a leaf."""
        return len(self.tokens) if self.children else len(self.tokens) - 1

    @property
    def n_todo(self) -> int:
        return self.n_to_run - self.n_done

    def pages_before(self) -> list[Ints]:
        """The pages of its ancestors, outermost first."""
        runs: list[Ints] = []
        step = self.parent
        while step is not None:
            runs.append(step.pages.view)
            step = step.parent
        return runs[::-1]


@dataclass(frozen=True, slots=True)
class Target:
    """The logits of one position decide the log-probability of `branch`'s token `index`."""

    branch: Branch
    index: int


class ChoiceTrie:
    def __init__(self, choices: Sequence[Sequence[int]]) -> None:
        self._choices = [np.asarray(choice, np.int64) for choice in choices]
        self.branches: list[Branch] = []  # parents before their children
        self.roots = self._build(_distinct(self._choices))
        self.n_positions = sum(branch.n_to_run for branch in self.branches)
        self.n_done = 0

    @property
    def n_todo(self) -> int:
        return self.n_positions - self.n_done

    def pending(self) -> Iterator[Branch]:
        """Branches with positions to run, parents before children."""
        return (branch for branch in self.branches if branch.n_todo)

    def first_run(self) -> list[int]:
        """The first tokens after the prompt whose positions are run."""
        return [token for token, branch in self.roots.items() if branch.n_to_run]

    def first_targets(self) -> list[Target]:
        """The targets that the logits of the prompt's last position decide."""
        return [Target(branch, 0) for branch in self.roots.values()]

    @staticmethod
    def targets(branch: Branch, index: int) -> list[Target]:
        """The targets that the logits of the branch's position `index` decide."""
        if index + 1 < len(branch.tokens):
            return [Target(branch, index + 1)]
        return [Target(child, 0) for child in branch.children.values()]

    def logprobs(self) -> tuple[tuple[float, ...], ...]:
        """For each choice, in the given order, one log-probability per token."""
        return tuple(tuple(self._logprobs_of(choice).tolist()) for choice in self._choices)

    def all_pages(self) -> list[Ints]:
        return [branch.pages.view for branch in self.branches]

    def reset(self) -> Ints:
        """Forgets all results; returns the pages that the branches held."""
        pages = np.concatenate([NO_INTS, *(branch.pages.cut(0) for branch in self.branches)])
        for branch in self.branches:
            branch.n_done = 0
        self.n_done = 0
        return pages

    def _logprobs_of(self, choice: Ints) -> npt.NDArray[np.float64]:
        parts: list[npt.NDArray[np.float64]] = []
        level, at = self.roots, 0
        while at < len(choice):
            branch = level[int(choice[at])]
            parts.append(branch.logprobs)
            at += len(branch.tokens)
            level = branch.children
        return np.concatenate(parts)

    def _build(self, choices: list[Ints]) -> dict[int, Branch]:
        roots: dict[int, Branch] = {}
        stack: list[tuple[Branch | None, list[Ints]]] = [(None, choices)]
        while stack:
            parent, rests = stack.pop()
            for group in _by_first_token(rests):
                branch = self._add(parent, group)
                siblings = roots if parent is None else parent.children
                siblings[int(branch.tokens[0])] = branch
                n = len(branch.tokens)
                below = [rest[n:] for rest in group if len(rest) > n]
                if below:
                    stack.append((branch, below))
        return roots

    def _add(self, parent: Branch | None, group: list[Ints]) -> Branch:
        # The group is sorted, so its first and last member share the shortest prefix; a choice that
        # ends inside the run comes first, and ends the branch there.
        n = common_prefix(group[0], group[-1])
        depth = 0 if parent is None else parent.depth + len(parent.tokens)
        branch = Branch(group[0][:n], parent, depth)
        self.branches.append(branch)
        return branch


def _distinct(choices: list[Ints]) -> list[Ints]:
    return [np.asarray(c, np.int64) for c in sorted({tuple(choice.tolist()) for choice in choices})]


def _by_first_token(rests: list[Ints]) -> list[list[Ints]]:
    groups: dict[int, list[Ints]] = {}
    for rest in rests:
        groups.setdefault(int(rest[0]), []).append(rest)
    return list(groups.values())
