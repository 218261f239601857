"""Builds the flat batch from the scheduler's items, and gives its logits back to the requests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.images.image import Image
from sgc.runtime.engine.ints import NO_INTS, Ints
from sgc.runtime.engine.model.forward import FlatBatch, Logits, Row, flatten
from sgc.runtime.engine.requests.choices import Target
from sgc.runtime.engine.requests.finite import NOT_FINITE, NotFinite
from sgc.runtime.engine.requests.request import Generate, Work
from sgc.runtime.engine.scheduling.items import BranchPart, Item
from sgc.runtime.engine.step.faults import Faults
from sgc.runtime.engine.step.state_rows import from_prompt, with_states

FIRST: Ints = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class StepBatch:
    """sampled: the requests that get a token, with their row of the logits. targets: rows of the
    logits with the choice tokens they decide. logged: rows of the logits with the index of the
    token whose log-probability they decide. guesses: the next tokens that a request guesses; the
    logits after each are in the rows behind its own. n_idle: rows of requests that have ended since
    the batch began to run. hidden: rows of requests for embeddings; pooled: the request of each,
    with the number of its hidden states. images: those that tokens of the batch stand for."""

    flat: FlatBatch
    sampled: tuple[tuple[Work, int], ...]
    targets: tuple[tuple[int, Work, Target], ...]
    logged: tuple[tuple[int, Work, int], ...]
    guesses: Mapping[Work, tuple[int, ...]]
    n_idle: int = 0
    hidden: FlatBatch | None = None
    pooled: tuple[tuple[Work, int], ...] = ()
    images: tuple[tuple[Work, Image], ...] = ()

    @property
    def n_tokens(self) -> int:
        return self.flat.n_tokens + (0 if self.hidden is None else self.hidden.n_tokens)

    @property
    def n_guesses(self) -> int:
        return sum(map(len, self.guesses.values()))


class _Builder:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.sampled: list[tuple[Work, int]] = []
        self.targets: list[tuple[int, Work, Target]] = []
        self.logged: list[tuple[int, Work, int]] = []
        self.guesses: dict[Work, tuple[int, ...]] = {}
        self.n_logits = 0
        self.hidden_rows: list[Row] = []
        self.images: list[tuple[Work, Image]] = []
        self.pooled: list[tuple[Work, int]] = []

    def add_sequence(self, item: Item) -> None:
        """Adds the next positions of prompt or generation, with logits if they reach the end."""
        work, n = item.work, item.n_tokens
        if item.is_decode:
            self._add_decode(work, item.guesses)
            return
        end = work.n_computed + n
        if work.pooled is not None:
            self._add_pooled(work, work.pooled.wanted(work.n_computed, n), end)
            return
        is_whole = end == len(work.tokens) and work.wants_logits
        logits_at = NO_INTS if not is_whole else FIRST if n == 1 else np.array([n - 1], np.int64)
        if work.decoding.logprobs is not None:
            logits_at = np.concatenate([self._log(work, end), logits_at])
        tokens, adapter = work.tokens.view[work.n_computed : end], work.request.adapter
        places = work.places_of(work.n_computed, end)
        row = Row(tokens, work.n_computed, work.pages.view, logits_at, work.shift, adapter, places)
        self._add(self.rows, work, row)
        self._add_images(work, end)
        if not is_whole:
            return
        if isinstance(work.request.kind, Generate):
            self.sampled.append((work, self.n_logits))
        elif work.trie is not None:
            self.targets += [(self.n_logits, work, t) for t in work.trie.first_targets()]
        self.n_logits += 1

    def _add_images(self, work: Work, end: int) -> None:
        for placed in work.request.images:
            if placed.is_in(work.n_computed, end):
                self.images.append((work, placed.image))

    def _add_pooled(self, work: Work, wanted: Ints, end: int) -> None:
        tokens, adapter = work.tokens.view[work.n_computed : end], work.request.adapter
        row = Row(tokens, work.n_computed, work.pages.view, wanted, adapter=adapter)
        self._add(self.hidden_rows, work, row)
        self.pooled.append((work, len(wanted)))

    def _log(self, work: Work, end: int) -> Ints:
        """The row's positions that decide log-probabilities of existing tokens."""
        assert work.decoding.logprobs is not None
        start, last = work.n_computed, min(end, len(work.tokens) - 1)
        wanted = [i for i in range(start, last) if work.decoding.logprobs.wants(i + 1)]
        self.logged += [(self.n_logits + k, work, i + 1) for k, i in enumerate(wanted)]
        self.n_logits += len(wanted)
        return np.array(wanted, np.int64) - start

    def _add_decode(self, work: Work, guesses: tuple[int, ...]) -> None:
        pages, tokens, logits_at = work.pages.view, work.tokens.last, FIRST
        if guesses:
            tokens = np.concatenate([tokens, np.array(guesses, np.int64)])
            logits_at = np.arange(len(tokens))
            self.guesses[work] = guesses
        start, adapter = len(pages) - len(tokens), work.request.adapter
        row = Row(tokens, start, pages, logits_at, work.shift, adapter)
        self._add(self.rows, work, row)
        self.sampled.append((work, self.n_logits))
        self.n_logits += len(tokens)

    def add_branch(self, work: Work, part: BranchPart) -> None:
        """Adds positions of choices, with logits wherever a token follows."""
        assert work.trie is not None
        branch, end = part.branch, part.start + part.n_tokens
        wanted: list[int] = []
        for index in range(part.start, end):
            targets = work.trie.targets(branch, index)
            if targets:
                self.targets += [(self.n_logits + len(wanted), work, t) for t in targets]
                wanted.append(index - part.start)
        pages = np.concatenate([work.pages.view, *branch.pages_before(), branch.pages.view])
        start = work.n_prompt + branch.depth + part.start
        logits_at = np.array(wanted, np.int64)
        tokens, adapter = branch.tokens[part.start : end], work.request.adapter
        row = Row(tokens, start, pages, logits_at, work.shift, adapter)
        if work.recurrence is not None:
            row = from_prompt(row, branch, work.n_prompt, work.recurrence)
        self.rows.append(row)
        self.n_logits += len(wanted)

    @staticmethod
    def _add(rows: list[Row], work: Work, row: Row) -> None:
        if work.recurrence is None:
            rows.append(row)
        else:
            rows += with_states(row, work.recurrence)


def build(items: Sequence[Item]) -> StepBatch:
    builder = _Builder()
    # Rows of one adapter lie together, so that a product computes what it adds to them at once.
    for item in sorted(items, key=lambda item: item.work.request.adapter):
        if item.n_tokens:
            builder.add_sequence(item)
        for part in item.parts:
            builder.add_branch(item.work, part)
    return StepBatch(
        flatten(builder.rows),
        tuple(builder.sampled),
        tuple(builder.targets),
        tuple(builder.logged),
        builder.guesses,
        hidden=flatten(builder.hidden_rows) if builder.hidden_rows else None,
        pooled=tuple(builder.pooled),
        images=tuple(builder.images),
    )


def pool_hidden(batch: StepBatch, hidden: npt.NDArray[np.float32], faults: Faults) -> None:
    """Gives each request its hidden states: [n_hidden, width] of all, in order."""
    at = 0
    for work, n in batch.pooled:
        assert work.pooled is not None
        if n:
            try:
                work.pooled.add(work.n_computed, hidden[at : at + n])
            except NotFinite as error:
                faults.note(work, error)
        at += n


def write_logprobs(batch: StepBatch, logits: Logits, faults: Faults) -> None:
    """Fills in the choices' log-probabilities (natural, of the model's own distribution)."""
    targets = [(at, work, target) for at, work, target in batch.targets if work not in faults]
    if not targets:
        return
    tokens = [int(target.branch.tokens[target.index]) for _, _, target in targets]
    found = logits.log_probabilities([at for at, _, _ in targets], tokens)
    for (_, work, target), value in zip(targets, found, strict=True):
        if math.isnan(value):
            faults.note(work, NotFinite(NOT_FINITE))
        else:
            target.branch.logprobs[target.index] = value


def log_tokens(
    batch: StepBatch,
    logits: Logits,
    drawn: Mapping[Work, Sequence[int] | None],
    faults: Faults,
) -> None:
    """Records the requested log-probabilities, of existing tokens and of those just drawn."""
    there = [(at, work, index, work.tokens.at(index)) for at, work, index in batch.logged]
    new = [
        (at, work, len(work.tokens), tokens[0])
        for work, at in batch.sampled
        if work.decoding.logprobs is not None and (tokens := drawn.get(work)) is not None
    ]
    asked = [*there, *new]
    rows = logits.rows([at for at, _, _, _ in asked])
    for (_, work, index, token), row in zip(asked, rows, strict=True):
        assert work.decoding.logprobs is not None
        if work in faults:
            continue
        try:
            work.decoding.logprobs.note(index, token, row)
        except Exception as error:
            faults.note(work, error)
