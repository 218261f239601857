"""An error in the tracer's own code is no error of the program: else it would become a part of the
graph."""

from __future__ import annotations

from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace
from sgc.tracing.values import abstract_number


@sgc.function
def counted(s: Any, n: int) -> Any:
    s += "q" + sgc.gen("a", stop="\n")
    if "x" in s["a"]:
        s += "x"
    try:
        if n + len(s["a"]) > 3:
            s += "long"
    except ValueError:
        s += "none"
    return n


def test_a_name_that_is_missing_in_the_tracer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(abstract_number, "computed")
    with pytest.raises(TraceError, match=r"sgc itself failed.*NameError at sgc\.tracing\.values"):
        trace(counted, is_full=True)


@sgc.function
def fails(s: Any, at: int) -> Any:
    s += "q" + sgc.gen("a", stop="\n")
    words = s["a"].split(",")
    table = {"a": [1], "b": [2, 3]}
    if "x" in s["a"]:
        return table[s["a"]]
    return table["b"][len(words)] + words[at].index("b")


@pytest.mark.parametrize("at", [0, 1])
def test_errors_of_the_program_are_its_own(at: int) -> None:
    agree(fails, ("a,b", "b", "x", "a,a,a", "bb,b"), n=10, at=at)
