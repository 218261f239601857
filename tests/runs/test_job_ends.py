"""What ends a job and what only its row; where rows that are not answered come in the order."""

from __future__ import annotations

from pathlib import Path

import pytest
from row_jobs import COMMAND, PROGRAM, Counting, by_key, endpoint, read_out, write_rows

from sgc.cli.running import job as job_module
from sgc.cli.running import run as run_module
from sgc.errors import EngineUnavailable, ProgramError
from sgc.runs.jobs import job as jobs
from sgc.runtime.executor.log.file import LogFile

N = 12


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Counting:
    found = Counting()
    monkeypatch.setattr(run_module, "connect", endpoint(found))
    return found


@pytest.fixture
def job(sgc_command, backend, tmp_path):
    (tmp_path / "note.py").write_text(PROGRAM)
    write_rows("rows.jsonl", N)
    argv = (*COMMAND, "--rows", "rows.jsonl", "--out", "out.jsonl", "--resume", "j.log")

    def run(*more: str) -> tuple[int, str]:
        code, _, err = sgc_command(*argv, *more)
        return code, err

    return run


def test_an_error_of_use_that_a_program_raises_is_its_rows(job):
    path = Path("note.py")
    lines = "    if text == 'text 3':\n        raise UsageError('mine')\n    return stars"
    text = path.read_text().replace("    return stars", lines)
    path.write_text("from sgc.errors import UsageError\n" + text)
    assert job("--interpret")[0] == 100
    assert by_key(read_out("out.jsonl"))["r3"]["error"]["type"] == "UsageError"


def test_a_log_and_results_are_two_files_and_the_logs_head_survives_a_crash(job, monkeypatch):
    synced = []
    monkeypatch.setattr(LogFile, "sync", lambda log: synced.append(Path(log.path).read_bytes()))
    code, err = job("--out", "./j.log")
    assert (code, Path("j.log").exists()) == (2, False)
    assert "--out j.log is the log too" in err
    assert job()[0] == 0
    assert [line.count(b'"kind":"job"') for line in synced] == [1]


def test_another_seed_than_the_logs_ends_a_job(job):
    assert job("--seed", "1")[0] == 0
    Path("out.jsonl").write_text("")
    code, err = job("--seed", "2")
    assert (code, read_out("out.jsonl")) == (2, [])
    assert "was written with seed=1" in err


def test_nothing_is_written_after_too_many_rows_failed(job, backend):
    backend.fails = lambda text: ProgramError("no luck")
    assert job("--max-errors", "2", "-j", str(N))[0] == 1
    assert len(read_out("out.jsonl")) == 3
    backend.n_asked = 0
    code, err = job("--max-errors", "2")  # there are too many already
    assert (code, backend.n_asked) == (1, 0)
    assert "3 of 12 rows failed" in err
    assert job()[0] == 100
    assert job("--max-errors", "2")[0] == 1  # no row is left, and they are still too many


def test_a_first_row_that_is_not_answered_does_not_hold_up_an_ordered_job(
    job, backend, monkeypatch
):
    monkeypatch.setattr(jobs, "WINDOW", 2)
    backend.waits = lambda text: text.startswith("text 0:")
    backend.fails = lambda text: EngineUnavailable("away") if backend.waits(text) else None
    assert job("--ordered", "-j", str(N))[0] == 100
    found = read_out("out.jsonl")
    assert [each["key"] for each in found] == [f"r{n}" for n in range(N)]
    assert [each["key"] for each in found if "error" in each] == ["r0"]


def test_a_job_without_a_plan_keeps_no_sizes(job, monkeypatch):
    made = []

    class Kept(jobs.Job):
        def __init__(self, parts: jobs.JobParts) -> None:
            super().__init__(parts)
            made.append(self)

    monkeypatch.setattr(job_module, "Job", Kept)
    assert job("--order", "given")[0] == 0
    assert not made[0]._sizes
