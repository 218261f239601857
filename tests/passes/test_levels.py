"""Levels, passes by name, and what is checked around them."""

from __future__ import annotations

import textwrap

import pytest

from sgc.errors import UsageError, VerifyError
from sgc.ir.graph import Graph, Lit
from sgc.ir.text.parser import parse
from sgc.passes.base import Pass, Preserves
from sgc.passes.pipeline import LEVELS, choose_passes, optimize


def graph(body: str) -> Graph:
    lines = "\n".join(f"  {line.strip()}" for line in textwrap.dedent(body).strip().splitlines())
    return parse(f"sgir 1\nprogram @p(%x: text, %n: int) {{\n{lines}\n}}\n")


def test_levels_are_literal_and_named_passes_run_in_order():
    assert LEVELS[0] == ()
    assert [row.name for row in choose_passes(("drop_unused", "fold_constants"))] == [
        "drop_unused",
        "fold_constants",
    ]
    with pytest.raises(UsageError, match="there is no pass 'x'"):
        choose_passes(("x",))


def test_the_verifier_runs_before_the_first_pass():
    broken = graph('%s0 = stream "p"\nreturn none')
    block = broken.blocks[0]
    bad = block.nodes[0].with_fields(name=Lit(3))
    object.__setattr__(block, "nodes", (bad, block.nodes[1]))
    with pytest.raises(VerifyError):
        optimize(broken)


def test_what_the_interpreter_may_go_on_with_keeps_its_requests():
    """It is fed by what the compiled part asked, so only passes that keep that are run."""
    body = """
        %s0 = stream "p"
        %s1 = const %s0 "a"
        %s2 = const %s1 "b"
        %s3, %t = gen %s2 temperature=0 max_tokens=8 stop=["x"]
        %s4 = const %s3 "c"
        %s5, %u = gen %s4 temperature=0 max_tokens=8 stop=["x"]
        publish %s5 "p" keys=["t", "u"] items=[%t, %u]
    """
    ran = {}
    for last in ("return none", 'deopt "too many ways"'):
        found: list[Pass] = []
        optimize(graph(body + last), 2, observer=lambda row, *_, to=found: to.append(row))
        ran[last] = found
    assert {row.preserves for row in ran['deopt "too many ways"']} == {Preserves.REQUESTS}
    assert tuple(ran["return none"]) == LEVELS[2]
