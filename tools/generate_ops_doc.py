"""Generates `docs/ops.md`, the table of ops as a page.

Run from the repository's root after a change of `ir/ops.py`:
`PYTHONPATH=. python -P tools/generate_ops_doc.py`. A test compares.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sgc.ir.graph import Node
from sgc.ir.op_specs import ANY_VALUE, ANYTHING, PRINTABLE, FieldSpec, Flag, OpSpec
from sgc.ir.ops import OP_TABLE_VERSION, TABLE
from sgc.ir.sampling import SAMPLING
from sgc.ir.text.printer import operand_text
from sgc.ir.types import Kind

ROOT = Path(__file__).resolve().parent.parent
_HEAD = f"""# The ops

Generated from the table in `ir/ops.py` by `tools/generate_ops_doc.py`; do not edit.
Version {OP_TABLE_VERSION} of the table.

A program is a list of nodes, one op each. Samples are in the text form: results, `=`, the op,
its *positional* fields without their names, then `name=value` for the others that are given. A
field marked *uses up* takes a stream state that nothing else may use; *literal* ones cannot
refer to values. *Any value* is everything but a stream; *printable* is any value but media and
lists.
"""


def ops_markdown() -> str:
    """The whole page, with a final newline."""
    sampling = ["## Sampling parameters", "", "Fields of `gen`; `none` is the run's default.", ""]
    sections = [_HEAD.rstrip(), "", *_flag_table(), "", *_summary(), ""]
    for row in TABLE:
        sections += _op_section(row)
    return "\n".join([*sections, *sampling, *_field_table("gen", SAMPLING)]) + "\n"


def _flag_table() -> list[str]:
    rows = (f"| {flag} | {flag.doc} |" for flag in Flag)
    return ["| flag | what is true of such an op |", "|---|---|", *rows]


def _summary() -> list[str]:
    lines = ["| op | results | flags |", "|---|---|---|"]
    for row in TABLE:
        lines.append(f"| [`{row.name}`](#{row.name}) | {_results(row)} | {_flags(row)} |")
    return lines


def _results(row: OpSpec) -> str:
    dots = ", …" if row.variadic_results else ""
    return (
        (", ".join(kind or "any value" for kind in row.results) + dots) if row.results else "none"
    )


def _flags(row: OpSpec) -> str:
    return ", ".join(flag for flag in Flag if flag in row.flags)


def _op_section(row: OpSpec) -> list[str]:
    own = tuple(field for field in row.fields if field not in SAMPLING or row.name != "gen")
    lines = [f"## {row.name}", "", row.doc, "", "```", row.sample, "```", ""]
    if own:
        lines += [*_field_table(row.name, own), ""]
    if len(own) < len(row.fields):
        lines += ["and the [sampling parameters](#sampling-parameters).", ""]
    return lines


def _field_table(op: str, fields: tuple[FieldSpec, ...]) -> list[str]:
    lines = ["| field | takes | default | |", "|---|---|---|---|"]
    for field in fields:
        notes = [note for note in (field.doc, *_marks(field)) if note]
        takes, default = _takes(field), _default(op, field)
        lines.append(f"| `{field.name}` | {takes} | {default} | {_cell('; '.join(notes))} |")
    return lines


def _marks(field: FieldSpec) -> list[str]:
    marks = {
        "positional": field.positional,
        "literal": field.static,
        "uses up": field.consumes,
        f"in {field.unit}": bool(field.unit),
    }
    return [mark for mark, holds in marks.items() if holds]


def _takes(field: FieldSpec) -> str:
    sets = {ANY_VALUE: "any value", PRINTABLE: "printable", ANYTHING: "any value or stream"}
    kinds = sets.get(field.kinds) or ", ".join(kind for kind in Kind if kind in field.kinds)
    return f"list of {kinds}" if field.is_list else kinds


def _default(op: str, field: FieldSpec) -> str:
    if field.is_required:
        return "required"
    return f"`{operand_text(Node(op).get(field.name))}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "ops.md")
    parser.parse_args().out.write_text(ops_markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
