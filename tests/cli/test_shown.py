"""What people see: dialogues, values returned, colours, completion, arguments from files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from cli.conftest import ROOT, TIP
from tests_support import written

from sgc.cli.running import run
from sgc.runs.endpoints import connect

CHAT = str(ROOT / "examples" / "chat.py")
ASK = ("run", CHAT, "-a", "first=hi", "-a", "second=ho", "--seed", "1")


def test_a_chat_is_a_dialogue_with_what_it_returns(sgc_command, on_fake):
    _, out, _ = sgc_command(*ASK, *on_fake)
    messages, _, returned = out.rpartition("returns: ")
    heads = [part.partition(":")[0] for part in messages.strip().split("\n\n")]
    assert heads[:3] == ["system", "user", "assistant"]
    assert "system: You are a helpful assistant. The user is called Ada.\n\nuser: hi\n" in out
    assert set(json.loads(returned)) == {"answers", "food"}
    assert "\x1b" not in out
    assert "<|" not in messages
    assert sgc_command(*ASK, *on_fake, "--stream")[1] == out


def test_colours_are_for_terminals(sgc_command, on_fake, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, _ = sgc_command(*ASK, *on_fake)
    assert "\x1b[36m\x1b[1msystem:\x1b[0m You are" in out
    assert "\x1b[31m" in sgc_command("run", "missing.sgir")[2]
    assert "\x1b[1mModel" in sgc_command("run", "--help")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    for argv in ((*ASK, *on_fake), ("run", "missing.sgir"), ("run", "--help"), ("rnu",)):
        _, out, err = sgc_command(*argv)
        assert "\x1b" not in out + err


def test_an_argument_is_a_files_text(sgc_command, on_fake, tmp_path):
    path = written(tmp_path, "@sgc.function\ndef p(s, x, n: int = 1):\n    s += x * n\n")
    (tmp_path / "x.txt").write_text("of a file")
    (tmp_path / "n.txt").write_text("2\n")
    assert sgc_command("run", path, "-a", "x=@x.txt", *on_fake)[1] == "of a file\n"
    assert sgc_command("run", path, "-a", "x=ab", "-a", "n=@n.txt", *on_fake)[1] == "abab\n"
    assert sgc_command("run", path, "-a", "x=@@me", *on_fake)[1] == "@me\n"
    code, _, err = sgc_command("run", path, "-a", "x=@me", *on_fake)
    assert code == 2
    assert "--arg x: there is no file 'me'" in err
    assert "written @@me" in err


def test_what_may_have_been_meant(sgc_command, on_fake):
    _, _, err = sgc_command("run", TIP, "--topic", "tea")
    assert (
        "No such option '--topic'. An argument of the program is given as --arg topic=VALUE." in err
    )
    _, _, err = sgc_command("run", TIP, "-a", "topic=tea", "-e", "opnai:gpt-4o")
    assert "unknown engine address 'opnai:gpt-4o'. Did you mean 'openai:'?" in err
    _, _, err = sgc_command("run", TIP, "-a", "topc=tea", *on_fake)
    assert "unknown argument 'topc'. Did you mean 'topic'?" in err
    assert "Did you mean 'tip_suggestion'?" in sgc_command("run", f"{TIP}:tip_sugestion")[2]
    assert "Did you mean 'drop_unused'?" in sgc_command("compile", TIP, "--passes", "drop_unsed")[2]


def test_the_demo_model_is_told_of(sgc_command, on_fake, monkeypatch):
    monkeypatch.setattr(run, "Runtime", lambda *_, **__: connect(on_fake[1]))
    assert "name a real one with --model" in sgc_command("run", TIP, "-a", "topic=tea")[2]
    for quiet in ("-q", "--json"):
        assert "demo" not in sgc_command("run", TIP, "-a", "topic=tea", quiet)[2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(sgc_command, shell):
    code, out, _ = sgc_command("completion", shell)
    assert code == 0
    assert "_SGC_COMPLETE" in out
    assert out.startswith("# In ~/")


def test_a_shell_that_is_not_known(sgc_command, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    code, _, err = sgc_command("completion")
    assert code == 2
    assert "SHELL is tcsh: name one of bash, zsh, fish" in err


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path):
    """The script is loaded by a real bash, whose words then ask the command."""
    (tmp_path / "sgc").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m sgc "$@"\n')
    (tmp_path / "sgc").chmod(0o755)
    script = """
eval "$(sgc completion bash)"
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _sgc_completion sgc; echo "${COMPREPLY[*]}"; }
ask sgc ru
ask sgc dump --format js
ask sgc run x.py --max-c
"""
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, timeout=60,
        cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["run", "json", "--max-cost --max-concurrency"], done.stderr


def test_what_a_program_prints_is_no_result(sgc_command, on_fake, tmp_path):
    text = (
        "@sgc.function\ndef p(s, x):\n    s += x + sgc.gen('g', max_tokens=2)\n    print('of', x)\n"
    )
    path = written(tmp_path, text)
    (tmp_path / "rows.jsonl").write_text('{"x": "a"}\n{"x": "b"}\n')
    for how in ([], ["--interpret"]):
        code, out, err = sgc_command("run", path, "-a", "x=a", *on_fake, "-q", *how)
        assert (code, out.partition("\n")[0]) == (0, "of a"), err
        code, out, err = sgc_command("run", path, "-a", "x=a", *on_fake, "-q", "--json", *how)
        assert (json.loads(out)["program"], err) == ("p", "of a\n")
        _, out, err = sgc_command("run", path, "--rows", "rows.jsonl", *on_fake, "-q", *how)
        assert sorted(json.loads(line)["inputs"]["x"] for line in out.splitlines()) == ["a", "b"]
        assert sorted(err.split()) == ["a", "b", "of", "of"]
