"""Bounds of a program's values: texts and numbers (`lengths.py`), and streams.

A stream is a list of what was appended to it, so that the length between two states is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sgc.ir.types import Kind, Type
from sgc.predict.bounds.cost import FREE, Cost
from sgc.predict.bounds.lengths import Bound
from sgc.predict.bounds.requests import Asked


@dataclass(frozen=True, slots=True)
class Stream:
    """The bound of a stream's state. prev: the state before, which has `added` tokens less; None if
    it is not known, or there is none.
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
        """The tokens appended since an earlier state."""
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
    """The bound of a value that is one of two."""
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


def covers(one: Value, other: Value) -> bool:
    """Whether the bound `one` includes all values of `other`."""
    if one is other:
        return True
    if isinstance(one, Bound) and isinstance(other, Bound):
        if one.known is not None or one.items is not None:
            return one.joined(other) is one
        return one.tokens >= other.tokens and one.length >= other.n_items
    assert isinstance(one, Stream)
    assert isinstance(other, Stream)
    return (
        one.prev is None  # else the text between two of its states may differ
        and one.tokens >= other.tokens
        and one.n_messages >= other.n_messages
        and one.n_images >= other.n_images
    )


def anything(type_: Type, why: str) -> Value:
    """The bound of a value of which only the type is known."""
    if type_.is_stream:
        return Stream(math.inf, why=why)
    return Bound(5.0) if type_.kind is Kind.BOOL else Bound(math.inf, why=why)


@dataclass(slots=True)
class Result:
    """Upper bounds of a program's cost and results, over all paths."""

    cost: Cost = FREE
    returned: Value = field(default_factory=Bound)
    variables: dict[str, Value] = field(default_factory=dict)
    text: Bound = field(default_factory=Bound)

    def take(self, made: Made) -> None:
        for name, value in made.variables.items():
            before = self.variables.get(name)
            self.variables[name] = value if before is None else joined(before, value)
        if made.text is not None:
            self.text = self.text.joined(made.text)


@dataclass(frozen=True, slots=True)
class Made:
    """A node's results, in order, and its cost; variables, text: of a published stream."""

    values: tuple[Value, ...] = ()
    cost: Cost = FREE
    variables: Mapping[str, Value] = field(default_factory=dict)
    text: Bound | None = None
