"""What the summary of the peers' bench compares with what."""

from __future__ import annotations

from typing import Any

from cases import INT8, OURS, Case, beside
from summary import summary


def row(peer: str, rep: int, value: float) -> dict[str, Any]:
    same = {"unit": "tok/s", "peak_rss_mb": 1.0, "cores": 2.0, "others_cores": 0.0}
    ids = {"n_cached": None, "n_prompt": 1, "variant": 0, "first_ids": [7]}
    return {"workload": "W3", "peer": peer, "rep": rep, "value": value, **same, **ids}


def test_each_peer_is_compared_with_its_rival_and_a_busy_machine_with_a_quiet_one() -> None:
    q8, busy = "llama.cpp-q8", beside("llama.cpp-q8")
    values = {OURS: 10.0, INT8: 20.0, q8: 5.0, busy: 4.0, beside(INT8): 12.0}
    rows = [row(peer, rep, value * (rep + 1)) for peer, value in values.items() for rep in (0, 1)]
    rivals = {OURS: OURS, INT8: OURS, q8: INT8, busy: beside(INT8), beside(INT8): beside(OURS)}
    found = summary(rows, rivals, {beside(name): name for name in values})["W3"]
    assert found[INT8]["times"] == 0.5
    assert found[q8]["times"] == 4.0
    assert found[busy]["times"] == 3.0
    assert (found[busy]["kept"], found[beside(INT8)]["kept"]) == (0.8, 0.6)
    assert "times" not in found[OURS]
    assert "kept" not in found[q8]


def test_which_of_a_pair_is_first_alternates_and_each_has_prompts_of_its_own() -> None:
    case = Case("vllm", "vllm")
    assert case.pair(0, rep=0) == [case]
    pairs = [case.pair(1, rep) for rep in (0, 1)]
    assert [[each.n_busy for each in pair] for pair in pairs] == [[0, 1], [1, 0]]
    assert len({each.variant for each in pairs[0]}) == 2
