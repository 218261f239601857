"""Golden files: every rule of the verifier at work, and programs as they are printed."""

from __future__ import annotations

import golden_files
import pytest

from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.ir.verify import RULES, find_breaches


def find_errors(text: str) -> list[tuple[int, str]]:
    """Breaches with the line they are on; those without a node are on the program's line."""
    head = next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith("program"))
    breaches = find_breaches(parse(text, "golden", locate=True))
    return [(breach.loc.line if breach.loc else head, breach.headline) for breach in breaches]


@pytest.mark.parametrize("name", golden_files.cases(is_text=False))
def test_verifier_finds_what_is_annotated(name: str) -> None:
    text = golden_files.program(golden_files.read(name))
    golden_files.check(name, golden_files.annotate(text, find_errors(text)))


@pytest.mark.parametrize("name", golden_files.cases(is_text=True))
def test_programs_print_as_written(name: str) -> None:
    graph = parse(golden_files.read(name))
    assert find_breaches(graph) == []
    golden_files.check(name, to_text(graph))


def test_every_rule_has_a_golden_breach() -> None:
    names = golden_files.cases(is_text=False)
    told = "\n".join(golden_files.read(name) for name in names)
    for rule, _ in RULES:
        assert f"{golden_files.ERROR}{rule}: " in told


def test_golden_files_are_short() -> None:
    for name in golden_files.cases(is_text=False) + golden_files.cases(is_text=True):
        assert len(golden_files.read(name).splitlines()) <= 30, name
