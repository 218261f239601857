"""The command line: what it prints where, its exit codes, and one clear message per mistake."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests_support import written
from waiting import BOUND_S

from sgc.ir.file.sgir import to_bytes
from sgc.ir.text.parser import parse
from sgc.passes.base import Pass, Preserves
from sgc.passes.pipeline import PASSES
from sgc.programs.program import load
from sgc.tracing import tracer
from sgc.tracing.paths.explore import Budget

ROOT = Path(__file__).resolve().parents[2]
TIP = str(ROOT / "examples" / "tip_suggestion.py")
SGC = [sys.executable, "-P", "-m", "sgc"]


@pytest.fixture
def tip(sgc_command, tmp_path) -> Path:
    assert sgc_command("compile", TIP, "-o", "tip.sgir")[0] == 0
    return tmp_path / "tip.sgir"


# -- what works ------------------------------------------------------------------------


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
        told = "nothing to point out\nat most 5 requests, 176 generated tokens\n"
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


def test_stream_and_text_show_the_same(sgc_command, tip):
    arguments = ["run", "tip.sgir", "--arg", "topic=tea", "--seed", "1", "--model", "fake"]
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


def test_arguments_are_read_as_their_types(sgc_command, tmp_path):
    path = written(
        tmp_path,
        "@sgc.function\n"
        "def p(s, t, n: int, f: float = 0.5, xs: list[str] = ['d']):\n"
        "    s += f'{t} {n} {f}'\n"
        "    return n\n",
    )
    (tmp_path / "args.json").write_text('{"t": "5"}')
    arguments = ["--args", "@args.json", "--arg", "n=7", "--model", "fake", "--json"]
    found = json.loads(sgc_command("run", path, *arguments)[1])
    assert (found["text"], found["return"]) == ("5 7 0.5", 7)


def test_bind_fixes_arguments(sgc_command, tmp_path):
    path = written(
        tmp_path,
        "@sgc.function\ndef p(s, xs, n: int):\n    s += '-'.join(xs) + str(n)\n",
    )
    code, _, err = sgc_command("compile", path, "--bind", 'xs=["a", "b"]', "-o", "p.sgir")
    assert code == 0, err
    found = sgc_command("run", "p.sgir", "--arg", "n=2", "--model", "fake", "-q")[1]
    assert found == "a-b2\n"


@pytest.mark.parametrize(
    "name", ["", "compile", "run", "dump", "explain", "verify", "serve", "top", "version"]
)
def test_help_is_there(sgc_command, name):
    code, out, _ = sgc_command(*filter(None, [name]), "--help")
    assert code == 0
    assert "Usage: sgc" in out


def test_version(sgc_command):
    assert sgc_command("version")[1].startswith("sgc 0.")
    assert sgc_command("--version")[1].startswith("sgc 0.")


def test_levels_are_written_as_compilers_do(sgc_command):
    nodes = [sgc_command("compile", TIP, f"-O{level}")[1].count("= const") for level in range(4)]
    assert nodes[0] > nodes[1] == nodes[2] == nodes[3]


# -- which function ----------------------------------------------------------------------


def test_entry_rules(sgc_command, tmp_path):
    one, two = (
        "@sgc.function\ndef {}(s):\n    s += 'x'\n",
        "@sgc.function\ndef other(s):\n    s += 'y'\n",
    )
    cases = {
        "only.py": one.format("a"),
        "b.py": one.format("main") + two,
        "c.py": one.format("c") + two,
    }
    for name, body in cases.items():
        assert "const" in sgc_command("compile", written(tmp_path, body, name))[1]
    several = written(tmp_path, one.format("a") + two, "d.py")
    code, _, err = sgc_command("compile", several)
    assert code == 2
    assert "there are: a, other" in err
    assert '"y"' in sgc_command("compile", f"{several}:other")[1]
    code, _, err = sgc_command("compile", f"{several}:missing")
    assert code == 2
    assert "no @sgc.function 'missing'" in err
    none = written(tmp_path, "x = 1\n", "e.py")
    assert "no @sgc.function in it" in sgc_command("compile", none)[2]


# -- bad input ---------------------------------------------------------------------------


def changed(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def newer(data: bytes) -> bytes:
    return data[:4] + b"\x63\x00" + data[6:]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[: len(data) // 2], "truncated"),
        (changed, "altered"),
        (newer, "version"),
        (lambda data: b"", "empty"),
        (lambda data: b"not a program at all, but some text", "begins with"),
    ],
)
@pytest.mark.parametrize("command", [["run"], ["dump"], ["verify"]])
def test_damaged_files(sgc_command, tip, damage, message, command):
    tip.write_bytes(damage(tip.read_bytes()))
    code, out, err = sgc_command(*command, "tip.sgir")
    assert (code, out) == (1, "")
    assert message in err
    assert "tip.sgir" in err


BAD = {
    "missing program": (["run", "missing.sgir"], 1, "missing.sgir"),
    "missing source": (["compile", "missing.py"], 1, "missing.py: no such file"),
    "a folder": (["run", "."], 1, "folder"),
    "missing argument": (["run", "tip.sgir"], 2, "missing argument 'topic' (text)"),
    "surplus argument": (["run", "tip.sgir", "--arg", "topic=a", "--arg", "x=b"], 2, "unknown argument 'x'"),
    "wrong type": (["run", "tip.sgir", "--args", '{"topic": 3}'], 2, "'topic' must be text, found int 3"),
    "twice": (["run", "tip.sgir", "--args", '{"topic": "a"}', "--arg", "topic=b"], 2, "--args and by --arg"),
    "not JSON": (["run", "tip.sgir", "--args", "{topic}"], 2, "not valid JSON"),
    "not an object": (["run", "tip.sgir", "--args", "[1]"], 2, "expected a JSON object"),
    "no such file": (["run", "tip.sgir", "--args", "@nope.json"], 1, "nope.json"),
    "not a pair": (["run", "tip.sgir", "--arg", "topic"], 2, "expected NAME=VALUE"),
    "unreachable": (["run", "tip.sgir", "--arg", "topic=a", "--engine", "unix:nobody.sock"], 1, "nobody.sock"),
    "unreachable port": (["run", "tip.sgir", "--arg", "topic=a", "--engine", "grpc://127.0.0.1:9"], 1, "127.0.0.1:9"),
    "bad address": (["run", "tip.sgir", "--arg", "topic=a", "--engine", "http://x"], 2, "unknown engine address"),
    "engine and model": (["run", "tip.sgir", "--arg", "topic=a", "--engine", "unix:x", "--model", "fake"], 2, "--model"),
    "unknown model": (["run", "tip.sgir", "--arg", "topic=a", "--model", "./no/such"], 1, "no/such"),
    "interpret a file": (["run", "tip.sgir", "--interpret"], 2, "needs the Python source"),
    "bad temperature": (["run", "tip.sgir", "--arg", "topic=a", "--temperature", "-1", "--model", "fake"], 2, "temperature must be from 0"),
    "unknown pass": (["compile", TIP, "--passes", "nope"], 2, "there is no pass 'nope'"),
    "unknown print-after": (["compile", TIP, "--print-after", "nope"], 2, "there is no pass 'nope'"),
    "unknown bind": (["compile", TIP, "--bind", "x=1"], 2, "no argument 'x' to bind"),
    "unwritable": (["compile", TIP, "-o", "no/such/folder.sgir"], 1, "no/such"),
    "output is source": (["compile", TIP, "-o", "prog.py"], 2, "must not replace Python source"),
    "output is a folder": (["compile", TIP, "-o", "."], 2, "found the folder"),
    "no JSON number": (["run", "tip.sgir", "--args", '{"topic": NaN}'], 2, "NaN is no JSON"),
    "too deep": (["run", "tip.sgir", "--args", "[" * 50_000], 2, "--args: not valid JSON"),
    "half a character": (["run", "tip.sgir", "--args", '{"topic": "\\ud800"}'], 2, "not valid Unicode"),
    "timeline nowhere": (["run", "tip.sgir", "--arg", "topic=a", "--trace", "no/such/t.json"], 2, "--trace no/such/t.json"),
    "unknown command": (["frobnicate"], 2, "No such command"),
    "unknown option": (["run", "tip.sgir", "--frobnicate"], 2, "No such option"),
    "public without token": (["serve", "--model", "fake", "--listen", "0.0.0.0:0"], 2, "token"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_message(sgc_command, tip, case):
    argv, expected, message = BAD[case]
    code, out, err = sgc_command(*argv)
    assert message in err
    assert (code, out) == (expected, "")


SOURCES = {
    "loop": ("@sgc.function\ndef p(s, x):\n    for c in x:\n        s += c\n", "prog.py:4: a loop over the characters of x"),
    "name too early": ("@sgc.function\ndef p(s):\n    s += s['later']\n", "prog.py:4: no variable 'later'"),
    "raises": ("@sgc.function\ndef p(s):\n    s += 1 / 0\n", "prog.py:4: the program raised ZeroDivisionError"),
    "syntax": ("def p(:\n", "prog.py:2: not valid Python"),
    "import": ("import no_such_module\n", "prog.py:2: importing the program failed"),
}  # fmt: skip


@pytest.mark.parametrize("case", SOURCES)
def test_programs_that_cannot_be_compiled_name_the_line(sgc_command, tmp_path, case):
    body, message = SOURCES[case]
    code, out, err = sgc_command("compile", written(tmp_path, body), "-o", "p.sgir")
    assert message in err
    assert (code, out) == (1, "")
    assert not (tmp_path / "p.sgir").exists()


def test_a_prompt_longer_than_the_context(sgc_command, tmp_path):
    path = written(tmp_path, "@sgc.function\ndef p(s, x):\n    s += x + sgc.gen('g')\n")
    (tmp_path / "a.json").write_text(json.dumps({"x": "word " * 50_000}))
    code, _, err = sgc_command("run", path, "--args", "@a.json", "--model", "fake")
    assert code == 1
    assert "prog.py:4" in err
    assert "context" in err


def test_debug_shows_the_traceback(tmp_path):
    run = [*SGC, "compile", "missing.py", "--debug"]
    done = subprocess.run(
        run, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "missing.py: no such file" in done.stderr


def test_a_file_with_hostile_contents_runs_nothing(sgc_command, tip, tmp_path):
    """Names in a file are data: a program called like a module imports nothing."""
    graph = parse(load(tip).text().replace("@tip_suggestion", "@os.system"))
    (tmp_path / "h.sgir").write_bytes(to_bytes(graph))
    before = set(sys.modules)
    assert sgc_command("verify", "h.sgir")[0] == 0
    assert not {m for m in set(sys.modules) - before if not m.startswith(("sgc", "encodings"))}


def test_a_list_argument_is_read_as_json(sgc_command, tmp_path):
    path = written(tmp_path, "@sgc.function\ndef p(s, xs: list):\n    s += '-'.join(xs)\n")
    run = ["run", path, "--interpret", "--model", "fake", "-q", "--arg"]
    assert sgc_command(*run, 'xs=["a", "b"]')[1] == "a-b\n"
    code, _, err = sgc_command(*run, 'xs=["a"')
    assert code == 2
    assert "expected json as JSON" in err
    code, _, err = sgc_command("compile", path, "--bind", 'xs=["a"')
    assert code == 2


def test_a_list_argument_that_is_too_deep(sgc_command, tmp_path):
    prog = written(tmp_path, "@sgc.function\ndef p(s, x: list[str]):\n    s += sgc.join('', x)\n")
    code, out, err = sgc_command("run", prog, "--model", "fake", "--arg", "x=" + "[" * 50_000)
    assert (code, out) == (2, "")
    assert "--arg x: expected list[text] as JSON" in err
    assert len(err) < 500


def test_output_follows_links_and_writes_into_pipes(sgc_command, tmp_path):
    (tmp_path / "real.sgir").write_bytes(b"old")
    (tmp_path / "link.sgir").symlink_to("real.sgir")
    assert sgc_command("compile", TIP, "-o", "link.sgir")[0] == 0
    assert (tmp_path / "link.sgir").is_symlink()
    assert load(tmp_path / "real.sgir").name == "tip_suggestion"
    os.mkfifo(tmp_path / "pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    assert sgc_command("compile", TIP, "-o", "pipe")[0] == 0
    reader.join(timeout=BOUND_S)
    assert found == [(tmp_path / "real.sgir").read_bytes()]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_serve_and_run_against_it(sgc_command, tip, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    serve = [*SGC, "serve", "--model", "fake", "--listen", "127.0.0.1:0", "--token-file", "token"]
    server = subprocess.Popen(serve, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        line = server.stderr.readline()
        assert line.startswith("listening on ")
        address = line.split()[-1].removeprefix("grpc://")
        run = ["run", "tip.sgir", "--arg", "topic=a", "--seed", "1", "--json"]
        run += ["--engine", f"grpc://{address}"]
        code, _, err = sgc_command(*run)
        assert code == 1
        assert "token" in err
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SGC_TOKEN", "secret")
            first, second = (json.loads(sgc_command(*run)[1]) for _ in range(2))
        assert first["text"] == second["text"]
        assert second["stats"]["computed_tokens"] == 5
    finally:
        server.terminate()
        assert server.wait(timeout=BOUND_S) == 0
        server.stderr.close()


def test_interrupt_ends_at_once_and_leaves_no_process(tmp_path):
    path = written(tmp_path, "import time\n@sgc.function\ndef p(s):\n    s += 'x' + sgc.gen('g')\n    print(s['g'], flush=True)\n    time.sleep(60)\n")  # fmt: skip
    run = [*SGC, "run", path, "--interpret", "--model", "fake"]
    child = subprocess.Popen(
        run, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline()
    engines = _children(child.pid)
    assert engines
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=BOUND_S)
    assert child.returncode == 130
    assert err.strip() == "sgc: interrupted"
    assert not [pid for pid in engines if Path(f"/proc/{pid}").exists() and _is_alive(pid)]


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    found = [int(child) for child in path.read_text().split()]
    return found + [grandchild for child in found for grandchild in _children(child)]


def _is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_output_to_a_closed_pipe_is_quiet(tip):
    read, write = os.pipe()
    os.close(read)
    run = [*SGC, "dump", str(tip)]
    done = subprocess.run(run, stdout=write, stderr=subprocess.PIPE, check=False, timeout=BOUND_S)
    os.close(write)
    assert done.stderr == b""


def test_a_type_as_a_schema_compiles_in_a_fresh_process(tmp_path):
    """pydantic reads the environment when it makes its first schema; the program does not."""
    body = "@sgc.function\ndef p(s):\n    s += 'x' + sgc.gen('a', dtype=list[int])\n"
    command = [sys.executable, "-P", "-m", "sgc", "compile", written(tmp_path, body), "-o"]
    done = subprocess.run([*command, str(tmp_path / "p.sgir")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# -- what is not compiled to its end ---------------------------------------------------

MANY_WAYS = """
@sgc.function
def program(s, q: str):
    s += q
    kept = []
    for n in range(12):
        s += sgc.gen(f"x{n}", max_tokens=4)
        if s[f"x{n}"] == "keep":
            kept.append(n)
    s += f" {kept}"
"""


@pytest.fixture
def small_budget(monkeypatch):
    """Programs of few paths are over it."""
    monkeypatch.setattr(tracer, "Budget", lambda: Budget(runs=30))


@pytest.mark.usefixtures("small_budget")
def test_a_run_goes_on_in_the_source_and_nothing_is_asked_twice(sgc_command, tmp_path):
    source = written(tmp_path, MANY_WAYS)
    assert sgc_command("compile", source, "-o", "p.sgir", "--no-check")[0] == 0
    asked = ("--arg", "q=hello", "--model", "fake", "--seed", "3", "--json")
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


# -- passes ----------------------------------------------------------------------------


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
