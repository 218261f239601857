"""`sgc compile`, `dump`, `explain` and `opt`: what they write and print."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cli.conftest import TIP
from tests_support import written

from sgc.ir.text.parser import parse
from sgc.passes.base import Pass, Preserves
from sgc.passes.pipeline import PASSES
from sgc.programs.program import load


def test_compile_writes_the_same_bytes_each_time(sgc_command, tmp_path):
    for name in ("a.sgir", "b.sgir"):
        code, out, err = sgc_command("compile", TIP, "-o", name)
        assert (code, out) == (0, "")
        assert "tip_suggestion, " in err
    assert (tmp_path / "a.sgir").read_bytes() == (tmp_path / "b.sgir").read_bytes()


def test_dump_in_every_format(sgc_command, tip):
    assert parse(sgc_command("dump", "tip.sgir")[1]) == load(tip).graph
    assert json.loads(sgc_command("dump", "tip.sgir", "--format", "json")[1])
    assert sgc_command("dump", "tip.sgir", "--format", "dot")[1].startswith("digraph")
    assert "flowchart" in sgc_command("dump", "tip.sgir", "--format", "mermaid")[1]
    assert "ok" in sgc_command("verify", "tip.sgir")[1]


def test_explain_points_out_what_is_written(sgc_command, tmp_path):
    body = "@sgc.function\ndef p(s, kind: str):\n    s += kind + ': '\n    s += sgc.gen('a')\n"
    source = written(tmp_path, body)
    told = 'prog.py:5: the prompt of gen "a" ends with a space: '
    for arguments, shown in (((), '"…: "'), (("--bind", "kind=Answer"), '"Answer: "')):
        code, out, err = sgc_command("explain", source, *arguments)
        assert (code, err) == (0, "")
        assert out.startswith(told + shown + "\n  ")
        assert "heal=True" in out
    assert sgc_command("compile", source, "-o", "p.sgir")[0] == 0
    assert sgc_command("explain", "p.sgir")[1] == sgc_command("explain", source)[1]
    code, _, err = sgc_command("explain", "p.sgir", "--bind", "kind=x")
    assert code == 2
    assert "--bind needs the Python source" in err


def test_explain_has_nothing_to_say_of_a_good_program(sgc_command, tip):
    for target in (TIP, "tip.sgir"):
        told = (
            "no advice\nat most 5 requests, 176 generated tokens\n"
            "the longest path generates 128 tokens one after another\n"
        )
        code, out, err = sgc_command("explain", target)
        assert (code, err) == (0, "")
        assert out.startswith(told + "pass")
        assert "fold_constants  requests   32 to 27\n  tip_suggestion.py:" in out


def test_print_after_shows_each_pass(sgc_command):
    code, out, _ = sgc_command("compile", TIP, "--print-after", "all")
    assert code == 0
    assert "# pass fold_constants  preserves=requests  32 -> 27 nodes" in out
    assert "# pass drop_unused  preserves=requests  no change" in out
    code, out, _ = sgc_command("compile", TIP, "--passes", "drop_unused", "--print-after", "all")
    assert "fold_constants" not in out


def test_bind_fixes_arguments(sgc_command, tmp_path):
    path = written(
        tmp_path,
        "@sgc.function\ndef p(s, xs, n: int):\n    s += '-'.join(xs) + str(n)\n",
    )
    code, _, err = sgc_command("compile", path, "--bind", 'xs=["a", "b"]', "-o", "p.sgir")
    assert code == 0, err
    found = sgc_command("run", "p.sgir", "--arg", "n=2", "--model", "fake", "-q")[1]
    assert found == "a-b2\n"


def test_levels_are_written_as_compilers_do(sgc_command):
    nodes = [sgc_command("compile", TIP, f"-O{level}")[1].count("= const") for level in range(4)]
    assert nodes[0] > nodes[1] == nodes[2] == nodes[3]


@pytest.mark.slow
def test_a_type_as_a_schema_compiles_in_a_fresh_process(tmp_path):
    """pydantic reads the environment when it makes its first schema; the program does not."""
    body = "@sgc.function\ndef p(s):\n    s += 'x' + sgc.gen('a', dtype=list[int])\n"
    command = [sys.executable, "-P", "-m", "sgc", "compile", written(tmp_path, body), "-o"]
    done = subprocess.run([*command, str(tmp_path / "p.sgir")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_opt_says_what_each_pass_did(sgc_command, tmp_path):
    assert sgc_command("compile", TIP, "-o", "t.sgir", "-O0")[0] == 0
    code, out, err = sgc_command(
        "opt", "t.sgir", "-p", "fold_constants,drop_unused", "--show", "changed", "--dump", "all"
    )
    assert code == 0
    assert out.startswith("sgir 1\n")
    first, *_ = err.splitlines()
    assert first.startswith("fold_constants (preserves requests, ")
    assert " nodes, neighbouring constant texts" in first
    assert "\n-  %" in err
    assert "drop_unused (preserves requests, " in err
    assert err.rstrip().endswith("): nothing")
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [
        "00-before.sgir.txt", "01-fold_constants.sgir.txt", "02-drop_unused.sgir.txt",
    ]  # fmt: skip
    assert sgc_command("opt", "t.sgir", "-O2", "-o", "o.sgir")[:2] == (0, "")
    assert sgc_command("verify", "o.sgir")[0] == 0


def test_a_pass_that_fails_leaves_what_it_was_given(sgc_command, tmp_path, monkeypatch):
    assert sgc_command("compile", TIP, "-o", "t.sgir", "-O0")[0] == 0

    def break_it(graph):
        raise KeyError("s9")

    broken = Pass("broken", Preserves.RESULTS, break_it, "breaks")
    monkeypatch.setitem(PASSES, "broken", broken)
    code, _, err = sgc_command("opt", "t.sgir", "-p", "fold_constants,broken")
    assert code == 1
    assert "the pass broken failed: 's9'" in err
    assert "sgc opt t.before-broken.sgir -p broken" in err
    assert [r.pass_name for r in load("t.before-broken.sgir").graph.receipts] == ["fold_constants"]
    code, _, err = sgc_command("opt", "t.sgir", "-p", "nonsense")
    assert code == 2
    assert "there is no pass 'nonsense'" in err
