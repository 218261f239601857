"""The table of ops is well formed, and its document is what the table says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from sgc.ir.graph import Graph, Lit, Node
from sgc.ir.op_specs import ANYTHING, REQUIRED, FieldSpec, Flag, OpSpec
from sgc.ir.ops import OPS, TABLE, ops_with
from sgc.ir.text.parser import parse, parse_node
from sgc.ir.types import Kind
from sgc.ir.verify import find_breaches

ROOT = Path(__file__).parents[2]
# What samples name beside values, and nothing defines: blocks and called programs.
NAMED_OUTSIDE = {
    "jump": ("R12 flow",), "branch": ("R12 flow",), "switch": ("R12 flow",), "map": ("R16 calls",),
}  # fmt: skip
ROWS = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
PYTHON_TYPES = {str: Kind.TEXT, int: Kind.INT, float: Kind.FLOAT, bool: Kind.BOOL}


def test_names_are_unique_words() -> None:
    assert len(OPS) == len(TABLE)
    assert all(name.isidentifier() for name in OPS)
    assert all(ops_with(flag) for flag in Flag), "a flag that no op has"


@ROWS
def test_row_is_well_formed(row: OpSpec) -> None:
    names = [field.name for field in row.fields]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name not in ("true", "false", "none") for name in names)
    assert row.doc.endswith(".")
    assert row.sample
    assert row.flags or row.results
    positional = [field.positional for field in row.fields]
    assert positional == sorted(positional, reverse=True), "positional fields come first"
    uses_up = any(field.consumes for field in row.fields)
    assert uses_up == (Flag.APPENDS in row.flags or row.name == "jump")
    if Flag.APPENDS in row.flags:
        assert row.results[0] is Kind.STREAM
    if Flag.TERMINATOR in row.flags:
        assert not row.results
    if Flag.PURE in row.flags:
        assert row.results
        assert not row.flags & {Flag.STOCHASTIC, Flag.OUTPUT, Flag.APPENDS}
    for field in row.fields:
        check_field(field)


def check_field(field: FieldSpec) -> None:
    assert field.kinds
    is_stream = Kind.STREAM in field.kinds
    if field.kinds == ANYTHING:  # what a jump hands on
        return
    assert not is_stream or field.kinds == {Kind.STREAM}, "streams mix with nothing"
    assert not (is_stream and (field.is_list or field.static))
    assert not field.consumes or is_stream
    if field.default is REQUIRED or field.default is None:
        return
    if field.is_list:
        assert isinstance(field.default, tuple)
    else:
        assert PYTHON_TYPES[type(field.default)] in field.kinds


@ROWS
def test_sample_breaks_no_rule_of_its_own(row: OpSpec) -> None:
    """What a sample refers to is not defined in it; nothing else may be wrong with it."""
    node = parse_node(row.sample)
    rules = {breach.rule for breach in find_breaches(in_context(node))}
    undefined = {"R5 dominance", *NAMED_OUTSIDE.get(row.name, ())}
    assert rules <= undefined
    assert node.op == row.name
    required = {field.name for field in row.fields if field.is_required}
    assert required <= {name for name, _ in node.fields}


def in_context(node: Node) -> Graph:
    end = "" if node.is_terminator else "return"
    return parse(f"sgir 1\nprogram @p() {{\n{node.spec.sample}\n{end}\n}}")


@ROWS
def test_defaults_can_be_read_off_a_bare_node(row: OpSpec) -> None:
    for field in row.fields:
        if not field.is_required:
            operand = Node(row.name).get(field.name)
            assert isinstance(operand, tuple if isinstance(field.default, tuple) else Lit)


def test_the_document_is_up_to_date() -> None:
    found = (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")
    made = runpy.run_path(str(ROOT / "tools" / "generate_ops_doc.py"))["ops_markdown"]()
    assert found == made, "run: python -P tools/generate_ops_doc.py"
