"""Files of a job's results, where the system writes less than it was asked to."""

from __future__ import annotations

import json
import os
from pathlib import Path

from sgc.runs.jobs.jsonl_out import JsonlOut


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
