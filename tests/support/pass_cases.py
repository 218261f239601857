"""Golden cases of passes: a program before and after, or None where the pass leaves it alone."""

from __future__ import annotations

import textwrap

from sgc.ir.graph import Graph
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.passes.pipeline import PASSES, run_pass


def graph(body: str, called: str = "") -> Graph:
    """A program of the arguments x (text), n (int) and ok (bool)."""
    lines = textwrap.dedent(body).strip().splitlines()
    shown = "\n".join(line if line.startswith("^") else f"  {line.strip()}" for line in lines)
    return parse(f"sgir 1\nprogram @p(%x: text, %n: int, %ok: bool) {{\n{shown}\n}}\n{called}")


def check_case(name: str, before: str, after: str | None, called: str = "") -> Graph:
    """Runs the pass, twice; gives what it made."""
    given = graph(before, called)
    found = run_pass(PASSES[name], given)
    expected = graph(before if after is None else after, called)
    assert to_text(found).split("program", 1)[1] == to_text(expected).split("program", 1)[1]
    assert found == expected
    assert (found is given) == (after is None)
    assert run_pass(PASSES[name], found) is found, "a second time changes nothing"
    if after is not None:
        assert found.receipts[-1].pass_name == name
    return found
