"""Rows that can be read only once: whose they are, and that jobs do not mix them up."""

from __future__ import annotations

import fcntl
import io
import os
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from sgc.cli.running.job_files import job_source
from sgc.cli.running.job_options import JobAsked
from sgc.cli.running.logs import LogAsked
from sgc.errors import UsageError


def given(monkeypatch, tmp_path: Path, text: bytes, **logs: Path) -> list[object]:
    """What a job reads whose stdin has this text."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    with ExitStack() as held:
        source = job_source(JobAsked(rows="-"), LogAsked(**logs), held)
        return [row.arguments for row in source.read()]


def test_rows_of_a_job_whose_log_is_gone_are_not_taken(monkeypatch, tmp_path):
    log = tmp_path / "j.log"
    assert given(monkeypatch, tmp_path, b'{"n": 1}\n', resume=log) == [{"n": 1}]
    assert given(monkeypatch, tmp_path, b'{"n": 2}\n', resume=log) == [{"n": 2}]
    log.write_text("a log")
    assert given(monkeypatch, tmp_path, b"", resume=log) == [{"n": 2}]


def test_each_of_several_pipes_has_a_spool_of_its_own(tmp_path):
    for n in range(2):
        os.mkfifo(tmp_path / f"{n}.jsonl")

    def write() -> None:
        for n in range(2):
            (tmp_path / f"{n}.jsonl").write_text(f'{{"n": {n}}}\n')

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    asked, logs = JobAsked(rows=str(tmp_path / "*.jsonl")), LogAsked(resume=tmp_path / "j.log")
    with ExitStack() as held:
        read = [row.arguments for row in job_source(asked, logs, held).read()]
    assert read == [{"n": 0}, {"n": 1}]


@pytest.mark.parametrize("name", ["j.log.rows", "j.log.rows.begun"])
def test_two_jobs_do_not_keep_rows_in_one_file(monkeypatch, tmp_path, name):
    kept = tmp_path / name
    with kept.open("w") as held:
        held.write("precious")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="of another job that is under way"):
            given(monkeypatch, tmp_path, b'{"n": 1}\n', resume=tmp_path / "j.log")
    assert kept.read_text() == "precious"
