"""The checker accepts exactly the legal orders, and says what is wrong with the others."""

from __future__ import annotations

import itertools
import random

import pytest

from sgc.passes.changing.movement.move import violation
from sgc.passes.changing.movement.pieces import Kind

T, A, C = Kind.TEXT, Kind.ARGUMENT, Kind.CUE


def is_legal(kinds, order):
    """The rules, written down once more."""
    keeps_arguments = [n for n in order if kinds[n] is A] == [
        n for n, kind in enumerate(kinds) if kind is A
    ]
    keeps_cue = C not in kinds or kinds[order[-1]] is C
    led = set(itertools.takewhile(lambda n: kinds[n] is not A, order))
    leads = set(itertools.takewhile(lambda n: kinds[n] is not A, range(len(kinds))))
    return keeps_arguments and keeps_cue and leads < led


@pytest.mark.parametrize("seed", range(60))
def test_exactly_the_legal_orders_are_accepted(seed):
    rng = random.Random(seed)
    kinds = [rng.choice((T, T, A)) for _ in range(rng.randrange(6))]
    kinds.insert(rng.randrange(len(kinds) + 1), A)
    kinds += [C] * rng.randrange(2)
    for order in itertools.permutations(range(len(kinds))):
        assert (violation(kinds, order) == "") == is_legal(kinds, order), (kinds, order)


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ((1, 0, 2, 3, 4), ""),
        ((0, 1, 2, 3, 4), "no text comes in front"),
        ((0, 1, 2, 4), "piece 3 is there 0 times"),
        ((0, 1, 1, 3, 4), "piece 1 is there 2 times"),
        ((0, 1, 2, 3, 4, 5), "there is no piece 5"),
        ((0, 1, 2, 3, -1), "there is no piece -1"),
        ((4, 0, 1, 2, 3), "piece 4 begins the reply"),
        ((2, 0, 1, 3, 4), "arguments change places"),
        ((0, 2, 1, 3, 4), "no text comes in front"),
        ((), "piece 0 is there 0 times"),
    ],
)
def test_reasons(order, reason):
    found = violation([A, T, A, T, C], order)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)
