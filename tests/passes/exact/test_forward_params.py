"""Forwarding: parameters of blocks that are the same value on every way."""

from __future__ import annotations

import pytest
from pass_cases import check_case

CASES = {
    "the same value in both arms": (
        """
        %s = stream "p"
        branch %ok then="yes" orelse="no"
        ^yes:
        jump "end" args=[%s, %x, 1]
        ^no:
        jump "end" args=[%s, %x, 2]
        ^end(%t: stream, %v: text, %k: int):
        %t1 = append %t %v
        publish %t1 "p"
        return %k
        """,
        """
        %s = stream "p"
        branch %ok then="yes" orelse="no"
        ^yes:
        jump "end" args=[1]
        ^no:
        jump "end" args=[2]
        ^end(%k: int):
        %t1 = append %s %x
        publish %t1 "p"
        return %k
        """,
    ),
    "round a loop, through an inner block, and a literal": (
        """
        jump "turn" args=[%x, "a", 0]
        ^turn(%v: text, %l: text, %i: int):
        branch %ok then="inner" orelse="end"
        ^inner:
        jump "back" args=[%v, %l]
        ^back(%w: text, %m: text):
        %j: int = compute "add" [%i, 1]
        jump "turn" args=[%w, %m, %j]
        ^end:
        %r = concat parts=[%v, %l]
        return %r
        """,
        """
        jump "turn" args=[0]
        ^turn(%i: int):
        branch %ok then="inner" orelse="end"
        ^inner:
        jump "back"
        ^back:
        %j: int = compute "add" [%i, 1]
        jump "turn" args=[%j]
        ^end:
        %r = concat parts=[%x, "a"]
        return %r
        """,
    ),
    "refused: other values, and literals where a choice is meant": (
        """
        branch %ok then="yes" orelse="no"
        ^yes:
        jump "end" args=[%x, 1]
        ^no:
        jump "end" args=["x", none]
        ^end(%v: text, %j: json):
        return %v
        """,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_forward_params(case):
    check_case("forward_params", *CASES[case])
