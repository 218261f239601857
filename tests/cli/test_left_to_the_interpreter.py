"""What of a program is left to the interpreter is told where it is compiled, checked and read."""

from __future__ import annotations

import functools

import pytest
from tests_support import written
from traced_at_once import without_live

from sgc.errors import SgcWarning, TraceError
from sgc.ir.file.sgir import save
from sgc.ir.text.parser import parse
from sgc.tracing import tracer
from sgc.tracing.paths.exploration import Budget

# A way that never merges: each turn nests deeper.
DEAD = """
@sgc.function
def p(s, q, passages: list[str]):
    nested = ()
    for passage in passages:
        s += passage
        nested = (nested, passage)
    s += q + nested[1]
    s += sgc.gen("a", max_tokens=2)
"""
PART = """
@sgc.function
def p(s, q):
    s += q + sgc.gen("a", max_tokens=2)
    kept = ()
    for n in "bcdefghij":
        s += sgc.gen(n, max_tokens=2)
        if s[n] == "keep":
            kept = (kept, n)
"""
pytestmark = pytest.mark.full_budget  # its budgets are its own

WHOLE = "@sgc.function\ndef p(s, q):\n    s += q + sgc.gen('a', max_tokens=2)\n"


@pytest.fixture(autouse=True)
def _few_ways(monkeypatch):
    monkeypatch.setattr(tracer, "Budget", functools.partial(Budget, runs=12, nodes=80))
    without_live(monkeypatch)


def test_a_file_that_could_only_fail_is_not_written(sgc_command, tmp_path):
    code, out, err = sgc_command("compile", written(tmp_path, DEAD), "-o", "p.sgir")
    assert (code, out) == (1, "")
    assert err.startswith("sgc: error: prog.py:6: no path through p that was compiled reaches")
    assert "ways left to the interpreter at prog.py:6 (more than 80 nodes" in err
    assert not (tmp_path / "p.sgir").exists()


def test_such_a_file_is_told_by_all_that_read_it(sgc_command, tmp_path, fake_engine):
    path = written(tmp_path, DEAD)
    code, _, err = sgc_command("compile", path, "-o", "p.sgir", "--allow-no-request")
    assert (code, "warning: prog.py:6: p has " in err) == (0, True)
    given = ("--args", '{"q": "a", "passages": ["x", "y"]}', "--seed", "1")
    on = ("--engine", fake_engine._engine.uri)
    code, out, err = sgc_command("run", "p.sgir", *given, "--model", "./no/such")
    assert (code, out) == (1, "")
    assert "reaches a request" in err  # and not that there is no such model
    for argv in (("verify", "p.sgir"), ("explain", "p.sgir"), ("explain", path)):
        out = sgc_command(*argv)[1]
        assert "ways left to the interpreter at prog.py:6" in out
        assert "what is compiled asks a model for nothing" in out
        assert "no advice" not in out
    texts = [
        sgc_command("run", *argv, *given, *on)[1]
        for argv in (("p.sgir", "--source", path), (path,), (path, "--interpret"))
    ]
    assert texts[0] == texts[1] == texts[2]


def test_what_is_left_of_a_file_is_a_warning(sgc_command, tmp_path):
    path = written(tmp_path, PART)
    code, _, err = sgc_command("compile", path, "-o", "p.sgir")
    assert code == 0
    assert "warning: prog.py:9: p has " in err
    assert "ways left to the interpreter at prog.py:9 (more than " in err
    assert "--source" in err
    out = sgc_command("verify", "p.sgir")[1]
    assert "p.sgir: ok" in out
    assert "left to the interpreter at prog.py:9" in out
    assert "asks a model for nothing" not in out
    assert "in what is compiled, at most" in sgc_command("explain", "p.sgir")[1]
    code, _, err = sgc_command("compile", path, "--full-graph")
    assert (code, ": p has more than " in err) == (1, True), err


def test_a_whole_program_has_nothing_left(sgc_command, tmp_path):
    path = written(tmp_path, WHOLE)
    _, _, err = sgc_command("compile", path, "-o", "p.sgir")
    assert "left" not in err
    assert "left" not in sgc_command("verify", "p.sgir")[1]
    assert sgc_command("explain", path)[1].splitlines()[1].startswith("at most 1 request,")


def test_compiling_in_python_tells_the_same(tmp_path):
    space: dict[str, object] = {}
    for name, body in {"dead": DEAD, "part": PART}.items():
        path = tmp_path / f"{name}.py"
        path.write_text("import sgc\n" + body)
        exec(compile(path.read_text(), str(path), "exec"), space)
        if name == "dead":
            with pytest.raises(TraceError, match="reaches a request"):
                space["p"].compile(check=False)
        else:
            with pytest.warns(SgcWarning, match="left to the interpreter at part.py:9"):
                space["p"].compile(check=False)


def test_a_file_written_by_hand_is_told_too(sgc_command, tmp_path):
    text = 'sgir 1\nprogram @p() {\n  %s0 = stream "p"\n  deopt "no reason"\n}\n'
    save(parse(text), tmp_path / "p.sgir")
    out = sgc_command("verify", "p.sgir")[1]
    assert "1 way left to the interpreter at a line unknown (no reason)" in out
