"""`sgc compile --as-sglang`: programs written for SGLang become `.sgir` files as they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from control_flow import replying

import sgc
from sgc.cli import main
from sgc.runtime.executor.run.options import RunOptions

PROGRAM = """
import sglang as sgl
from sglang.test.test_utils import add_common_sglang_args_and_parse

@sgl.function
def tool_use(s, question, few):
    for each in few:
        s += "Q: " + each + "\\n"
    s += "Q: " + question + " tool: " + sgl.gen("tool", choices=["calculator", "search"])
    if s["tool"] == "calculator":
        s += " expression:" + sgl.gen("expression", regex=r"[0-9]+")
    else:
        s += " words:" + sgl.gen("words", stop="\\n")
"""


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Runs a command line in a folder with the program: (exit code, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    Path("written_for_sglang.py").write_text(PROGRAM)

    def run(*argv: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(argv))
        return int(ended.value.code or 0), capsys.readouterr().err

    yield run
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("sglang", "written_for_sglang"):
            del sys.modules[name]


def test_a_program_for_sglang_compiles_and_runs_without_its_source(command):
    code, told = command(
        "compile", "written_for_sglang.py", "--as-sglang", "--full-graph",
        "--bind", 'few=["one", "two"]', "-o", "t.sgir",
    )  # fmt: skip
    assert code == 0, told
    assert told.startswith("t.sgir: tool_use, ")
    Path("written_for_sglang.py").unlink()
    texts = set()
    for seed in range(8):
        endpoint = replying(seed, ["7", "42"])
        result = sgc.load("t.sgir").run_once({"question": "q"}, RunOptions(seed=seed), endpoint)
        assert result.text().startswith("Q: one\nQ: two\nQ: q tool: ")
        texts.add(result["tool"])
    assert texts == {"calculator", "search"}


def test_without_the_option_the_error_names_it(command):
    code, told = command("compile", "written_for_sglang.py", "-o", "t.sgir")
    assert code == 1
    assert "No module named 'sglang'" in told
    assert "--as-sglang" in told


def test_what_its_module_does_at_import_is_an_error_that_names_its_line(command):
    Path("serves.py").write_text(f"import sglang as sgl\n\nsgl.Engine(model_path='x')\n{PROGRAM}")
    code, told = command("compile", "serves.py", "--as-sglang", "-o", "t.sgir")
    assert code == 1
    assert "serves.py:3: " in told
