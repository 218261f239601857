"""Arguments that are data, given to commands: chat histories, rows of a file."""

from __future__ import annotations

import json

import pytest
from tests_support import written

CHAT = """
from typing import Literal

@sgc.function
def p(s, history: list[dict[str, str]], tone: Literal["kind", "curt"] = "kind"):
    for m in history:
        s += sgc.user(m["content"]) if m["role"] == "user" else sgc.assistant(m["content"])
    s += tone + sgc.gen("a", max_tokens=2)
"""
FORKS = """
@sgc.function
def p(s, rows: list[dict[str, str]]):
    forks = s.fork(len(rows))
    forks += "x"
    for fork, row in zip(forks, rows):
        fork += row["q"] + sgc.gen("a", max_tokens=2)
    s += forks[0]["a"]
"""
FITS = {"history": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
WRONG = {"history": [{"role": "user", "content": 3}]}


@pytest.fixture
def on(fake_engine):
    return ("--engine", fake_engine._engine.uri, "--seed", "1", "-q")


@pytest.fixture
def compiled(sgc_command, tmp_path):
    """A program of Python, and the file that it was compiled to."""
    path, file = written(tmp_path, CHAT), str(tmp_path / "p.sgir")
    code, _, err = sgc_command("compile", path, "--full-graph", "-o", file)
    assert code == 0, err
    return path, file


def test_a_history_is_given_to_a_program_that_was_compiled_without_it(sgc_command, on, compiled):
    outs = [
        sgc_command("run", program, "--args", json.dumps(FITS), *on, *how)
        for program, how in ((compiled[0], ("--interpret",)), (compiled[0], ()), (compiled[1], ()))
    ]
    assert [code for code, _, _ in outs] == [0, 0, 0], outs
    assert len({out for _, out, _ in outs}) == 1
    assert all(err == "" for _, _, err in outs)


@pytest.mark.parametrize("is_file", [False, True])
def test_data_that_does_not_fit_is_told(sgc_command, on, compiled, is_file):
    code, out, err = sgc_command("run", compiled[is_file], "--args", json.dumps(WRONG), *on)
    assert (code, out) == (2, "")
    assert "argument 'history' must be list[dict[str, str]]" in err
    assert "history[0]['content'] must be str, found int 3" in err
    code, _, err = sgc_command(
        "run", compiled[is_file], "--args", json.dumps(FITS), "--arg", "tone=rude", *on
    )
    assert code == 2
    assert "argument 'tone' must be 'kind' or 'curt', found str 'rude'" in err


def test_a_row_that_does_not_fit_is_told_by_its_line(sgc_command, on, compiled, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(f"{json.dumps(FITS)}\n{json.dumps(WRONG)}\n")
    for program in compiled:
        code, out, err = sgc_command("run", program, "--rows", str(rows), *on)
        assert (code, out) == (2, "")
        assert "rows.jsonl:2: " in err
        assert "history[0]['content'] must be str, found int 3" in err


def test_data_whose_value_tracing_needs_is_compiled_for(sgc_command, on, tmp_path):
    path = written(tmp_path, FORKS)
    given = json.dumps({"rows": [{"q": "a"}, {"q": "b"}]})
    code, out, err = sgc_command("run", path, "--args", given, *on)
    assert (code, err) == (0, "")
    assert out == sgc_command("run", path, "--args", given, *on, "--interpret")[1]
    code, _, err = sgc_command("compile", path)
    assert code == 1
    assert "a number of streams known only at run time is appended to outside a loop" in err


COUNTED = """
@sgc.function
def p(s, q: str, n: int = 2, sure: bool = True):
    s += q + sgc.gen("a", n=n, max_tokens=2)
    forks = s.fork(n + 1 if sure else n)
    for fork in forks:
        fork += sgc.gen("b", max_tokens=2)
    for fork in forks:
        fork += sgc.gen("c", max_tokens=2)
    s += forks[-1]["c"]
"""


@pytest.mark.sweep
@pytest.mark.parametrize("given", [{"q": "x"}, {"q": "x", "n": 3}, {"q": "x", "sure": False}])
def test_a_run_is_compiled_for_the_numbers_that_tracing_needs(sgc_command, on, tmp_path, given):
    path, args = written(tmp_path, COUNTED), json.dumps(given)
    code, out, err = sgc_command("run", path, "--args", args, *on, "--full-graph")
    assert (code, err) == (0, "")
    assert out == sgc_command("run", path, "--args", args, *on, "--interpret")[1]


def _texts(out: str) -> dict[str, object]:
    """What rows came to, by their keys: they end in any order, and their usage may differ."""
    rows = [json.loads(line) for line in out.splitlines()]
    return {row["key"]: (row["text"], row["variables"], row["return"]) for row in rows}


def test_rows_share_a_program_where_their_numbers_are_equal(sgc_command, on, tmp_path):
    path, rows = written(tmp_path, COUNTED), tmp_path / "rows.jsonl"
    rows.write_text('{"q": "a", "n": 3}\n{"q": "b", "n": 3}\n')
    code, out, err = sgc_command("run", path, "--rows", str(rows), *on, "--full-graph")
    assert (code, len(out.splitlines()), err) == (0, 2, "")
    rows.write_text('{"q": "a", "n": 3}\n{"q": "b"}\n')  # the other has the default, 2
    code, out, err = sgc_command("run", path, "--rows", str(rows), *on)
    assert (code, len(out.splitlines())) == (0, 2)
    assert "--bind n=N" in err
    interpreted = sgc_command("run", path, "--rows", str(rows), *on, "--interpret")
    assert _texts(out) == _texts(interpreted[1])


def test_a_file_is_compiled_for_defaults_that_tracing_needs(sgc_command, on, tmp_path):
    path, file = written(tmp_path, COUNTED), str(tmp_path / "p.sgir")
    code, _, err = sgc_command("compile", path, "--full-graph", "-o", file)
    assert code == 0
    assert "n of p is fixed to its default, 2" in err
    assert "--bind n=VALUE" in err
    args = ("--args", json.dumps({"q": "x", "sure": True}))
    assert sgc_command("run", file, *args, *on)[1] == sgc_command("run", path, *args, *on)[1]
    code, _, err = sgc_command("run", file, "--args", json.dumps({"q": "x", "n": 3}), *on)
    assert code == 2
    assert "'n'" in err
    assert sgc_command("explain", path)[0] == 0
    assert sgc_command("explain", path, "--args", '{"q": "x", "n": 4}')[0] == 0
    code, _, err = sgc_command("compile", path, "--full-graph", "-o", file, "--bind", "n=3")
    assert (code, "n of p" in err) == (0, False)
