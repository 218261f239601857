"""`sgc estimate` and `sgc explain` on the command line: what they print, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import sgc
from sgc.cli.main import main
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.log.run_log import RunLog

PROGRAM = """
import sgc


@sgc.function
def note(s, topic: str):
    s += "A note on " + topic + ":"
    s += sgc.gen("note", max_tokens=8) + "\\nA title:"
    s += sgc.gen("title", max_tokens=4)
"""
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Runs a command line in a folder with a program, rows, and a log of two of them."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    Path("note.py").write_text(PROGRAM)
    lines = [json.dumps({"topic": f"tea {n}"}) for n in range(5)]
    Path("rows.jsonl").write_text("\n".join(lines) + "\n")

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as done:
            main(list(arguments))
        out, err = capsys.readouterr()
        return int(done.value.code or 0), out, err

    return run


def write_log(path: str, rows: list[dict[str, str]]) -> None:
    from sgc.cli.programs.source import load_function

    program = load_function("note.py").compile(check=False)
    endpoint = Endpoint(ScriptedBackend(lambda prompt, sampling: " so it is"))
    with RunLog.open(path) as log:
        program.run_batch(rows, backend=endpoint, log=log, seed=3)


def test_an_estimate_of_our_engine_has_no_money(command: Command) -> None:
    code, out, _ = command("estimate", "note.py", "--rows", "rows.jsonl")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "note on sgc-tiny, 5 rows"
    assert lines[1].split() == ["expected", "at", "most"]
    assert lines[2].split() == ["requests", "10", "10"]
    assert [line.split()[0] for line in lines[3:7]] == ["prompt", "cached", "computed", "generated"]
    assert "$" not in out
    assert lines[-1].startswith("assumed: replies of half their max_tokens")


def test_an_estimate_of_a_provider_asks_for_no_key(command: Command) -> None:
    Path("prices.json").write_text('{"gpt-9": {"input": 1000000, "output": 2000000}}')
    arguments = ("estimate", "note.py", "--arg", "topic=x", "--engine", "openai:gpt-9", "--json")
    told = json.loads(command(*arguments, "--prices", "prices.json")[1])
    found, most = told["expected"], told["at_most"]
    assert (found["requests"], told["prices"]) == (2, "prices.json")
    assert found["cost_usd"] == found["prompt_tokens"] + 2 * found["completion_tokens"]
    assert most["money"] == most["prompt_tokens"] + 2 * most["completion_tokens"]
    by_batch = {"expected_usd": found["cost_usd"] / 2, "at_most_usd": most["money"] / 2}
    assert told["by_batch"] == by_batch
    _, out, _ = command(*arguments[:-1], "--prices", "prices.json")
    halves = [f"${each / 2:.4g}" for each in (found["cost_usd"], most["money"])]
    assert ["by", "batch", "(--batch)", *halves] in [line.split() for line in out.splitlines()]
    assert [each["line"] for each in found["by_generation"]] == ["note.py:8", "note.py:9"]


def test_rows_of_a_log_are_answered_as_they_were(command: Command) -> None:
    write_log("few.log", [{"topic": "tea 0"}, {"topic": "tea 1"}])
    _, out, _ = command("estimate", "note.py", "--rows", "rows.jsonl", "--like", "few.log")
    assert "assumed: replies as in few.log (2 of 5 rows are in it" in out


def test_explain_tells_what_was_measured_beside_what_is_predicted(command: Command) -> None:
    write_log("few.log", [{"topic": "tea 0"}, {"topic": "tea 1"}])
    code, out, _ = command("explain", "note.py", "--after-run", "few.log")
    assert code == 0
    assert "note on sgc-tiny, 2 rows, cache cold" in out
    shown = [line.split()[:4] for line in out.splitlines() if "note.py:8" in line]
    assert ["note.py:8", "note", "predicted", "2"] in shown
    assert "measured from the first request to the last reply" in out
    code, out, _ = command("explain", "note.py", "-O", "2", "--rows", "rows.jsonl", "--json")
    told = json.loads(out)
    assert told["predicted"]["requests"] == 10
    assert told["measured"] is None
    assert all(row["before"]["requests"] == 10 for row in told["receipts"])


def test_a_compiled_program_shows_its_receipts(command: Command) -> None:
    assert command("compile", "note.py", "-o", "note.sgir")[0] == 0
    _, out, _ = command("explain", "note.sgir", "--arg", "topic=x")
    receipts = sgc.load("note.sgir").graph.receipts
    assert receipts
    for receipt in receipts:
        assert receipt.pass_name in out
        assert all(f"  {detail}" in out for detail in receipt.details)
    assert "note on sgc-tiny, 1 row, cache cold" in out


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--rows", "none.jsonl"], "none.jsonl: No such file"),
        (["--rows", "empty.jsonl"], "empty.jsonl has no rows"),
        (["--rows", "bad.jsonl"], "bad.jsonl:2: expected a JSON object"),
        (["--rows", "other.jsonl"], "other.jsonl:1: "),
        (["--rows", "rows.jsonl", "--arg", "topic=x"], "--rows FILE has many"),
        ([], "missing argument 'topic'"),
        (["--arg", "topic=x", "--engine", "openai:gpt-0"], "give --prices FILE"),
        (["--arg", "topic=x", "--engine", "grpc://h:1"], "name a model instead of grpc://h:1"),
        (["--arg", "topic=x", "--engine", "openai:gpt-4o", "--model", "x"], "--model is for an"),
        (["--arg", "topic=x", "--prices", "p.json"], "--prices is for model providers"),
        (["--arg", "topic=x", "--like", "none.log"], "none.log: No such file"),
        (["--arg", "topic=x", "--like", "bad.jsonl"], "bad.jsonl:1: expected a run's log"),
        (["--arg", "topic=x", "--like", "other.log"], "other.log is the log of note as it was"),
        (["--arg", "topic=x", "--like", "torn.log"], "torn.log is not the log of a run"),
    ],
)
def test_wrong_inputs_are_told(command: Command, arguments: list[str], told: str) -> None:
    Path("empty.jsonl").write_text("\n\n")
    Path("bad.jsonl").write_text('{"topic": "a"}\n{"topic": \n')
    Path("other.jsonl").write_text('{"subject": "a"}\n')
    Path("torn.log").write_text('{"sgc_run_log":1}\n')
    if "other.log" in arguments:
        Path("note.py").write_text(PROGRAM.replace("A note", "Two notes"))
        write_log("other.log", [{"topic": "tea"}])
        Path("note.py").write_text(PROGRAM)
    code, out, err = command("estimate", "note.py", *arguments)
    assert code in (1, 2)
    assert told in err
    assert "Traceback" not in err
    assert out == ""


def test_what_a_program_prints_is_not_printed_by_its_estimate(command: Command) -> None:
    Path("note.py").write_text(PROGRAM + '    print("zebra", s["title"])\n')
    for asked in ("estimate", "explain"):
        code, out, err = command(asked, "note.py", "--arg", "topic=tea")
        assert (code, "zebra" in out + err) == (0, False)
