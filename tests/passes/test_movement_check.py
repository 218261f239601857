"""The checker accepts exactly the legal orders, and says what is wrong with the others."""

from __future__ import annotations

import itertools
import random

import pytest

from sgc.passes.changing.movement.check import Part, breach
from sgc.passes.changing.movement.pieces import Kind

T, A, C = (Part(kind, kind.value) for kind in (Kind.TEXT, Kind.ARGUMENT, Kind.CUE))
BARRIER = Part(None, "gen x")


def legal_orders(parts):
    """All of them, built from the rules: what lies between two barriers is arranged by itself."""
    regions, held = [], []
    for number, part in enumerate(parts):
        if part.kind is None:
            regions += [held, [number]]
            held = []
        else:
            held.append(number)
    regions.append(held)
    options = [
        [order for order in itertools.permutations(r) if _fits(parts, order)] for r in regions
    ]
    return {tuple(itertools.chain(*choice)) for choice in itertools.product(*options)}


def _fits(parts, order):
    arguments = [n for n in order if parts[n].kind is Kind.ARGUMENT]
    cues = [n for n in order if parts[n].kind is Kind.CUE]
    return arguments == sorted(arguments) and all(n == order[-1] for n in cues)


def random_parts(rng):
    """A passage: regions of text and arguments, each perhaps with a cue at its end."""
    parts = []
    for _ in range(rng.randrange(1, 3)):
        parts += [rng.choice((T, A)) for _ in range(rng.randrange(4))]
        parts += [C] * rng.randrange(2)
        parts += [BARRIER] * rng.randrange(2)
        if parts and parts[-1] is C:
            parts.append(BARRIER)  # a cue is its region's last piece
    return parts[:7] if parts[:7] and parts[:7].count(C) <= 1 else parts[:4]


@pytest.mark.parametrize("seed", range(60))
def test_exactly_the_legal_orders_are_accepted(seed):
    parts = random_parts(random.Random(seed))
    expected = legal_orders(parts)
    accepted = {
        order for order in itertools.permutations(range(len(parts))) if not breach(parts, order)
    }
    assert accepted == expected


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ((1, 0, 2, 3, 4, 5), ""),
        ((0, 1, 2, 4, 5), "piece 3 is missing"),
        ((0, 1, 1, 3, 4, 5), "piece 1 is there 2 times"),
        ((0, 1, 2, 3, 4, 6), "there is no piece 6"),
        ((0, 1, 2, 3, 4, -1), "there is no piece -1"),
        ((5, 0, 1, 2, 3, 4), "crosses a barrier: gen x"),
        ((3, 0, 1, 2, 4, 5), "piece 3 begins the reply"),
        ((2, 0, 1, 3, 4, 5), "arguments change places: pieces 0 and 2"),
        ((), "piece 0 is missing"),
    ],
)
def test_reasons(order, reason):
    found = breach([A, T, A, C, BARRIER, T], order)
    assert found.startswith(reason) or reason in found
    assert bool(found) == bool(reason)
