"""Tightening max_tokens, and how long a pattern's texts can be."""

from __future__ import annotations

import random
import re

import pytest
from pass_cases import graph

import sgc
from sgc.passes.facts.pattern_length import longest
from sgc.passes.pipeline import PASSES, run_pass
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.run.options import RunOptions


@pytest.mark.parametrize(
    ("pattern", "n_bytes"),
    [("a", 1), ("é", 2), ("🙂{2}", 8), ("a|bcd", 3), (".{3}", 12), ("[^a]", 4), ("[a-é]", 2),
     (r"\d{2}", 8), ("(?i)k", 4), ("^ab$", 2), ("a*", None), ("(a|b+)", None), (r"(a)\1", None),
     ("(?:){5,}", 0), ("(", None), ("(?=abc)a", 1), ("a{2}?b??", 3)],
)  # fmt: skip
def test_longest(pattern, n_bytes):
    assert longest(pattern) == n_bytes


def test_longest_is_no_less_than_any_text_that_matches():
    rng = random.Random(5)
    alphabet = ["a", "b", "é", "🙂", "K"]

    def pattern(depth: int) -> str:
        kind = rng.randrange(6 if depth else 2)
        if kind < 2:
            return rng.choice(["a", "é", "[ab]", "[^a]", ".", "[a-é]", "(?i:k)"])
        if kind == 2:
            return f"(?:{pattern(depth - 1)}|{pattern(depth - 1)})"
        if kind == 3:
            return f"(?:{pattern(depth - 1)}){{0,{rng.randrange(3)}}}"
        return pattern(depth - 1) + pattern(depth - 1)

    n_matches = 0
    for _ in range(300):
        made = pattern(3)
        bound = longest(made)
        assert bound is not None
        for _ in range(30):
            text = "".join(rng.choice(alphabet) for _ in range(rng.randrange(5)))
            if re.fullmatch(made, text):
                n_matches += 1
                assert len(text.encode()) <= bound, (made, text)
    assert n_matches > 500


def test_the_engine_gives_the_same_texts(fake_engine: Runtime):
    body = """
    %s = stream "p"
    %s1 = append %s %x
    %s2, %a = gen %s1 max_tokens=64 regex="(yes|no|é{1,3}|[a-z]{1,6}[.]?)"
    %s3 = const %s2 " "
    %s4, %b = gen %s3 max_tokens=64 dtype="bool"
    %s5, %c = gen %s4 max_tokens=8
    return [%a, %b, %c]
    """
    before = graph(body)
    after = run_pass(PASSES["tighten_max_tokens"], before)
    assert after is not before
    for seed in range(12):
        arguments = {"x": f"row {seed}", "n": 1, "ok": True}
        options = RunOptions(seed=seed, temperature=0.0 if seed % 2 else 1.0)
        one, two = (
            sgc.Program(each).run_once(arguments, options, fake_engine) for each in (before, after)
        )
        assert one.ret_value == two.ret_value
        reasons = [[r.reply.finish_reason for r in run.requests] for run in (one, two)]
        assert reasons[0] == reasons[1]
