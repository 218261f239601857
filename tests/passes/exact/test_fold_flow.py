"""Folding control flow: tests of what is known, tests that make no difference, blocks in a row."""

from __future__ import annotations

import pytest
from pass_cases import check_case

CASES = {
    "a branch on a literal, and the blocks that follow one another then": (
        """
        %s = stream "p"
        branch true then="yes" orelse="no"
        ^yes:
        %s1, %g = gen %s
        jump "end" args=[%s1, %g]
        ^no:
        jump "end" args=[%s, "none"]
        ^end(%t: stream, %v: text):
        publish %t "p"
        return %v
        """,
        """
        %s = stream "p"
        %s1, %g = gen %s
        publish %s1 "p"
        return %g
        """,
    ),
    "a switch on a literal that is one of its cases, or none": (
        """
        switch "b" cases=["a", "b"] targets=["a", "b"] default="other"
        ^a:
        return 1
        ^b:
        switch "z" cases=["a", "b"] targets=["a", "a"] default="other"
        ^other:
        return 3
        """,
        "return 3",
    ),
    "a test whose arms go on alike": (
        """
        %s = stream "p"
        %s1, %g = gen %s
        %t: bool = compute "eq" [%g, "yes"]
        branch %t then="yes" orelse="no"
        ^yes:
        jump "end" args=[%s1, 1]
        ^no:
        jump "end" args=[%s1, 1]
        ^end(%u: stream, %v: int):
        publish %u "p"
        return %v
        """,
        """
        %s = stream "p"
        %s1, %g = gen %s
        %t: bool = compute "eq" [%g, "yes"]
        publish %s1 "p"
        return 1
        """,
    ),
    "refused: arms that hand on other values, or end otherwise": (
        """
        branch %ok then="yes" orelse="no"
        ^yes:
        jump "end" args=[1]
        ^no:
        jump "end" args=[2]
        ^end(%v: int):
        branch %ok then="one" orelse="two"
        ^one:
        return %v
        ^two:
        fail "ValueError" "no"
        """,
        None,
    ),
    "refused: the test may be what fails": (
        """
        %v: bool = unset "v"
        branch %ok then="set" orelse="not"
        ^set:
        jump "test" args=[true]
        ^not:
        jump "test" args=[%v]
        ^test(%w: bool):
        branch %w then="yes" orelse="no"
        ^yes:
        jump "end"
        ^no:
        jump "end"
        ^end:
        return none
        """,
        None,
    ),
    "refused: a switch that knows no other text fails": (
        """
        switch %x cases=["a", "b"] targets=["a", "b"]
        ^a:
        jump "end"
        ^b:
        jump "end"
        ^end:
        return none
        """,
        None,
    ),
    "refused: a loop, and a jump that counts its turns": (
        """
        %n0: int = compute "add" [%n, 0]
        jump "turn" args=[%n0]
        ^turn(%i: int):
        %j: int = compute "add" [%i, 1]
        %t: bool = compute "lt" [%j, 4]
        branch %t then="again" orelse="end"
        ^again:
        jump "turn" args=[%j] bound=7
        ^end:
        return %j
        """,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_fold_flow(case):
    check_case("fold_flow", *CASES[case])
