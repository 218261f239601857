"""Priorities: higher classes first, and none starves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sgc.runtime.engine.requests.request import Commit, Generate
from sgc.runtime.engine.scheduling.classes import PASSES


def ended(core) -> list[int]:
    """The order in which all requests end."""
    order = []
    while core.has_work:
        order += [update.id for update in core.step() if update.final]
    return order


def asked(lab, number: int, priority: int, kind=Commit()):  # noqa: B008
    return replace(lab.request(number, [5, 6, 100 + number], kind), priority=priority)


@pytest.mark.parametrize("policy", ["fcfs", "program", "lpm"])
def test_higher_classes_go_first_and_lower_ones_get_their_share(lab, policy) -> None:
    core = lab.make_core(max_running=1, policy=policy, shares_in_batch=False)
    classes = {number: (-1, 0, 1)[number % 3] for number in range(60)}
    for number, priority in classes.items():
        core.submit(asked(lab, number, priority))
    order = [classes[number] for number in ended(core)]
    assert sorted(order) == sorted(classes.values())
    assert order[:PASSES] == [1] * PASSES
    for priority in (-1, 0):
        last = len(order) - order[::-1].index(priority)
        gaps, n_since = [], 0
        for each in order[:last]:
            n_since = 0 if each == priority else n_since + 1
            gaps.append(n_since)
        assert max(gaps) <= PASSES + 1
    assert order.index(0) < order.index(-1) + 2


def test_one_class_is_served_as_if_there_were_none(lab) -> None:
    orders = []
    for priority in (0, 1, -1):
        core = lab.make_core(max_running=1, shares_in_batch=False)
        for number in range(20):
            core.submit(asked(lab, number, priority))
        orders.append(ended(core))
    assert orders[0] == orders[1] == orders[2]


def test_the_lower_class_gives_way_where_memory_is_short(lab) -> None:
    """The texts are those of a run with room, whoever is preempted."""
    texts = []
    for pool in (1000, 60):
        core = lab.make_core(pool=pool, max_running=8, headroom_tokens=0)
        requests = [asked(lab, i, (-1, 1)[i % 2], Generate(12)) for i in range(6)]
        found = lab.drive(core, requests)
        texts.append({number: each.ids for number, each in found.items()})
        core.check()
    assert texts[0] == texts[1]
