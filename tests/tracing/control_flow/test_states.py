"""States of a program that merge, and some that must not though they look alike."""

from __future__ import annotations

import json
from typing import Any

from control_flow import agree

import sgc

POOL = ("yes", "no", "a,b", "", "7")


def n_gens(graph: Any) -> int:
    return sum(node.op == "gen" for node in graph.nodes())


def test_a_variable_of_the_stream_may_be_another_value_than_a_local_one_was():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=3)
        first = s["a"]
        if first == "yes":
            s += sgc.gen("b", max_tokens=3)
        else:
            s += sgc.gen("a", max_tokens=3)
        s += "!" + sgc.gen("c", max_tokens=3)
        return first, s["a"]

    assert n_gens(agree(program, POOL, q="x")) == 4


def pairs_of(text: str) -> Any:
    return zip(text.split(","), json.loads("[1, 2]"), strict=False)


def test_an_iterator_is_no_result_of_code():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=5)
        pairs = pairs_of(s["a"] + ",".join(sorted({*s["a"]})))
        s += "; ".join(f"{word}{number}" for word, number in pairs) + sgc.gen("c", max_tokens=3)

    agree(program, POOL, q="x")
