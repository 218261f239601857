"""Values of a program at most: texts and numbers (`lengths.py`), and streams.

A stream is kept as what was appended to it, so that what stands between two states is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sgc.predict.bounds.lengths import Bound
from sgc.predict.bounds.requests import Asked, Cost


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream's state, at most. prev: the state before, with `added` less; None where that is not
    known, or there is none.
    """

    tokens: float = 0.0
    n_messages: int = 0
    n_images: int = 0
    prev: Stream | None = None
    added: float = 0.0
    why: str = ""

    def plus(self, tokens: float, n_messages: int = 0, n_images: int = 0, why: str = "") -> Stream:
        return Stream(
            self.tokens + tokens,
            self.n_messages + n_messages,
            self.n_images + n_images,
            self,
            tokens,
            self.why or why,
        )

    def since(self, start: Stream) -> float:
        """What was appended after an earlier state."""
        total, step = 0.0, self
        while step is not start:
            if step.prev is None:
                return self.tokens
            total, step = total + step.added, step.prev
        return total

    def asked(self) -> Asked:
        return Asked(self.tokens, self.n_messages, self.n_images)


Value = Bound | Stream


def joined(one: Value, other: Value) -> Value:
    """A value that is one of two."""
    if one is other:
        return one
    if isinstance(one, Bound) and isinstance(other, Bound):
        return one.joined(other)
    assert isinstance(one, Stream)
    assert isinstance(other, Stream)
    return Stream(
        max(one.tokens, other.tokens),
        max(one.n_messages, other.n_messages),
        max(one.n_images, other.n_images),
        why=one.why or other.why,
    )


@dataclass(frozen=True, slots=True)
class Made:
    """What a node gives, in order, and costs; variables, text: of a stream that is published."""

    values: tuple[Value, ...] = ()
    cost: Cost = field(default_factory=Cost)
    variables: Mapping[str, Value] = field(default_factory=dict)
    text: Bound | None = None
