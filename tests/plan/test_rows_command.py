"""`sgc run --rows`: what it writes where, in which order, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from control_flow import replying
from providers.provider_server import ProviderServer
from waiting import BOUND_S

import sgc
from sgc.cli import main
from sgc.cli.programs.given_rows import GivenRows
from sgc.cli.programs.loading import Loaded
from sgc.cli.running.job import JobRun
from sgc.cli.running.job_files import open_files
from sgc.cli.running.job_options import JobAsked
from sgc.cli.running.logs import LogAsked
from sgc.programs.deopt import may_deopt
from sgc.runs.rows.source import open_source
from sgc.runs.rows.survey import Asked
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import Budget, trace

SGC = [sys.executable, "-P", "-m", "sgc"]

PROGRAM = """
import sgc

@sgc.function
def rate(s, brand: str, text: str, stars: int = 3):
    s += f"Rate.\\ntext: {text}\\nstars: {stars}\\nbrand: {brand}\\nGo:"
    s += sgc.gen("rating", max_tokens=4)
    return stars
"""
FAILING = """
import sgc

@sgc.function
def fail(s, text: str):
    number = int(text)
    s += str(number) + sgc.gen("a", max_tokens=2)
"""
BRAND = "a brand with quite a long description "
ROWS = [{"brand": f"{BRAND}{i % 2}", "text": f"text number {i}"} for i in range(8)]


@pytest.fixture
def rows_command(capsys, monkeypatch, tmp_path, fake_engine):
    """Runs `sgc run` over rows: (exit code, lines written, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rate.py").write_text(PROGRAM)
    (tmp_path / "fail.py").write_text(FAILING)
    write(tmp_path / "rows.jsonl", ROWS)

    def run(*argv: str, rows: str = "rows.jsonl", to: str = "") -> tuple[int, list, str]:
        uri = fake_engine._engine.uri
        out = ["--out", to] if to else []
        with pytest.raises(SystemExit) as ended:
            main(["run", *argv, "--rows", rows, "--engine", uri, *out])
        told, err = capsys.readouterr()
        assert "Traceback" not in err
        if to:
            assert told == ""
            told = Path(to).read_text() if Path(to).exists() else ""
        return int(ended.value.code or 0), [json.loads(line) for line in told.splitlines()], err

    return run


def values(lines: list) -> list:
    """Lines without what depends on what the engine had in its cache."""
    return [{name: each for name, each in line.items() if name != "usage"} for line in lines]


def write(path: Path, rows: list) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_line_for_each_row_in_their_order(rows_command):
    code, lines, err = rows_command("rate.py", "--seed", "1", "--ordered", to="out.jsonl")
    assert code == 0
    assert [line["key"] for line in lines] == [str(i) for i in range(8)]
    assert [line["return"] for line in lines] == [3] * 8
    assert all(line["variables"]["rating"] for line in lines)
    assert "8 rows planned: of the " in err
    assert "8 rows, 8 requests, " in err
    usage = [line.pop("usage") for line in lines]
    assert [each["requests"] for each in usage] == [1] * 8
    again = rows_command("rate.py", "--seed", "1", "--order", "given", "-j", "1")
    assert [line.pop("usage")["requests"] for line in again[1]] == [1] * 8
    assert again[:2] == (0, lines)
    assert "planned" not in again[2]
    plain = rows_command("rate.py", "--seed", "1", "--interpret", "-q", "--ordered")
    assert all(line.pop("usage") for line in plain[1])
    assert plain == (0, lines, "")


def test_o0_leaves_the_order(rows_command):
    assert "planned" not in rows_command("rate.py", "-O", "0")[2]
    assert "planned" in rows_command("rate.py", "-O", "0", "--order", "plan")[2]


def test_a_row_draws_by_its_key_and_not_by_its_place(rows_command, tmp_path):
    keyed = [{"custom_id": f"row {i}", **row} for i, row in enumerate(ROWS)]
    write(tmp_path / "rows.jsonl", keyed)
    lines = values(rows_command("rate.py", "--seed", "4", "--ordered")[1])
    write(tmp_path / "rows.jsonl", keyed[::-1])
    assert values(rows_command("rate.py", "--seed", "4", "--ordered")[1]) == lines[::-1]


def test_fields_are_reordered_when_asked(rows_command):
    code, lines, err = rows_command("rate.py", "--reorder-fields")
    assert (code, len(lines)) == (0, 8)
    assert "fields reordered in 1 way:" in err
    assert "  8 rows: brand, stars, text" in err


def test_results_do_not_replace_what_is_read(rows_command, tmp_path):
    (tmp_path / "link.jsonl").symlink_to("rows.jsonl")
    for out in ("rows.jsonl", "link.jsonl"):
        code, lines, err = rows_command("rate.py", to=out)
        assert (code, lines) == (2, ROWS)
        assert f"--out {out} would overwrite the input rows.jsonl" in err


def test_failed_rows_are_told_and_the_others_go_on(rows_command, tmp_path):
    write(tmp_path / "rows.jsonl", [{"text": "1"}, {"text": "no"}, {"text": "3"}])
    code, lines, err = rows_command("fail.py", "--ordered", to="out.jsonl")
    assert code == 100
    assert [line.get("error", {}).get("type") for line in lines] == [None, "ProgramRaised", None]
    assert "invalid literal" in lines[1]["error"]["message"]
    assert "3 rows, 1 failed (row 1: " in err
    assert rows_command("fail.py", "--max-errors", "1")[0] == 100
    code, lines, err = rows_command("fail.py", "--max-errors", "0")
    assert code == 1
    assert "1 of 3 rows failed" in err


@sgc.function
def endless(s, text: str):
    s += text + sgc.gen("a")
    n = 0
    while s["a"] != "stop":
        n += 1
        s += sgc.gen("a")
    s += f"{n}"
    return n


def test_rows_go_on_in_python_where_the_compiled_part_ends(tmp_path, monkeypatch):
    program = sgc.Program(trace(endless, budget=Budget(nodes=12)))
    assert may_deopt(program.graph)
    monkeypatch.chdir(tmp_path)
    write(
        tmp_path / "rows.jsonl", [{"custom_id": f"row {i}", "text": f"text {i}"} for i in range(4)]
    )
    lines = run_job(Loaded(program, endless), "partly.jsonl")
    assert [line["key"] for line in lines] == [f"row {i}" for i in range(4)]
    assert len({line["return"] for line in lines}) > 1
    assert values(run_job(Loaded(endless), "interpreted.jsonl")) == values(lines)


def run_job(found: Loaded, out: str) -> list:
    asked = JobAsked(rows="rows.jsonl", out=Path(out), ordered=True)
    rows, logs = GivenRows(open_source("rows.jsonl"), Asked()), LogAsked()
    rows.look(found.program)
    with open_files(asked, logs, rows.source, "none.py") as files:
        job = JobRun(found, rows, files, asked, logs, quiet=True)
        job.run(replying(5, ["go", "stop"]), RunOptions(seed=2), job.begin())
    return [json.loads(line) for line in Path(out).read_text().splitlines()]


def test_a_log_holds_all_rows_and_is_gone_on_with(rows_command, tmp_path):
    first = values(rows_command("rate.py", "--log", "run.log", "--ordered")[1])
    code, again, _ = rows_command("rate.py", "--resume", "run.log", "--ordered", to="out.jsonl")
    assert (code, values(again)) == (0, first)
    write(tmp_path / "more.jsonl", [*ROWS, {"brand": "b", "text": "t"}])
    argv = ("rate.py", "--resume", "run.log", "--ordered")
    code, more, err = rows_command(*argv, rows="more.jsonl", to="out.jsonl")
    assert (code, values(more)[:-1], len(more)) == (0, first, 9)
    assert "resumes: 8 of 9 rows are done" in err


def test_rows_are_asked_of_a_provider_and_what_they_cost_is_told(tmp_path, monkeypatch, capsys):
    server = ProviderServer()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
    (tmp_path / "rate.py").write_text(PROGRAM)
    write(tmp_path / "rows.jsonl", ROWS)
    command = ["run", "rate.py", "--rows", "rows.jsonl", "--engine", "openai:gpt-4o", "-j", "1"]
    try:
        with pytest.raises(SystemExit) as ended:
            main(command)
    finally:
        server.close()
    out, err = capsys.readouterr()
    assert not ended.value.code
    assert {json.loads(line)["key"] for line in out.splitlines()} == {str(i) for i in range(8)}
    assert "$" in err.splitlines()[-1]
    assert len(server.asks) == 8


MISTAKES = {
    "arguments twice": (["rate.py", "--arg", "text=a"], "--arg is for one run"),
    "json": (["rate.py", "--json"], "--json is for one run"),
    "stream": (["rate.py", "--stream"], "--stream is for one run"),
    "a folder": (["rate.py", "--out", "."], "--out .: Is a directory"),
    "no order": (["rate.py", "--order", "best"], "best"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_found_before_anything_runs(rows_command, name):
    argv, told = MISTAKES[name]
    code, lines, err = rows_command(*argv)
    assert (code, lines) == (2, [])
    assert told in err


def test_a_row_that_does_not_fit_is_named_by_its_line(rows_command, tmp_path):
    write(tmp_path / "rows.jsonl", [ROWS[0], {"brand": "b", "text": 5}])
    for how in ((), ("--interpret",)):
        code, lines, err = rows_command("rate.py", *how, to="out.jsonl")
        assert (code, lines) == (2, [])
        assert "rows.jsonl:2: " in err


@pytest.mark.parametrize("option", [["--out", "o"], ["--order", "plan"], ["--reorder-fields"],
                                    ["--max-errors", "1"], ["-j", "2"]])  # fmt: skip
def test_options_of_rows_are_refused_without_rows(capsys, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rate.py").write_text(PROGRAM)
    with pytest.raises(SystemExit) as ended:
        main(["run", "rate.py", "--arg", "text=a", "--arg", "brand=b", *option])
    assert ended.value.code == 2
    assert "error: --" in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupt_leaves_whole_lines(tmp_path):
    (tmp_path / "rate.py").write_text(PROGRAM)
    write(tmp_path / "rows.jsonl", [{"brand": "b", "text": f"text {i}"} for i in range(6_000)])
    command = [*SGC, "run", "rate.py", "--rows", "rows.jsonl", "--out", "out.jsonl", "-j", "4",
               "--ordered", "--model", "fake", "--no-check", "-q"]  # fmt: skip
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    out = tmp_path / "out.jsonl"
    bound = time.monotonic() + BOUND_S
    while not (out.exists() and out.stat().st_size > 1000):
        assert time.monotonic() < bound
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    err = child.communicate(timeout=BOUND_S)[1]
    assert child.returncode == 130, err
    assert "sgc: interrupted: " in err
    assert " of 6,000 rows are done; without --resume FILE" in err
    lines = out.read_text().split("\n")
    assert lines.pop() == ""
    assert [json.loads(line)["key"] for line in lines] == [str(i) for i in range(len(lines))]
    assert len(lines) < 6_000
