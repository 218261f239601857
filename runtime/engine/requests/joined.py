"""Joined contexts: parts of a prompt that are encoded side by side (parallel context windows).

Each part of a join attends to the tokens before the join and to itself; the tokens after the join
attend to all parts. Every part begins at the position of the join, and the tokens after it continue
after the longest part. So a part has the same K and V as in another sequence: the tokens before the
join, followed by the part. Parts may contain joins.

Sources: SGLang's `concate_and_append`; Ratner et al., "Parallel Context Windows" (2023).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Part:
    """Tokens up to `end`, with the joins in them."""

    end: int
    joins: tuple[Join, ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Parts that follow each other from `start` on."""

    start: int
    parts: tuple[Part, ...]

    @property
    def end(self) -> int:
        return self.parts[-1].end

    def spans(self) -> Iterator[tuple[int, Part]]:
        """Each part with its first token."""
        start = self.start
        for part in self.parts:
            yield start, part
            start = part.end


Joins = tuple[Join, ...]


def shift_of(joins: Joins) -> int:
    """By how much the position of a token after the joins is below its index."""
    return sum(
        (join.end - join.start) - max(_extent(start, part) for start, part in join.spans())
        for join in joins
    )


def _extent(start: int, part: Part) -> int:
    return part.end - start - shift_of(part.joins)


def moved(join: Join, by: int) -> Join:
    """The join, moved by so many tokens toward the beginning."""
    parts = (
        Part(part.end - by, tuple(moved(each, by) for each in part.joins)) for part in join.parts
    )
    return Join(join.start - by, tuple(parts))


def without_last(joins: Joins, n_tokens: int) -> Joins:
    """The joins, with the last of `n_tokens` tokens outside of them: it is run again for its
    logits, and sees all parts."""
    if not joins or joins[-1].end < n_tokens:
        return joins
    *parts, last = joins[-1].parts
    start = parts[-1].end if parts else joins[-1].start
    if last.end - 1 > start:
        parts.append(Part(last.end - 1, without_last(last.joins, n_tokens)))
    return joins[:-1] + ((replace(joins[-1], parts=tuple(parts)),) if parts else ())


def namespace_of(namespace: bytes, joins: Joins) -> bytes:
    """The namespace in which sequences with these joins are cached, since no other text has their K
    and V. It is longer than any that a client can name."""
    if not joins:
        return namespace
    return b"joined " + hashlib.sha512(repr(joins).encode()).digest() + namespace


def problem_with(joins: Joins, start: int, end: int) -> str:
    """What is wrong with the joins of tokens `start` to `end`; empty if nothing is."""
    for join in joins:
        if not join.parts:
            return "a join has no parts"
        if not start <= join.start <= join.end <= end:
            return f"a join of tokens {join.start} to {join.end} is not within {start} to {end}"
        for first, part in join.spans():
            if part.end <= first:
                return f"a part of a join ends at token {part.end} and begins at {first}"
            if problem := problem_with(part.joins, first, part.end):
                return problem
        start = join.end
    return ""


def n_held(n_tokens: int, joins: Joins) -> int:
    """The most pages that gathering the joins of a prompt takes. Each join, also one within a part,
    is gathered once: its parts are locked, with what comes before them, and then copied."""
    return n_tokens + _n_gathered(joins)


def _n_gathered(joins: Joins) -> int:
    return sum(2 * join.end + sum(_n_gathered(part.joins) for part in join.parts) for join in joins)
