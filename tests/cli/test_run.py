"""`sgc run`: arguments, output, and where the interpreter goes on."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import threading
from pathlib import Path

import pytest
from cli.conftest import TIP
from tests_support import written

from sgc.tracing import tracer
from sgc.tracing.paths.exploration import Budget


@pytest.mark.slow
def test_run_from_a_file_in_an_empty_folder_equals_interpreting(sgc_command, tip):
    arguments = ["--args", '{"topic": "staying healthy"}', "--json", "--model", "fake"]
    for extra in (["--seed", "3"], ["--seed", "3", "--temperature", "0"]):
        compiled = json.loads(sgc_command("run", "tip.sgir", *arguments, *extra)[1])
        source = json.loads(sgc_command("run", TIP, "--interpret", *arguments, *extra)[1])
        for found in (compiled, source):
            assert set(found["stats"]) >= {
                "requests", "prompt_tokens", "cached_tokens", "computed_tokens",
                "completion_tokens", "wall_s",
            }  # fmt: skip
            stats = found.pop("stats")
            assert stats["prompt_tokens"] == stats["cached_tokens"] + stats["computed_tokens"]
        assert compiled == source
        assert set(compiled) == {"program", "text", "variables", "return", "streams"}


def test_stream_and_text_show_the_same(sgc_command, tip, on_fake):
    arguments = ["run", "tip.sgir", "--arg", "topic=tea", "--seed", "1", *on_fake]
    _, shown, err = sgc_command(*arguments)
    assert "5 requests, " in err
    assert "seed 1" in err
    _, streamed, _ = sgc_command(*arguments, "--stream")
    assert streamed == shown
    _, out, err = sgc_command(*arguments, "--stream", "--json")
    assert json.loads(out)["text"] + "\n" == shown == err


def test_trace_file_is_a_chrome_trace(sgc_command, tip, tmp_path):
    code, _, _ = sgc_command(
        "run", "tip.sgir", "--arg", "topic=tea", "--model", "fake", "--trace", "t.json"
    )
    assert code == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {event["name"] for event in events} >= {"tip_1", "paragraph", "summary"}


def test_arguments_are_read_as_their_types(sgc_command, on_fake, tmp_path):
    path = written(
        tmp_path,
        "@sgc.function\n"
        "def p(s, t, n: int, f: float = 0.5, xs: list[str] = ['d']):\n"
        "    s += f'{t} {n} {f}'\n"
        "    return n\n",
    )
    (tmp_path / "args.json").write_text('{"t": "5"}')
    arguments = ["--args", "@args.json", "--arg", "n=7", *on_fake, "--json"]
    found = json.loads(sgc_command("run", path, *arguments)[1])
    assert (found["text"], found["return"]) == ("5 7 0.5", 7)


def test_a_result_that_is_no_json_is_shown_as_python_writes_it(sgc_command, on_fake, tmp_path):
    path = written(
        tmp_path, "@sgc.function\ndef p(s, n: int):\n    s += 'tea'\n    return {(n, 2): n}\n"
    )
    code, out, err = sgc_command("run", path, "--arg", "n=1", *on_fake)
    assert code == 0, err
    assert "returns: {(1, 2): 1}" in out
    code, out, err = sgc_command("run", path, "--arg", "n=1", *on_fake, "--json")
    assert (code, out) == (1, "")
    assert "sgc: error: the result cannot be written as JSON: keys must be" in err


def test_an_argument_from_standard_input_is_read_once(sgc_command, on_fake, tmp_path, monkeypatch):
    path = written(tmp_path, "@sgc.function\ndef p(s, given):\n    s += '<' + given + '>' + sgc.gen('g', max_tokens=2)\n")  # fmt: skip
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"tea")))
    code, out, err = sgc_command("run", path, *on_fake, "--arg", "given=@-")
    assert code == 0, err
    assert out.startswith("<tea>")


def test_an_argument_may_be_a_pipe(sgc_command, on_fake, tmp_path):
    path = written(tmp_path, "@sgc.function\ndef p(s, x):\n    s += x\n")
    os.mkfifo(tmp_path / "pipe")
    for given, text in (
        (("-a", "x=@pipe"), b"of a pipe\r\n"),
        (("--args", "@pipe"), b'{"x": "y"}'),
    ):
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[text])
        writer.start()
        code, out, err = sgc_command("run", path, *on_fake, *given)
        writer.join()
        assert (code, out) == (0, "of a pipe\n\n" if given[0] == "-a" else "y\n"), err


def test_an_argument_that_is_not_utf_8(sgc_command, on_fake, tmp_path):
    path = written(tmp_path, "@sgc.function\ndef p(s, x):\n    s += x\n")
    (tmp_path / "x.txt").write_bytes(b"a\xff")
    code, _, err = sgc_command("run", path, *on_fake, "-a", "x=@x.txt")
    assert (code, "--arg x: x.txt is not UTF-8 text" in err) == (1, True)
    code, _, err = sgc_command("run", path, *on_fake, "-a", os.fsdecode(b"x=a\xff"))
    assert (code, "--arg x: not UTF-8 text: 'a\\udcff'" in err) == (2, True)


def test_a_run_that_fails_leaves_no_trace_file(sgc_command, tip, tmp_path):
    asked = ("run", "tip.sgir", "--arg", "topic=tea", "--trace")
    assert sgc_command(*asked, "t.json", "--engine", f"unix:{tmp_path}/none")[0] == 1
    assert not (tmp_path / "t.json").exists()
    code, _, err = sgc_command(*asked, "/dev/full", "--model", "fake")
    assert (code, "--trace /dev/full: No space left on device" in err) == (1, True)


def test_a_stream_that_ends_in_an_error_ends_its_line(sgc_command, on_fake, tmp_path):
    text = "@sgc.function\ndef p(s):\n    s += 'so far'\n    raise ValueError('no')\n"
    code, out, err = sgc_command(
        "run", written(tmp_path, text), *on_fake, "--stream", "--interpret"
    )
    assert (code, out) == (1, "so far\n")
    assert "ValueError: no" in err


def test_a_list_argument_is_read_as_json(sgc_command, on_fake, tmp_path):
    path = written(tmp_path, "@sgc.function\ndef p(s, xs: list):\n    s += '-'.join(xs)\n")
    run = ["run", path, "--interpret", *on_fake, "-q", "--arg"]
    assert sgc_command(*run, 'xs=["a", "b"]')[1] == "a-b\n"
    code, _, err = sgc_command(*run, 'xs=["a"')
    assert code == 2
    assert "expected list[json] as JSON" in err
    path = written(tmp_path, "@sgc.function\ndef p(s, ok: bool):\n    s += 'a'\n")
    assert (
        "--arg ok: expected true or false, found 'True'"
        in sgc_command("run", path, "--arg", "ok=True")[2]
    )
    code, _, err = sgc_command("compile", path, "--bind", 'xs=["a"')
    assert code == 2


def test_a_list_argument_that_is_too_deep(sgc_command, tmp_path):
    prog = written(tmp_path, "@sgc.function\ndef p(s, x: list[str]):\n    s += sgc.join('', x)\n")
    code, out, err = sgc_command("run", prog, "--model", "fake", "--arg", "x=" + "[" * 50_000)
    assert (code, out) == (2, "")
    assert "--arg x: expected list[text] as JSON" in err
    assert len(err) < 500


MANY_WAYS = """
@sgc.function
def program(s, q: str):
    s += q
    kept = ()
    for n in range(12):
        s += sgc.gen(f"x{n}", max_tokens=4)
        if s[f"x{n}"] == "keep":
            kept = (kept, n)
    s += f" {kept}"
"""


@pytest.fixture
def small_budget(monkeypatch):
    """Programs of few paths are over it, and soon."""
    monkeypatch.setattr(tracer, "Budget", lambda: Budget(runs=30, nodes=100))


@pytest.mark.usefixtures("small_budget")
def test_a_run_goes_on_in_the_source_and_nothing_is_asked_twice(sgc_command, on_fake, tmp_path):
    source = written(tmp_path, MANY_WAYS)
    assert sgc_command("compile", source, "-o", "p.sgir", "--no-check")[0] == 0
    asked = ("--arg", "q=hello", *on_fake, "--seed", "3", "--json")
    texts = []
    for how in ((source, "--no-check"), ("p.sgir", "--source", source), (source, "--interpret")):
        code, out, _ = sgc_command("run", *how, *asked)
        found = json.loads(out)
        texts.append(found["text"])
        assert (code, found["stats"]["requests"]) == (0, 12)
    assert len(set(texts)) == 1
    code, _, err = sgc_command("run", "p.sgir", *asked)
    assert code == 1
    assert "this path of the program was not compiled" in err
    assert "--source" in err


@pytest.mark.usefixtures("small_budget")
def test_the_source_must_be_what_was_compiled(sgc_command, tmp_path):
    source = written(tmp_path, MANY_WAYS)
    assert sgc_command("compile", source, "-o", "p.sgir", "--no-check")[0] == 0
    written(tmp_path, MANY_WAYS.replace("range(12)", "range(11)"))
    code, _, err = sgc_command("run", "p.sgir", "--source", source, "--arg", "q=x")
    assert code == 1
    assert "'program' changed since program was compiled" in err
    assert "compile it again" in err
    code, _, err = sgc_command("run", source, "--source", source, "--arg", "q=x")
    assert code == 2
    assert "this is Python already" in err


def test_a_program_edited_within_a_second_runs_as_it_is(
    sgc_command, on_fake, tmp_path, monkeypatch
):
    """Python tells old bytecode by the second and the size of its source."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for word in ("old", "new"):
        path = written(tmp_path, f"@sgc.function\ndef p(s):\n    s += '{word}'\n")
        os.utime(path, (1, 1))
        monkeypatch.delitem(sys.modules, Path(path).stem, raising=False)
        code, out, err = sgc_command("run", path, *on_fake)
        assert (code, out.strip()) == (0, word), err
    assert not (tmp_path / "__pycache__").exists()


def test_a_job_that_is_done_is_refused_for_another_program_or_options(sgc_command, tmp_path):
    text = "import sgc\n@sgc.function\ndef job(s, x):\n    s += x + sgc.gen('y', max_tokens=2)\n"
    for name, source in (("job.py", text), ("edited.py", text.replace("x +", "x + '!' +"))):
        (tmp_path / name).write_text(source)
    (tmp_path / "rows.jsonl").write_text('{"x": "a"}\n{"x": "b"}\n')
    files = ("--rows", "rows.jsonl", "--out", "out.jsonl", "--resume", "job.log", "-q")
    assert sgc_command("run", "job.py", "--model", "fake", *files)[0] == 0
    done = (tmp_path / "out.jsonl").read_text()
    for how in ((), ("--interpret",)):
        assert sgc_command("run", "job.py", "--model", "fake", *files, *how)[0] == 0
        code, _, err = sgc_command("run", "edited.py", "--model", "fake", *files, *how)
        assert (code, "is the log of job as it was then" in err) == (1, True), err
        code, _, err = sgc_command("run", "job.py", "--model", "fake", *files, "-t", "0.5", *how)
        assert code in (1, 2), err
        assert re.search(
            r"was written with seed=\d+, and this run has seed=\d+, temperature=0.5\n", err
        )
    assert (tmp_path / "out.jsonl").read_text() == done
    code, _, err = sgc_command("run", "job.py", *files)
    assert (code, "was written on fake, not on sgc-tiny" in err) == (1, True), err
    assert "go on with fake; or begin a new log (a job: and another --out)" in err
    assert "not on m" in sgc_command("run", "job.py", "-e", "anthropic:m?api=x", *files)[2]
    code, _, err = sgc_command("run", "job.py", "-e", "unix:gone", *files[:-1])
    assert (code, "done, on fake; unix:gone is not asked" in err) == (0, True), err
    assert (tmp_path / "out.jsonl").read_text() == done
