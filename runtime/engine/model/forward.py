"""The interface of a model: one forward pass over a flat ragged batch.

Two implementations: `runner.py` and `fake_model.py`. The engine sees neither layers nor tensors;
the implementation owns the KV pool, and the engine addresses it by page ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.cache.states import EMPTY, SCRAP
from sgc.runtime.engine.images.image import Image
from sgc.runtime.engine.ints import NO_INTS, Ints
from sgc.runtime.engine.requests.draws import Draw


@dataclass(frozen=True, slots=True)
class Row:
    """A run of new tokens of one sequence.

    pages: [start + n_tokens], one for every token of the sequence up to the last new one; the
    new tokens' K/V go to the last n_tokens of them. logits_at: [n_logits], the new tokens whose
    logits are wanted, counted from the row's first. shift: by how much a new token's position is
    below its index in the sequence (`requests/joined.py`). adapter: from 1
    on; 0: the model's own weights. places: [3, n_tokens], the new tokens' positions where images
    give them three (`images/image.py`). reads, writes: the slots with the recurrent layers' states
    before its first new token and after its last (`cache/states.py`).
    """

    tokens: Ints
    start: int
    pages: Ints
    logits_at: Ints
    shift: int = 0
    adapter: int = 0
    places: Ints | None = None
    reads: int = EMPTY
    writes: int = SCRAP


@dataclass(frozen=True, slots=True)
class FlatBatch:
    """The rows of a batch, concatenated.

    token_ids, positions, slots: [n_tokens]; slots are the pages of the new tokens. row_starts:
    [n_rows + 1] into the tokens. pages: all rows' pages; page_starts: [n_rows + 1]. logit_index:
    [n_logits] into the tokens. A row may read pages that an earlier row of the same batch writes:
    in each layer all rows are written before any attends. adapters: [n_rows], of each; None if
    the batch has none. Ids below zero are of images. places: [3, n_tokens], where a row has three
    positions a token. states: [2, n_rows], the slots that each reads and writes. A row may read
    states that an earlier row of the same batch writes.
    """

    token_ids: Ints
    positions: Ints
    slots: Ints
    row_starts: Ints
    pages: Ints
    page_starts: Ints
    logit_index: Ints
    adapters: Ints | None = None
    places: Ints | None = None
    states: Ints | None = None

    @property
    def n_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def n_rows(self) -> int:
        return len(self.row_starts) - 1

    @property
    def token_adapters(self) -> Ints | None:
        """[n_tokens], the adapter of each; None if there is none in the batch."""
        if self.adapters is None:
            return None
        return np.repeat(self.adapters, np.diff(self.row_starts))


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Means over `n_tokens` positions. cross_entropy: of the next token, nats; own_cross_entropy:
    the same in the model's own numbers. divergence: from its own probabilities (Kullback-Leibler),
    nats. equal_share: of positions whose likeliest token is the same."""

    n_tokens: int
    cross_entropy: float
    own_cross_entropy: float
    divergence: float
    equal_share: float


class Logits(Protocol):
    """[n_logits, vocab] numbers, where the model left them, valid until its next step. at: the
    indices of one or more rows, in any order."""

    def rows(self, at: Sequence[int]) -> Iterator[npt.NDArray[np.float32]]:
        """Each row on the host: [vocab]."""
        ...

    def draw(self, at: Sequence[int], draws: Sequence[Draw]) -> list[int]:
        """A token from each row. Raises `NotFinite` if a row has no token to draw."""
        ...

    def log_probabilities(self, at: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """The natural log-probability of a token in each row; NaN for a row that is not finite."""
        ...


class Drawn(Protocol):
    """Tokens that are drawn on the logits' device."""

    def wait(self) -> list[int]:
        """Waits for the tokens; -1 for a row that has none to draw."""
        ...


class AsyncLogits(Logits, Protocol):
    """Logits on a device that computes asynchronously."""

    def begin_draw(self, at: Sequence[int], draws: Sequence[Draw]) -> Drawn:
        """As `draw`, but waits for nothing."""
        ...


class Forward(Protocol):
    def run(self, batch: FlatBatch) -> npt.NDArray[np.float32] | Logits:
        """Writes the new tokens' K/V and returns logits: [n_logits, vocab]."""
        ...


class Embedder(Forward, Protocol):
    """A model whose hidden states can be had. hidden_size: their width."""

    hidden_size: int

    def hidden(self, batch: FlatBatch) -> npt.NDArray[np.float32]:
        """As `run`, but after the last norm, as the head gets them: [n_logits, hidden_size]."""
        ...


class Sees(Forward, Protocol):
    """A model that takes images."""

    def see(self, image: Image) -> bool:
        """Makes the model's input for the image ready for the next `run`; returns whether the image
        had to be encoded."""
        ...

    def forget_seen(self) -> None:
        """The next `run` needs none of the images before it."""
        ...

    @property
    def encoded_bytes(self) -> int:
        """The bytes of the images' outputs that are kept."""
        ...


class AsyncForward(Forward, Protocol):
    def run_after(self, batch: FlatBatch, drawn: Drawn, rows: Sequence[int]) -> AsyncLogits:
        """As `run`, where the token of each of the batch's rows is one that was just drawn, of the
        row with this number; the batch's own tokens mean nothing. Waits for nothing."""
        ...


def flatten(rows: Sequence[Row]) -> FlatBatch:
    n_tokens = np.array([len(row.tokens) for row in rows], np.int64)
    row_starts = _starts(n_tokens)
    page_starts = _starts([len(row.pages) for row in rows])
    pages = _join([row.pages for row in rows])
    # Each new token's index among its row's new tokens.
    within = np.arange(row_starts[-1]) - np.repeat(row_starts[:-1], n_tokens)
    indices = within + np.repeat(np.array([row.start for row in rows], np.int64), n_tokens)
    shifts = [row.shift for row in rows]
    positions = indices - np.repeat(shifts, n_tokens) if any(shifts) else indices
    n_logits = [len(row.logits_at) for row in rows]
    adapters = [row.adapter for row in rows]
    return FlatBatch(
        token_ids=_join([row.tokens for row in rows]),
        positions=positions,
        slots=pages[indices + np.repeat(page_starts[:-1], n_tokens)],
        row_starts=row_starts,
        pages=pages,
        page_starts=page_starts,
        logit_index=_join([row.logits_at for row in rows]) + np.repeat(row_starts[:-1], n_logits),
        adapters=np.array(adapters) if any(adapters) else None,
        places=_places(rows, positions, row_starts),
        states=_states(rows),
    )


def _states(rows: Sequence[Row]) -> Ints | None:
    """None where no row's states are kept."""
    if all(row.reads == EMPTY and row.writes == SCRAP for row in rows):
        return None
    return np.array([[row.reads for row in rows], [row.writes for row in rows]], np.int64)


def _places(rows: Sequence[Row], positions: Ints, row_starts: Ints) -> Ints | None:
    if all(row.places is None for row in rows):
        return None
    found = np.tile(positions, (3, 1))
    for i, row in enumerate(rows):
        if row.places is not None:
            found[:, row_starts[i] : row_starts[i + 1]] = row.places
    return found


def _starts(lengths: Sequence[int] | Ints) -> Ints:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _join(parts: list[Ints]) -> Ints:
    return np.concatenate([NO_INTS, *parts])
