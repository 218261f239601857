"""`sgc run --rows` as a job: it goes on where it stopped, and says so; how it ends."""

from __future__ import annotations

import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from row_jobs import COMMAND, PROGRAM, Counting, by_key, endpoint, read_out, write_rows
from waiting import BOUND_S

from sgc.cli.running import run as run_module
from sgc.cli.running.progress import open_progress, say
from sgc.errors import BudgetExceeded, EngineUnavailable, ProgramError
from sgc.runs.jobs import records
from sgc.runs.jobs.tally import Tally
from sgc.runtime.executor.log.run_log import RunLog

N = 12
CHILD = Path(__file__).with_name("job_child.py")


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Counting:
    found = Counting()
    monkeypatch.setattr(run_module, "connect", endpoint(found))
    return found


@pytest.fixture
def job(sgc_command, backend, tmp_path):
    """Runs the job over `rows.jsonl`, which goes on by `j.log`: (exit code, stderr)."""
    (tmp_path / "note.py").write_text(PROGRAM)
    write_rows("rows.jsonl", N)

    def run(
        *more: str, rows: str = "rows.jsonl", out: str = "out.jsonl", log: str = "j.log"
    ) -> tuple[int, str]:
        argv = (*COMMAND, "--rows", rows, "--seed", "1", *(("--resume", log) if log else ()))
        code, told, err = sgc_command(*argv, *(("--out", out) if out else ()), *more)
        assert not out or not told
        return code, err

    return run


@pytest.mark.parametrize("out", ["out.jsonl", "out.csv"])
def test_a_job_that_was_cut_off_anywhere_ends_as_if_it_had_not_been(job, backend, out):
    write_rows("rows.jsonl", N, key='"ü\n')
    assert job(out=out)[0] == 0
    whole, done, log = by_key(read_out(out)), Path(out).read_bytes(), Path("j.log").read_bytes()
    assert len(whole) == N
    head = log.index(b"\n", log.index(b'"kind":"job"')) + 1
    draw = random.Random(5)
    for _ in range(6):
        # A machine's crash may cut off more of one file than of the other.
        Path(out).write_bytes(done[: draw.randrange(len(done))])
        Path("j.log").write_bytes(log[: draw.randrange(head, len(log))])
        assert job(out=out)[0] == 0
        assert by_key(read_out(out)) == whole
    backend.n_asked = 0
    assert job(out=out)[1].startswith(f"resumes: {N} of {N} rows are done\n")
    Path(out).write_bytes(done[:-1])
    assert f"resumes: {N - 1} of {N} rows are done" in job(out=out)[1]
    assert backend.n_asked == 0


def test_the_log_of_a_job_forgets_rows_that_are_done(job, monkeypatch):
    seen = []
    forget = RunLog.forget

    def forgetting(self: RunLog, row: str) -> None:
        forget(self, row)
        seen.append(self._file._n_places)

    monkeypatch.setattr(RunLog, "forget", forgetting)
    assert job("-j", "1")[0] == 0
    assert len(seen) == N
    assert max(seen) < 8  # the program, the backend, the job, and a row or two
    with RunLog.open("j.log") as opened:
        assert len(opened.rows()) == N


def test_results_of_others_are_not_overwritten(job, tmp_path):
    Path("out.jsonl").write_text("precious\n")
    code, err = job()
    assert (code, Path("out.jsonl").read_text()) == (2, "precious\n")
    assert "there is one already" in err
    assert "--force" in err
    assert job("--force")[0] == 0
    assert len(by_key(read_out("out.jsonl"))) == N
    assert "resumes: 12 of 12" in job("--force")[1]  # the same command goes on
    with Path("out.jsonl").open("a") as file:
        file.write("no record\n")
    code, err = job()
    assert code == 1
    assert "out.jsonl:13: this is no row that a job has written" in err


def test_rows_that_changed_are_not_taken_for_done(job):
    assert job()[0] == 0
    write_rows("rows.jsonl", N, stars=4)
    code, err = job()
    assert code == 1
    assert "rows.jsonl:1: the row 'r0' has other arguments now" in err


def test_failed_rows_are_told_kept_and_tried_again(job, backend):
    backend.fails = lambda text: ProgramError("no luck") if text.endswith(("7:", "9:")) else None
    code, err = job()
    assert code == 100
    assert "12 rows, 2 failed (row r" in err
    found = by_key(read_out("out.jsonl"))
    assert found["r7"]["error"]["type"] == "ProgramError"
    assert found["r7"]["inputs"] == {"text": "text 7"}
    backend.fails = lambda text: None
    assert job()[0] == 100  # they are done
    backend.n_asked = 0
    code, err = job("--retry-errors")
    assert (code, backend.n_asked) == (0, 4)
    assert "resumes: 10 of 12" in err
    assert not [each for each in by_key(read_out("out.jsonl")).values() if "error" in each]
    assert len(read_out("out.jsonl")) == N
    code, err = job("--retry-errors", out="")
    assert code == 2


@pytest.mark.parametrize("out", ["out.jsonl", "out.csv"])
def test_a_result_that_is_no_json_is_an_error_of_its_row(job, monkeypatch, out):
    made = records.record_of
    wrong = {"return": {(1, 2): 3}}

    def record(row, outcome):
        is_wrong = row.key == "r3" and not isinstance(outcome, BaseException)
        return made(row, outcome) | (wrong if is_wrong else {})

    monkeypatch.setattr("sgc.runs.jobs.job.record_of", record)
    code, err = job(out=out)
    assert code == 100
    assert "12 rows, 1 failed (row r3: the result cannot be written as JSON" in err
    assert len(by_key(read_out(out))) == N


def test_too_many_errors_end_a_job_and_their_rows_are_kept(job, backend):
    backend.fails = lambda text: ProgramError("no luck")
    code, err = job("--max-errors", "2", "-j", "1")
    assert (code, len(read_out("out.jsonl"))) == (1, 3)
    assert "3 of 12 rows are done; this goes on:\n  " in err
    assert "--resume j.log" in err
    backend.fails = lambda text: None
    assert job("--max-errors", "2", "--retry-errors")[0] == 0


def test_a_spent_budget_ends_a_job_and_its_rows_run_again(job, backend):
    backend.dollars = 0.5
    backend.fails = lambda text: BudgetExceeded("spent") if backend.n_asked > 9 else None
    code, err = job("-j", "1")
    assert code == 101
    assert "the budget is spent" in err
    assert "this goes on with a larger --max-cost:\n" in err
    assert len(read_out("out.jsonl")) == 4
    assert all(each["usage"]["cost_usd"] == 1.0 for each in read_out("out.jsonl"))
    given = {}

    def connect(*_: object, **limits: float) -> object:
        given.update(limits)
        return endpoint(backend)()

    run_module.connect = connect  # the fixture puts it back
    backend.fails = lambda text: None
    argv = ("--max-cost", "7", "--engine", "openai:gpt-4o")
    assert job(*argv)[0] == 0
    assert given["max_cost"] == 7 - 4.5  # by the log, with the row that was not ended


def test_an_engine_that_is_gone_ends_a_job_and_fails_no_row(job, backend):
    backend.fails = lambda text: EngineUnavailable("gone")
    code, err = job()
    assert (code, read_out("out.jsonl")) == (1, [])
    assert "0 of 12 rows are done" in err
    backend.fails = lambda text: EngineUnavailable("away") if "text 3:" in text else None
    assert job()[0] == 100
    assert by_key(read_out("out.jsonl"))["r3"]["error"]["type"] == "EngineUnavailable"


@pytest.mark.parametrize("log", ["j.log", ""])
def test_a_full_disk_ends_a_job_and_leaves_whole_files(job, backend, log):
    assert job()[0] == 0
    whole = by_key(read_out("out.jsonl"))
    size = Path(log or "out.jsonl").stat().st_size
    Path("out.jsonl").unlink()
    Path("j.log").unlink()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
    backend.n_asked = 0
    try:
        code, err = job("-j", "1", log=log)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 1
    assert f"cannot write {log or 'out.jsonl'}: File too large" in err
    assert 1 < backend.n_asked < 2 * N  # it ended at once
    found = by_key(read_out("out.jsonl"))
    assert 1 < len(found) < N
    assert found.items() <= whole.items()
    if log:
        assert Path(log).read_bytes().endswith(b"\n")
        assert job()[0] == 0
        assert by_key(read_out("out.jsonl")) == whole


@contextmanager
def as_nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that this process may read and not write, and which is the current one."""
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        for name in ("note.py", "rows.jsonl"):
            shutil.copy(name, folder)
        Path(folder).chmod(0o555)
        monkeypatch.chdir(folder)
        if is_root:
            os.setresuid(65534, 65534, 0)
        try:
            yield Path(folder)
        finally:
            if is_root:
                os.setresuid(0, 0, 0)
            Path(folder).chmod(0o755)


@pytest.mark.parametrize(
    ("out", "log", "told"),
    [
        ("out.jsonl", "", "out.jsonl: Permission denied"),
        ("out.csv", "", "out.csv: Permission denied"),
        ("out.parquet", "", "Permission denied"),
        ("", "j.log", "the log j.log: nothing can be written in the folder"),
    ],
)
def test_a_folder_that_may_not_be_written_is_told_before_anything_is_asked(
    job, backend, monkeypatch, out, log, told
):
    with as_nobody(monkeypatch) as folder:
        code, err = job(out=out, log=log)
        assert sorted(each.name for each in folder.iterdir()) == ["note.py", "rows.jsonl"]
    assert code == 2
    assert told in err
    assert "Traceback" not in err
    assert backend.n_asked == 0


def test_two_jobs_do_not_share_files(job, tmp_path):
    import fcntl

    with Path("out.jsonl").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, err = job()
    assert code == 1
    assert "out.jsonl is being written by another job" in err
    with RunLog.open("j.log"):
        code, err = job()
    assert code == 1
    assert "is being written by another run" in err
    code, err = job(out="no/such.jsonl")
    assert code == 2
    assert "--out no/such.jsonl: No such file or directory" in err
    Path("lost.log").symlink_to("lost/j.log")
    Path("round.log").symlink_to("round.log")
    for log, told in (
        ("no/j.log", "there is no folder no"), (str(tmp_path), "is a folder"),
        ("lost.log", "there is no folder"), ("round.log", "Too many levels of symbolic links"),
    ):  # fmt: skip
        code, err = job(out="new.jsonl", log=log)
        assert (code, told in err) == (2, True)
    assert not Path("new.jsonl").exists()


def test_a_log_that_may_not_be_written_is_told_before_results_are_made(job, monkeypatch):
    Path("j.log").touch()
    access = os.access
    monkeypatch.setattr(os, "access", lambda *asked: not asked[1] & os.W_OK and access(*asked))
    code, err = job()
    assert (code, "j.log may not be read and written" in err) == (2, True)
    assert not Path("out.jsonl").exists()


def test_rows_of_stdin_are_kept_for_the_same_command(job, monkeypatch, tmp_path):
    text = Path("rows.jsonl").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert job("--limit", "5", rows="-")[0] == 0
    assert Path("j.log.rows").stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=None))
    assert job("--log", "j.log", rows="-", log="")[0] == 2  # it is there already
    code, err = job(rows="-")
    assert code == 0
    assert "resumes: 5 of 12" in err
    assert len(by_key(read_out("out.jsonl"))) == N


def test_the_log_of_a_job_is_replayed_and_shown(job, sgc_command):
    assert job()[0] == 0
    code, told, _ = sgc_command("replay", "j.log", "note.py", "--json")
    assert (code, len(told.splitlines())) == (0, N)
    code, _, err = sgc_command("replay", "j.log", "note.py", "--trace", "t.json")
    assert (code, f"--trace t.json is for one run, and j.log has {N} rows" in err) == (2, True)
    assert sgc_command("trace", "j.log", "-o", "t.json")[0] == 0


@pytest.mark.slow
def test_a_killed_job_goes_on_with_the_same_command(tmp_path):
    """The one way to end that no code of ours sees."""
    (tmp_path / "note.py").write_text(PROGRAM)
    write_rows(tmp_path / "rows.jsonl", 2000)
    argv = [*COMMAND, "--rows", "rows.jsonl", "--seed", "1", "--out", "out.jsonl"]
    child = [sys.executable, "-P", str(CHILD), *argv, "--resume", "j.log"]
    out, draw = tmp_path / "out.jsonl", random.Random(3)
    for place in sorted(draw.random() for _ in range(4)):
        process = subprocess.Popen(child, cwd=tmp_path, stderr=subprocess.DEVNULL)
        bound = time.monotonic() + BOUND_S
        while not out.exists() or out.stat().st_size < place * 2000 * 300:
            assert process.poll() is None
            assert time.monotonic() < bound
            time.sleep(0.005)
        process.kill()
        process.wait()
    done = subprocess.run(child, cwd=tmp_path, capture_output=True, text=True, timeout=BOUND_S)
    assert done.returncode == 0
    assert "of 2,000 rows are done" in done.stderr
    found = by_key(read_out(out))
    assert len(found) == 2000
    assert len({each["text"] for each in found.values()}) == 2000


@pytest.mark.slow
def test_an_interrupt_says_how_to_go_on_and_a_second_one_ends_at_once(tmp_path):
    (tmp_path / "note.py").write_text(PROGRAM)
    write_rows(tmp_path / "rows.jsonl", 9)
    argv = [*COMMAND, "--rows", "rows.jsonl", "--out", "o.jsonl", "-j", "1"]
    child = [sys.executable, "-P", str(CHILD), *argv]
    with subprocess.Popen(
        [*child, "--log", "a b.log"], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "CLINGS": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "cancelled\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(BOUND_S) == 130
    (tmp_path / "o.jsonl").unlink()
    (tmp_path / "a b.log").unlink()
    write_rows(tmp_path / "rows.jsonl", 20_000)
    process = subprocess.Popen(
        [*child, "--log", "a b.log"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    bound = time.monotonic() + BOUND_S
    while not (tmp_path / "o.jsonl").exists() or not (tmp_path / "o.jsonl").stat().st_size:
        assert time.monotonic() < bound
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=BOUND_S)[1]
    assert process.returncode == 130
    assert "of 20,000 rows are done; this goes on:\n" in err
    assert "--resume 'a b.log'" in err.splitlines()[-1]
    assert "--log" not in err


def test_an_order_and_a_part_of_the_rows_are_had_when_asked(job, backend):
    assert job("--sample", "5", out="some.jsonl", log="")[0] == 0
    number = {each["key"]: int(each["key"][1:]) for each in read_out("some.jsonl")}
    keys = sorted(number, key=number.__getitem__)
    assert len(keys) == 5
    backend.waits = lambda text: text.startswith(f"text {number[keys[1]]}:")
    assert job("--ordered", "--sample", "5")[0] == 0
    assert [each["key"] for each in read_out("out.jsonl")] == keys
    assert "resumes: 5 of 5" in job("--ordered", "--sample", "5")[1]


def test_a_note_is_above_the_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = open_progress(None, Tally(n_rows=3), quiet=False)
    say("3 rows planned")
    bar.close()
    shown = [line.rpartition("\r")[2] for line in sys.stderr.getvalue().split("\n")]
    assert shown[0] == "3 rows planned"
    assert "0/3 [" in shown[1]


def test_progress_is_lines_where_there_is_no_terminal(job, monkeypatch):
    monkeypatch.setattr("sgc.cli.running.progress.EVERY_S", 0.0)
    err = job("--progress", "json")[1]
    told = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert told
    assert told[0]["rows"] == N
    assert "{" not in job("--progress", "none")[1]
