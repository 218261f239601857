"""Each pass: where it fires, where it does not; and that it preserves what it declares."""

from __future__ import annotations

import textwrap

import pytest

from sgc.errors import UsageError, VerifyError
from sgc.ir.graph import Graph, Lit
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.passes.base import Pass, Preserves
from sgc.passes.pipeline import LEVELS, PASSES, choose_passes, optimize, run_pass


def graph(body: str) -> Graph:
    lines = "\n".join(f"  {line.strip()}" for line in textwrap.dedent(body).strip().splitlines())
    return parse(f"sgir 1\nprogram @p(%x: text, %n: int) {{\n{lines}\n}}\n")


CASES = {
    "constants that follow each other become one": (
        "fold_constants",
        """
        %s0 = stream "p"
        %s1 = const %s0 "a"
        %s2 = const %s1 "b"
        %s3 = append %s2 %x
        %s4 = const %s3 "c"
        return none
        """,
        """
        %s0 = stream "p"
        %s2 = const %s0 "ab"
        %s3 = append %s2 %x
        %s4 = const %s3 "c"
        return none
        """,
    ),
    "a whole run of constants, and empty ones": (
        "fold_constants",
        """
        %s0 = stream "p"
        %s1 = const %s0 ""
        %s2 = const %s1 "a"
        %s3 = const %s2 ""
        %s4 = const %s3 "b"
        publish %s4 "p"
        return none
        """,
        """
        %s0 = stream "p"
        %s4 = const %s0 "ab"
        publish %s4 "p"
        return none
        """,
    ),
    "a state that something reads stays": (
        "fold_constants",
        """
        %s0 = stream "p"
        %s1 = const %s0 "a"
        %s2 = const %s1 "b"
        %t = span %s1 %s2
        return %t
        """,
        None,
    ),
    "constants on both sides of a fork are different streams": (
        "fold_constants",
        """
        %s0 = stream "p"
        %s1 = const %s0 "a"
        %s2, %s3 = fork %s1 1
        %s4 = const %s2 "b"
        %s5 = const %s3 "c"
        return none
        """,
        None,
    ),
    "literals inside a concat": (
        "fold_constants",
        '%t = concat parts=["a", "b", %x, 1, "c"]\nreturn %t',
        '%t = concat parts=["ab", %x, 1, "c"]\nreturn %t',
    ),
    "values that nothing reads, and what only they read": (
        "drop_unused",
        """
        %s0 = stream "p"
        %t = text_of %s0
        %u = concat parts=[%t, "a"]
        %l = list items=[%u]
        return %x
        """,
        """
        %s0 = stream "p"
        return %x
        """,
    ),
    "generations in a row": (
        "fuse_calls",
        """
        %s0 = stream "p"
        %s1, %a = gen %s0 max_tokens=8 stop=["\\n"]
        %s2 = const %s1 "and "
        %s3, %b = gen %s2 max_tokens=16 stop=["."]
        %s4 = append %s3 %x
        %s5, %c = gen %s4 max_tokens=16 stop=["."]
        return none
        """,
        """
        %s0 = stream "p"
        %s1, %a = gen %s0 ahead=58 max_tokens=8 stop=["\\n"]
        %s2 = const %s1 "and "
        %s3, %b = gen %s2 max_tokens=16 stop=["."]
        %s4 = append %s3 %x
        %s5, %c = gen %s4 max_tokens=16 stop=["."]
        return none
        """,
    ),
    "a fork, a value made on the way, or other sampling between generations": (
        "fuse_calls",
        """
        %s0 = stream "p"
        %s1, %a = gen %s0 max_tokens=8 stop=["."]
        %s2 = append %s1 %a
        %s3, %b = gen %s2 max_tokens=8 stop=["."]
        %s4, %c = gen %s3 max_tokens=8 temperature=0.5 stop=["."]
        %t, %u = fork %s4
        %u1, %d = gen %u max_tokens=8 temperature=0.5 stop=["."]
        return none
        """,
        None,
    ),
    "generations that are bound, or have no end": (
        "fuse_calls",
        """
        %s0 = stream "p"
        %s1, %a = gen %s0 max_tokens=8 stop=["."] regex="a+"
        %s2, %b = gen %s1 max_tokens=8 stop=["."]
        %s3, %c = gen %s2 max_tokens=8
        %s4, %d = gen %s3 stop=["."]
        %s5, %e = gen %s4 max_tokens=%n stop=["."]
        return none
        """,
        None,
    ),
    "generations stay": (
        "drop_unused",
        """
        %s0 = stream "p"
        %s1, %g = gen %s0
        return none
        """,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_pass(case):
    name, before, after = CASES[case]
    found = run_pass(PASSES[name], graph(before))
    expected = graph(before if after is None else after)
    assert (
        to_text(found).splitlines()[-len(to_text(expected).splitlines()) + 1 :]
        == to_text(expected).splitlines()[1:]
    )
    assert found == expected
    again = run_pass(PASSES[name], found)
    assert again is found, "a second time changes nothing"
    if after is None:
        assert found.receipts == ()
    else:
        assert found.receipts[-1].pass_name == name


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
