"""Checks the arguments given to a program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sgc.errors import SgcError, UsageError
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.rows_file import InputRow
from sgc.runtime.executor.interface.argument_shapes import with_tuples
from sgc.runtime.executor.interface.arguments import bind_arguments


def checked(
    inputs: Sequence[InputRow],
    path: Path | str,
    loaded: Program | Function,
    bound: Sequence[str] = (),
) -> list[InputRow]:
    """The rows of a file, checked against the program; an error names the row's line.

    bound: arguments fixed at compile time, which are left out of the rows.
    """
    rows = []
    for row in inputs:
        given = {n: v for n, v in row.arguments.items() if n not in bound}
        if isinstance(loaded, Program):
            given = with_tuples(loaded.graph, given)
        rows.append(replace(row, arguments=given))
    for row in rows:
        try:
            check_texts(row.arguments)
            if isinstance(loaded, Program):
                bind_arguments(loaded.graph, row.arguments)
            else:
                loaded.signature.check_types(loaded.signature.bind((), row.arguments))
        except SgcError as error:
            place = row.place if row.file else f"{path}:{row.line}"
            raise UsageError(f"{place}: {error.message}", hint=error.hint) from error
    return rows


def check_texts(arguments: Mapping[str, Any]) -> None:
    """Raises UsageError for a text that cannot be written as UTF-8."""
    for name, value in arguments.items():
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
        except UnicodeEncodeError as error:
            raise UsageError(
                f"argument {name!r} is not valid Unicode: {error.reason}",
                hint="it holds half of a surrogate pair; write the whole character",
            ) from error
