"""`sgc view`, and `sgc.view`: what a page holds of programs, runs and jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sgc
from sgc.errors import UsageError
from sgc.runtime.executor.log.run_log import RunLog

Command = Callable[..., tuple[int, str, str]]

PROGRAM = """\
import sgc


@sgc.tool(effect="pure")
def look_up(name: str) -> str:
    return name.upper()


@sgc.function
def program(s, topic: str):
    s += "About " + topic + ":" + sgc.gen("tip", max_tokens=4) + "\\n"
    if sgc.select("is_good", ["yes", "no"]) is None:
        s += "never"
    s += look_up(topic) + sgc.gen("end", max_tokens=3)
    return s["end"]
"""


@sgc.tool(effect="pure")
def look_up(name: str) -> str:
    return name.upper()


@sgc.function
def program(s, topic: str):
    s += "About " + topic + ":" + sgc.gen("tip", max_tokens=4) + "\n"
    s += "Good? " + sgc.select("is_good", ["yes", "no"])
    if s["is_good"] == "yes":
        s += " " + look_up(topic) + sgc.gen("end", max_tokens=3)
    return s["is_good"]


def run(scripted: Any, **options: Any) -> Any:
    return program.compile().run(topic="tea", seed=1, backend=scripted(), **options)


def test_a_program_has_its_blocks_lines_and_passes() -> None:
    found = sgc.view(program).data["program"]
    nodes = [node for block in found["graphs"][0]["blocks"] for node in block["nodes"]]
    kinds = {(kind, name) for _, kind, _, name in nodes if kind in ("generation", "choice")}
    assert kinds == {("generation", "tip"), ("choice", "is_good"), ("generation", "end")}
    assert [kind for _, kind, _, _ in nodes].count("tool") == 1
    lines = found["sources"]["test_view.py"]
    place = next(place for text, _, place, _ in nodes if "gen" in text and '"tip"' in text)
    assert 'gen("tip"' in lines[int(place.rpartition(":")[2]) - 1]
    assert {label for *_, label in found["graphs"][0]["edges"]} == {"", "if", "if not"}
    changed = next(each for each in found["passes"] if each["name"] == "fold_constants")
    assert changed["before"] > changed["after"]
    assert any(line.startswith("-") for line in changed["diff"])


def test_a_log_and_a_result_tell_the_same(scripted: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    with RunLog.open(path) as log:
        result = run(scripted, log=log)
    of_log, of_result = (sgc.view(each).data["run"] for each in (path, result))
    for name in ("row", "path", "kind", "name", "line", "text", "prompt", "part"):
        pairs = zip(of_log["requests"], of_result["requests"], strict=True)
        assert all(one[name] == other[name] for one, other in pairs), name
    assert of_log["parts"] == of_result["parts"]
    assert of_log["totals"] == of_result["totals"]
    assert [call["line"] for call in of_log["calls"]] == [
        call["line"] for call in of_result["calls"]
    ]
    assert of_log["calls"][0]["value"] == "TEA"
    written = [part for part in of_log["parts"] if part.get("model")]
    assert written
    first = of_log["requests"][0]["text"]
    (start, end), *_ = written[0]["model"]
    assert written[0]["text"][start:end] == first


@pytest.mark.slow
def test_runs_in_a_list_are_rows(scripted: Any) -> None:
    states = program.run_batch([{"topic": "tea"}, {"topic": "chess"}], backend=scripted(), seed=1)
    data = sgc.view(states, program).data
    assert [row["key"] for row in data["rows"]["rows"]] == ["0", "1"]
    assert {each["row"] for each in data["run"]["requests"]} == {"0", "1"}
    text = states[1].text()
    shown = data["rows"]["rows"][1]["streams"][0]
    assert shown[1] == text == "".join(piece for _, piece in shown[2])
    frame = sgc.view(states)._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts"')


@pytest.mark.parametrize("thing", [3, [1], None, {"a": 1}])
def test_anything_else_is_refused(thing: Any) -> None:
    with pytest.raises(UsageError, match="expected a program, a run, a log or a path"):
        sgc.view(thing)


# -- the command --


@pytest.fixture
def job(sgc_command: Command, tmp_path: Path) -> Path:
    """A job of three rows, one of which fails."""
    (tmp_path / "prog.py").write_text(
        PROGRAM.replace("name.upper()", 'name.upper() if name != "bad" else 1 / 0')
    )
    rows = [{"topic": topic} for topic in ("tea", "bad", "chess")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = sgc_command(
        "run", "prog.py", "--model", "fake", "--rows", "rows.jsonl", "--out", "out.jsonl",
        "--resume", "job.log", "--seed", "1", "-q",
    )  # fmt: skip
    assert code == 100, err
    return tmp_path


def page_data(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])


def test_a_job_its_results_and_its_program(job: Path, sgc_command: Command) -> None:
    code, out, err = sgc_command("view", "job.log", "out.jsonl", "prog.py")
    assert (code, err) == (0, "")
    assert out.startswith("job.html: ")
    page = job / "job.html"
    assert page.stat().st_mode & 0o777 == 0o600
    data = page_data(page)
    rows = {row["key"]: row for row in data["rows"]["rows"]}
    assert (data["rows"]["all"], data["rows"]["failed"]) == (3, 1)
    assert rows["1"]["error"].startswith("ToolError: prog.py:14")
    assert rows["0"]["inputs"] == {"topic": "tea"}
    assert rows["2"]["return"] == rows["2"]["variables"]["end"]
    lines = {node[2] for block in data["program"]["graphs"][0]["blocks"] for node in block["nodes"]}
    assert {each["line"] for each in data["run"]["requests"]} <= lines
    code, _, err = sgc_command("view", "job.log")  # a page of ours is replaced
    assert (code, err) == (0, "")


@pytest.mark.slow
def test_rows_of_the_log_alone(job: Path, sgc_command: Command) -> None:
    assert sgc_command("view", "job.log", "-o", "p.html")[0] == 0
    data = page_data(job / "p.html")
    assert [row["inputs"]["topic"] for row in data["rows"]["rows"]] == ["tea", "bad", "chess"]
    assert data["run"]["about"]["seed"] == 1


@pytest.mark.slow
def test_what_a_page_cannot_show(job: Path, sgc_command: Command) -> None:
    (job / "mine.html").write_text("my own page")
    (job / "bad.jsonl").write_text('{"key": 1}\n')
    (job / "damaged.log").write_text('{"sgc_run_log":1}\n{"kind":"generate","row":"0"}\n')
    for argv, told in [
        (("job.log", "-o", "mine.html"), "mine.html is there, and is no page of sgc view"),
        (("job.log", "-o", "no/p.html"), "there is no folder no"),
        (("job.log", "-o", "."), "Is a directory"),
        (("nothing.log",), "No such file"),
        (("rows.jsonl",), "expected a .sgir file, the log of a run, or a job's results"),
        (("bad.jsonl",), "expected a .sgir file, the log of a run, or a job's results"),
        (("damaged.log",), "damaged.log"),
        (("prog.py", "prog.py"), "a page shows one program"),
        (("out.jsonl", "out.jsonl"), "a page shows the results of one job"),
        ((), "Missing argument"),
    ]:
        code, _, err = sgc_command("view", *argv)
        assert code in (1, 2), argv
        assert told in err, (argv, err)
    assert (job / "mine.html").read_text() == "my own page"
    assert "p.html" not in os.listdir(job)


def test_results_that_another_program_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(
        '{"key": 1, "inputs": 5, "streams": 7, "usage": {"cost_usd": "much", "requests": 2}}\n'
        '{"key": "2", "inputs": {}, "streams": [3, {"text": 4}], "variables": [], "text": null}\n'
    )
    rows = sgc.view(path).data["rows"]["rows"]
    assert rows[0]["usage"] == {"requests": 2}
    assert [row["key"] for row in rows] == ["1", "2"]
    path.write_text('{"key": 1, "inputs": ' + "[" * 100_000 + "\n")
    with pytest.raises(UsageError, match=r"expected a \.sgir file"):
        sgc.view(path)


def test_a_page_has_one_clock(scripted: Any, tmp_path: Path) -> None:
    """Rows of two logs have the same keys, and a run's times are not those of a log."""
    path = tmp_path / "run.log"
    with RunLog.open(path) as log:
        result = run(scripted, log=log)
    for things in ((path, path), (path, result), (result, path)):
        with pytest.raises(UsageError, match="a page shows one log"):
            sgc.view(*things)


def test_what_does_not_fit_is_not_read(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sgc.viewer.run_data.MAX_REQUESTS", 2)
    result = run(scripted)
    data = sgc.view([result, result]).data["run"]
    n_all = 2 * (len(result.requests) + len(result.tool_calls))
    assert len(data["requests"]) + len(data["calls"]) + data["left_out"] == n_all
    assert data["left_out"] == n_all - 2


def test_a_page_replaces_only_a_file(tmp_path: Path) -> None:
    page = sgc.view(program)
    with pytest.raises(UsageError, match="expected the name of a file"):
        page.save(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="expected the name of a file"):
        page.save(tmp_path / "fifo")
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    (tmp_path / "page.html").write_text("old")
    page.save(tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["fifo", "link.html", "page.html"]
