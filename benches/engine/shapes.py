"""The token workloads W1 to W4: chats whose turns are token ids.

A workload is a list of chats; a chat is a list of turns, each with new prompt ids and the number of
ids to generate. A turn's prompt is the whole history of the chat, generated ids included. Each
repetition has new chats, from a seed, so that no cache holds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

FIRST_ID = 300  # smaller ids are the end token and single bytes; see models.py


@dataclass(frozen=True, slots=True)
class Shape:
    n_chats: int
    n_turns: int
    n_shared: int
    n_own: int
    n_out: int

    @property
    def n_generated(self) -> int:
        return self.n_chats * self.n_turns * self.n_out

    def made_smaller(self, divisor: int) -> Shape:
        """The shape with fewer chats, to try a driver."""
        chats = max(1, self.n_chats // divisor)
        return Shape(chats, self.n_turns, self.n_shared, self.n_own, self.n_out)


SHAPES = {
    "W1": Shape(n_chats=64, n_turns=1, n_shared=512, n_own=64, n_out=16),
    "W2": Shape(n_chats=16, n_turns=1, n_shared=0, n_own=256, n_out=64),
    "W3": Shape(n_chats=1, n_turns=1, n_shared=0, n_own=32, n_out=128),
    "W4": Shape(n_chats=8, n_turns=4, n_shared=0, n_own=64, n_out=64),
}


def chats(shape: Shape, vocab_size: int, seed: list[int]) -> list[list[dict[str, Any]]]:
    """Chats as lists of {"ids": new prompt ids, "n_out": the number of ids to generate}."""
    draw = np.random.default_rng(seed)
    shared = draw.integers(FIRST_ID, vocab_size, shape.n_shared).tolist()
    own = draw.integers(FIRST_ID, vocab_size, (shape.n_chats, shape.n_turns, shape.n_own)).tolist()
    made = [[{"ids": ids, "n_out": shape.n_out} for ids in turns] for turns in own]
    for turns in made:
        turns[0]["ids"] = shared + turns[0]["ids"]
    return made
