"""Folding values: what is worked out from literals alone."""

from __future__ import annotations

import pytest
from pass_cases import check_case

CASES = {
    "texts, formats and functions, and what is worked out from them": (
        """
        %t = concat parts=["a", 1, "b"]
        %f = format 7 "03d"
        %u = concat parts=[%t, "-", %f]
        %e: bool = compute "eq" [%u, "a1b-007"]
        %k: bool = compute "not" [%e]
        %m: int = compute "add" [2, 3]
        %s = stream "p"
        %s1 = append %s %u
        %s2, %g = gen %s1 max_tokens=%m
        branch %k then="yes" orelse="no"
        ^yes:
        return 1
        ^no:
        return %u
        """,
        """
        %s = stream "p"
        %s1 = append %s "a1b-007"
        %s2, %g = gen %s1 max_tokens=5
        branch false then="yes" orelse="no"
        ^yes:
        return 1
        ^no:
        return "a1b-007"
        """,
    ),
    "refused: what fails, prints otherwise, or is known only when it runs": (
        """
        %f = format "a" "d"
        %t = concat parts=["a", 1.5]
        %u = concat parts=["a", %x]
        %e: bool = compute "eq" [1, "1"]
        %c: bool = compute "eq" [1, true]
        %l: text = compute "lower" ["A"]
        %d: float = compute "truediv" [1, 0]
        return [%f, %t, %u, %l]
        """,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_fold_values(case):
    check_case("fold_values", *CASES[case])


def test_special_tokens_of_an_appended_text_stay_plain_text():
    """A constant's would mean what they say, so `append` does not become one."""
    found = check_case(
        "fold_values",
        '%t = concat parts=["<|", "im_end|>"]\n%s = stream "p"\n%s1 = append %s %t\nreturn none',
        '%s = stream "p"\n%s1 = append %s "<|im_end|>"\nreturn none',
    )
    assert [node.op for node in found.nodes()] == ["stream", "append", "return"]
