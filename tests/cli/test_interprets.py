"""`sgc run PROG.py` where a call would fall back: it interprets, and says so in a line."""

from __future__ import annotations

import json

import pytest
from tests_support import written


@pytest.fixture
def on(fake_engine):
    return ("--engine", fake_engine._engine.uri, "--seed", "1")


# Each is refused when it is compiled, at this line of its file, with this way out.
REFUSED = {
    "a name known only at run time": (
        "def p(s, q):\n    s += q + sgc.gen('a', max_tokens=2)\n    s += sgc.gen(s['a'].strip())\n",
        5, "a variable's name is a value known only at run time", "let it begin with a plain text",
    ),
    "how many forks": (
        "def p(s, q):\n    s += q + sgc.gen('a', max_tokens=2)\n    fs = s.fork(1 + len(s['a']))\n"
        "    for f in fs:\n        f += 'x'\n    for f in fs:\n        f += 'y'\n",
        9, "is appended to in a second loop", "in one turn of one `for`",
    ),
    "a change of what is outside": (
        "def p(s, q, xs=[1]):\n    xs.append(2)\n    s += q + sgc.gen('a', max_tokens=2)\n",
        2, "the program changes its argument 'xs'", "make a copy of it",
    ),
    "what is no value": (
        "def p(s, q):\n    s += q + sgc.gen('a', max_tokens=2)\n    return object\n",
        2, "a type cannot be part", "use text, numbers, lists",
    ),
    "a clock": (
        "def p(s, q):\n    import time\n    s += q + str(int(time.time() > 1))\n"
        "    s += sgc.gen('a', max_tokens=2)\n",
        5, "reads the clock", "pass it as an argument",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_run_interprets_what_cannot_be_compiled_and_says_so(sgc_command, on, tmp_path, case):
    body, line, what, way_out = REFUSED[case]
    path = written(tmp_path, "@sgc.function\n" + body)
    code, out, err = sgc_command("run", path, "--arg", "q=hi", *on, "-q")
    assert code == 0, err
    assert out == sgc_command("run", path, "--arg", "q=hi", *on, "-q", "--interpret")[1]
    (warning,) = err.splitlines()
    assert warning.startswith(f"sgc: warning: prog.py:{line}: ")
    for part in (what, "p is interpreted", way_out):
        assert part in warning
    code, out, err = sgc_command("run", path, "--arg", "q=hi", *on, "--full-graph")
    assert (code, out) == (1, "")
    assert err.startswith(f"sgc: error: prog.py:{line}: ")
    assert sgc_command("compile", path, "--full-graph")[2].startswith(
        f"sgc: error: prog.py:{line}: "
    )


def test_rows_are_interpreted_too(sgc_command, on, tmp_path):
    path = written(tmp_path, "@sgc.function\n" + REFUSED["a name known only at run time"][0])
    (tmp_path / "rows.jsonl").write_text('{"q": "a"}\n{"q": "b"}\n')
    code, out, err = sgc_command("run", path, "--rows", "rows.jsonl", "-q", *on)
    assert (code, len(out.splitlines())) == (0, 2)
    assert "p is interpreted" in err


def test_a_program_of_its_own_says_that_it_must_be_compiled(sgc_command, on, tmp_path):
    body = "@sgc.function(full_graph=True)\n" + REFUSED["a name known only at run time"][0]
    path = written(tmp_path, body)
    code, _, err = sgc_command("run", path, "--arg", "q=hi", *on)
    assert (code, "sgc: error: prog.py:5" in err) == (1, True)


def test_values_are_named_as_the_program_names_them(sgc_command, on, tmp_path):
    body = (
        "@sgc.tool(effect='pure')\ndef look(x: str) -> list[str]:\n    return [x]\n\n\n"
        "@sgc.function\ndef p(s, q):\n    s += q + sgc.gen('a', max_tokens=2)\n    {}\n"
    )
    names = {
        "[s, *look(s['a'])]": "look(…)",
        "d = {int(s['a'].strip()) + 1: s}": "int(a.strip()) + 1",
        "d = {s['a'] + '!': s}": "a",
        "[s, *s['a'].replace('x', q)]": "a.replace('x', q)",
        "[s, *s['a'].split()[0]]": "a.split()[0]",
    }
    for statement, name in names.items():
        _, _, err = sgc_command("compile", written(tmp_path, body.format(statement)))
        assert f"{name} " in err or f"{name}," in err or f"{{{name}}}" in err, (statement, err)
        assert "v0" not in err
        assert "v1" not in err


# -- types of arguments ------------------------------------------------------------------

MEMBER = """
@sgc.function
def p(s, q, is_member{default}):
    if is_member:
        s += "member "
    s += q + sgc.gen("a", max_tokens=2)
"""


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("default", "value"),
    [("", True), ("", 3), ("", []), ("", None), ("", "yes"),
     ("=None", False), ("=None", 0.5), ("=None", ["a"]), ("=None", {"a": 1})],
)  # fmt: skip
def test_the_types_of_arguments_decide_where_nothing_else_does(
    sgc_command, on, tmp_path, default, value
):
    path = written(tmp_path, MEMBER.format(default=default))
    given = ("--args", json.dumps({"q": "hi", "is_member": value}), *on, "-q")
    code, out, err = sgc_command("run", path, *given, "--full-graph")
    assert (code, err) == (0, "")
    assert out.startswith("member hi" if value else "hi")
    assert out == sgc_command("run", path, *given, "--interpret")[1]
    (tmp_path / "rows.jsonl").write_text(json.dumps({"q": "hi", "is_member": value}) + "\n")
    rows = ("run", path, "--rows", "rows.jsonl", *on, "-q", "--full-graph")
    assert (sgc_command(*rows)[0], sgc_command("explain", path, *given[:2])[0]) == (0, 0)


@pytest.mark.sweep
@pytest.mark.parametrize(("default", "value"), [("", True), ("=None", 3), ("", ["a"])])
def test_a_file_is_compiled_for_the_types_of_arguments(sgc_command, on, tmp_path, default, value):
    path = written(tmp_path, MEMBER.format(default=default))
    given = ("--args", json.dumps({"q": "hi", "is_member": value}))
    assert sgc_command("compile", path, "-o", "p.sgir", *given)[0] == 0
    code, out, _ = sgc_command("run", "p.sgir", *given, *on)
    assert (code, out.startswith("member hi")) == (0, True)
    assert sgc_command("estimate", path, *given)[0] == 0


def test_an_argument_of_another_type_says_what_to_annotate(sgc_command, on, tmp_path):
    path = written(tmp_path, MEMBER.format(default=""))
    assert sgc_command("compile", path, "-o", "p.sgir")[0] == 0
    code, _, err = sgc_command("run", "p.sgir", "--args", '{"q": "hi", "is_member": true}', *on)
    assert code == 2
    assert "argument 'is_member' must be text, found bool True" in err
    assert "`is_member: bool`" in err


def test_rows_that_disagree_are_interpreted(sgc_command, on, tmp_path):
    path = written(tmp_path, MEMBER.format(default="=None"))
    (tmp_path / "rows.jsonl").write_text('{"q": "a", "is_member": true}\n{"q": "b"}\n')
    code, out, err = sgc_command("run", path, "--rows", "rows.jsonl", "-q", *on)
    assert (code, len(out.splitlines())) == (0, 2)
    assert "argument 'is_member' of p must be known when compiling" in err
    assert "is_member: bool" in err
