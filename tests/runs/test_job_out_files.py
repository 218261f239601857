"""Files of a job's results, where the system writes less than it was asked to."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sgc.errors import OutputError
from sgc.runs.jobs.csv_out import CsvOut
from sgc.runs.jobs.jsonl_out import JsonlOut
from sgc.runs.jobs.parquet_out import ParquetOut


def test_a_file_is_rewritten_whole_where_writes_are_short(tmp_path: Path, monkeypatch):
    path = tmp_path / "out.jsonl"
    rows = [{"key": f"k{n}", "inputs": {"n": n}, "text": "x" * n} for n in range(40)]
    with JsonlOut(path) as out:
        for row in rows:
            failed = {"error": {"type": "E", "message": ""}} if row["key"] == "k7" else {}
            out.write({**row, **failed})
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: 1 + len(data) // 3]))
    with JsonlOut(path) as out:
        kept = [each.key for each in out.done(lambda error: error == "E")]
    monkeypatch.undo()
    assert kept == [row["key"] for row in rows if row["key"] != "k7"]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        row for row in rows if row["key"] != "k7"
    ]


ROWS = [{"key": f"k{n}", "inputs": {"n": n}, "text": "a\n" * n} for n in range(3)]


@pytest.mark.parametrize(
    "changed",
    [lambda data: data.replace(b"\r\n", b"\n"), lambda data: data.replace(b',"a', b',"a" ', 1)],
    ids=["other ends of lines", "no CSV"],
)
def test_a_file_that_another_program_has_saved_is_not_cut_off(tmp_path: Path, changed):
    path = tmp_path / "out.csv"
    with CsvOut(path) as out:
        for row in ROWS:
            out.write(row)
    data = changed(path.read_bytes())
    path.write_bytes(data)
    with CsvOut(path) as out, pytest.raises(OutputError, match="no row that a job has written"):
        list(out.done())
    assert path.read_bytes() == data


def test_a_file_that_is_rewritten_keeps_its_mode_and_its_link(tmp_path: Path):
    path, link = tmp_path / "real.jsonl", tmp_path / "out.jsonl"
    path.touch()
    path.chmod(0o640)
    link.symlink_to(path)
    with JsonlOut(link) as out:
        for row in (*ROWS, {"key": "k", "inputs": {}, "error": {"type": "E", "message": ""}}):
            out.write(row)
        assert len(list(out.done(lambda error: True))) == len(ROWS)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert len(path.read_text().splitlines()) == len(ROWS)


def test_a_parquet_file_is_whole_or_not_there_whatever_texts_it_has(tmp_path: Path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    path, link = tmp_path / "real.parquet", tmp_path / "out.parquet"
    path.touch()
    path.chmod(0o640)
    link.symlink_to(path)
    with ParquetOut(link) as out:
        out.write({"key": "k", "inputs": {"n": "\udc80"}, "text": "ä\udc80"})
        monkeypatch.setattr(parquet.ParquetWriter, "write_table", interrupted)
        with pytest.raises(KeyboardInterrupt):
            out.finish()
        monkeypatch.undo()
        assert sorted(each.name for each in tmp_path.iterdir()) == [
            "out.parquet", "out.parquet.rows.jsonl", "real.parquet"
        ]  # fmt: skip
        out.finish()
    assert parquet.read_table(link).to_pylist()[0]["text"] == "ä\\udc80"
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt
