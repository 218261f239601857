"""Images in a prompt, as the step process has them: their token ids, and their positions.

An image is a run of tokens, or several, whose ids are drawn from the hash of what the vision
encoder gets. They are negative, so they are no ids of the vocabulary: keys made of tokens (in the
tree, on disk) distinguish images by them, and the model takes the encoder's outputs in their place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.ints import Ints


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Image:
    """arrays: the input of the vision encoder. digest: of the arrays. n_tokens: the tokens of the
    prompt that stand for its outputs. grid: their times, heights and widths, if positions depend on
    these."""

    digest: bytes
    arrays: Mapping[str, npt.NDArray[Any]]
    n_tokens: int
    grid: tuple[int, int, int] | None = None

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def ids(self) -> Ints:
        """[n_tokens], each below zero."""
        drawn = hashlib.shake_256(self.digest).digest(8 * self.n_tokens)
        return np.frombuffer(drawn, np.int64) | np.int64(-(2**63))


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """An image, and the runs of the prompt's tokens that stand for it: (start, length) of each."""

    image: Image
    runs: tuple[tuple[int, int], ...]

    @property
    def end(self) -> int:
        start, length = self.runs[-1]
        return start + length

    def is_in(self, start: int, end: int) -> bool:
        """Whether one of these tokens stands for it."""
        return any(first < end and start < first + n for first, n in self.runs)


def digest_of(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    found = hashlib.sha256(b"sgc image 1")
    for name, array in sorted(arrays.items()):
        head = f"{name} {array.dtype} {array.shape} "
        found.update(head.encode())
        found.update(np.ascontiguousarray(array).data)
    return found.digest()


def with_ids(tokens: Ints, images: Sequence[Placed]) -> Ints:
    """The prompt's tokens, with the images' ids in their places."""
    tokens = tokens.copy()
    for placed in images:
        ids = placed.image.ids
        for start, n in placed.runs:
            tokens[start : start + n], ids = ids[:n], ids[n:]
    return tokens


def positions_of(n_tokens: int, images: Sequence[Placed]) -> Ints:
    """Where each token of a prompt is in time, height and width: [3, n_tokens] (M-RoPE).

    An image begins where the text before it ends, and text goes on after its largest position.
    """
    found = np.empty((3, n_tokens), np.int64)
    at = following = 0
    for placed in images:
        (start, n), *_ = placed.runs
        assert placed.image.grid is not None
        grid = placed.image.grid
        found[:, at:start] = np.arange(following, following + start - at)
        following += start - at
        found[:, start : start + n] = following + np.indices(grid).reshape(3, -1)
        following += max(grid)
        at = start + n
    found[:, at:] = np.arange(following, following + n_tokens - at)
    return found
