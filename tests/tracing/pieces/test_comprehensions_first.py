"""Comprehensions over streams and programs in what is code otherwise: they are evaluated first."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from control_flow import agree

import sgc

REPLIES = ("a", "b", "A ", "", "a b", "7", "8")


@sgc.function
def ask(s, x: str):
    s += x + sgc.gen("y", max_tokens=4)
    return s["y"]


@sgc.function
def of_streams(s, q: str):
    forks = s.fork(3)
    for f in forks:
        f += q + sgc.gen("t", max_tokens=4)
    kept = list(dict.fromkeys(f["t"].strip() for f in forks if f["t"].strip()))
    votes = Counter(f["t"].strip().lower() for f in forks)
    best, n = votes.most_common(1)[0]
    s += f"{best} {n}" + sgc.gen("z", max_tokens=4)
    return kept, best, dict.fromkeys([f["t"] for f in forks], 0)


@sgc.function
def of_many_streams(s, k: int):
    forks = s.fork(k)
    for f in forks:
        f += sgc.gen("t", max_tokens=4)
    top = max(Counter(f["t"] for f in forks).items(), key=lambda kv: (kv[1], kv[0]))
    for x in dict.fromkeys(f["t"] for f in forks):
        s += x + sgc.gen("z", max_tokens=4)
    return top, list(dict.fromkeys(f["t"].strip() for f in forks if f["t"].strip()))


@sgc.function
def inside_others(s, q: str):
    forks = s.fork(3)
    for f in forks:
        f += sgc.gen("t", max_tokens=4)
    kept = [x for x in dict.fromkeys(f["t"].strip() for f in forks) if x]
    joined = ",".join(x + "!" for x in sorted({f["t"] for f in forks}))
    s += f"{len(kept)} {joined}" + sgc.gen("z", max_tokens=4)
    return kept, [x for x in [f["t"] for f in forks] if x]


@sgc.function
def of_programs(s, q: str):
    votes = Counter(ask(x).ret_value for x in q.split())
    share = sum(ask(x).ret_value == "a" for x in q.split()) / max(1, len(q.split()))
    try:
        k = len({int(ask(x).ret_value) for x in q.split()}) + int(q[0])
    except ValueError as error:
        k = str(error)
    return votes.most_common(2), share, k


@pytest.mark.parametrize(
    ("program", "given"),
    [
        (of_streams, {"q": "x"}),
        (inside_others, {"q": "x"}),
        pytest.param(of_many_streams, {"k": 3}, marks=pytest.mark.slow),
        pytest.param(of_programs, {"q": "u v w"}, marks=pytest.mark.slow),
    ],
)
def test_agree(program: Any, given: dict[str, Any]) -> None:
    agree(program, REPLIES, n=6, **given)
