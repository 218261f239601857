"""Rows of a batch from a file: what is read, and what is refused at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sgc.errors import UsageError
from sgc.runs.rows_file import read_rows


def test_rows_have_keys_arguments_and_lines(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes('\ufeff{"x": "ä"}\n\n{"custom_id": "b", "x": 2}\r\n'.encode())
    rows = read_rows(file)
    assert [(row.key, row.arguments, row.line) for row in rows] == [
        ("0", {"x": "ä"}, 1),
        ("b", {"x": 2}, 3),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "has no rows"),
        (b'{"x": 1}\n[1]\n', ":2: expected a JSON object, found list"),
        (b'{"x": 1}\n{"x"\n', ":2: expected a JSON object, found:"),
        (
            b'{"x": "a',
            ":1: expected a JSON object, found: Unterminated string starting, at column 7",
        ),
        (b'{"custom_id": "0"}\n{"custom_id": 0}\n', ":2: the key '0' is that of line 1 too"),
        (b'{"custom_id": null}\n', ":1: custom_id must be a text or a number"),
        (b'{"x": 1}\n\xff\n', ":2: expected UTF-8"),
        (
            b'{"x": 1, "x": 2}\n',
            ":1: expected a JSON object, found: an object has the name 'x' twice",
        ),
        (b'{"x": {"y": 1, "y": 2}}\n', "an object has the name 'y' twice"),
        (b'{"x": NaN}\n', ":1: expected a JSON object, found: NaN is not a JSON number"),
        (b"[" * 100_000, ":1: expected a JSON object"),
        (b'{"x": ' + b"1" * 5000 + b"}\n", ":1: expected a JSON object"),
    ],
)
def test_what_is_no_row_is_refused_at_its_line(tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(text)
    with pytest.raises(UsageError, match=r".+") as raised:
        read_rows(file)
    assert message in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_rows(tmp_path / "none.jsonl")
