"""`sgc run --tools --log --resume`, `sgc replay` and `sgc trace`."""

from __future__ import annotations

import json

import pytest

from sgc.cli import main

PROGRAM = """
import sgc
from sgc.cli import main

@sgc.tool(effect="pure")
def count(text: str) -> int:
    return len(text)

@sgc.tool
def note(text: str) -> str:
    with open("notes.txt", "a") as file:
        file.write("noted\\n")
    return "noted"

@sgc.function
def agent(s, q: str):
    s += "Q: " + q + sgc.gen("a", max_tokens=4)
    s += f" {count(s['a'])} {note(s['a'])}" + sgc.gen("b", max_tokens=4)
"""


@pytest.fixture
def command(fake_engine, capsys, monkeypatch, tmp_path):
    """Runs `sgc …` in a folder with a program: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(PROGRAM)
    engine = ("--engine", fake_engine._engine.uri)

    def run(*argv):
        with pytest.raises(SystemExit) as ended:
            main([*argv, *(engine if argv[0] == "run" else ())])
        return ended.value.code or 0, *capsys.readouterr()

    return run


def test_a_saved_program_needs_its_tools_named(command):
    assert command("compile", "agent.py", "-o", "agent.sgir")[0] == 0
    run = ("run", "agent.sgir", "--arg", "q=why", "--seed", "3")
    code, _, err = command(*run)
    assert code == 1
    assert "agent.py:18: the program calls the tool 'agent:count', which is not allowed" in err
    assert "--tools PROG.py" in err
    code, shown, _ = command(*run, "--tools", "agent.py")
    assert (code, shown) == (0, command("run", "agent.py", *run[2:])[1])
    for tools, told in (("json", "no @sgc.tool in it"), ("no_such", "No module"), ("x.py", "x.py")):
        code, _, err = command(*run, "--tools", tools)
        assert code
        assert told in err


def test_log_resume_replay_and_trace(command, tmp_path):
    command("compile", "agent.py", "-o", "agent.sgir")
    code, shown, _ = command("run", "agent.py", "--arg", "q=why", "--log", "run.log")
    assert code == 0
    code, _, err = command("run", "agent.py", "--arg", "q=why", "--log", "run.log")
    assert (code, "to go on: --resume run.log" in err) == (2, True)
    whole = (tmp_path / "run.log").read_text()
    (tmp_path / "run.log").write_text("".join(whole.splitlines(keepends=True)[:5]))
    code, _, err = command("replay", "run.log", "agent.sgir")
    assert (code, "the log run.log does not have" in err) == (1, True)
    resumed = ("run", "agent.sgir", "--tools", "agent.py", "--resume", "run.log")
    code, again, err = command(*resumed, "--skip-effect")
    assert (code, again, "(1 from the log)" in err) == (0, shown, True)
    for replayed in (["agent.sgir"], ["agent.py"], ["agent.py", "--interpret", "--row", "0"]):
        assert command("replay", "run.log", *replayed)[:2] == (0, shown)
    assert command("replay", "run.log", "agent.sgir", "--trace", "replay.json")[0] == 0
    assert '"agent:count"' in (tmp_path / "replay.json").read_text()
    assert command("replay", "run.log", "agent.py", "--row", "7")[0] == 2
    assert json.loads(command("replay", "run.log", "agent.py", "--json")[1])["text"] in shown
    told = "run.trace.json: open it in Perfetto, or at chrome://tracing\n"
    assert command("trace", "run.log")[:2] == (0, told)
    events = json.loads((tmp_path / "run.trace.json").read_text())["traceEvents"]
    assert {"a", "b", "agent:count", "agent:note"} <= {event["name"] for event in events}
    for wrong in (["--log", "x", "--resume", "y"], ["--skip-effect"]):
        assert command("run", "agent.py", "--arg", "q=why", *wrong)[0] == 2
