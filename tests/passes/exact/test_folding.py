"""What the folding passes leave as it is, and what they leave out."""

from __future__ import annotations

import pytest
from pass_cases import check_case

ARMS = """
branch %ok then="a" orelse="b"
^a:
jump "end"{bound}
^b:
jump "end"{bound}
^end:
return %x
"""
CASES = {
    "texts without a letter disappear": (
        "fold_constants",
        """
        %s = stream "p"
        %s1 = append %s %x
        %s2 = const %s1 ""
        %s3, %g = gen %s2
        return %g
        """,
        """
        %s = stream "p"
        %s1 = append %s %x
        %s3, %g = gen %s1
        return %g
        """,
    ),
    "many texts become one, at the place of the last": (
        "fold_constants",
        """
        %s = stream "p"
        %s1 = const %s "a"
        %s2 = const %s1 "b"
        %c = concat parts=["x", "y", 1, "z", "w", %x]
        %s3 = const %s2 "c"
        %s4 = const %s3 "d"
        %s5, %g = gen %s4
        return [%g, %c]
        """,
        """
        %s = stream "p"
        %c = concat parts=["xy", 1, "zw", %x]
        %s4 = const %s "abcd"
        %s5, %g = gen %s4
        return [%g, %c]
        """,
    ),
    "numbers that a float cannot hold are printed when it runs": (
        "fold_values",
        """
        %a = concat parts=["n", 9007199254740993]
        return %a
        """,
        None,
    ),
    "arms that only meet again are no arms": (
        "fold_flow",
        ARMS.format(bound=""),
        "return %x",
    ),
    "a literal none is no JSON value yet": (
        "forward_params",
        """
        branch %ok then="a" orelse="b"
        ^a:
        jump "end" args=[none]
        ^b:
        jump "end" args=[none]
        ^end(%v: json):
        return %v
        """,
        None,
    ),
    "a bound counts": ("fold_flow", ARMS.format(bound=" bound=3"), None),
}


@pytest.mark.parametrize("case", CASES)
def test_folding(case: str) -> None:
    check_case(*CASES[case])
