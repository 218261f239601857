"""What `allow_ambient` lets a compiled program read: baked in, held still, guarded or told."""

from __future__ import annotations

import datetime
import os
import random
import secrets
import socket
import subprocess
import sys
import time
import uuid
import warnings
from datetime import date
from pathlib import Path
from random import choice

import pytest
from control_flow import replying

import sgc
from sgc.errors import SgcWarning, TraceError
from sgc.programs.compiling import compile_function
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions

VARIABLE = "SGC_TEST_AMBIENT"
GENERATOR = random.Random(7)


def compiled(body, **bind) -> tuple[Program, list[str]]:
    """The program, which passed its check against the interpreter; and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program = compile_function(sgc.function(body), bind, allow_ambient=True)
    return program, [str(w.message) for w in caught if w.category is SgcWarning]


def text_of(program: Program, **arguments) -> str:
    return program.run_once(arguments, RunOptions(seed=1), replying(1, ["a", "no", "yes"])).text()


def guarded(program: Program) -> dict[str, str]:
    kinds = ("environment", "file", "folder")
    return {g.name: g.kind for g in program.graph.guards if g.kind in kinds}


# -- clocks and random numbers -------------------------------------------------------------


def reads_time(s, x):
    s += f"{time.time()} {time.perf_counter_ns()}" + x


def reads_today(s, x):
    s += f"{date.today()} {datetime.datetime.now()} {datetime.datetime.now(datetime.UTC)}" + x


def reads_in_a_helper(s, x):
    s += stamp() + x


def stamp() -> str:
    return f"{time.monotonic()}"


def imports_and_reads(s, x):
    import time as clock

    s += f"{clock.time_ns()}" + x


def draws(s, x):
    s += choice("abcdefgh") + f"{random.random()} {random.randint(1, 10**9)}" + x


def draws_from_its_own(s, x):
    s += f"{GENERATOR.random()} {random.Random().random}"[:20] + x


def draws_secrets(s, x):
    s += f"{uuid.uuid4()} {secrets.token_hex(8)} {os.urandom(4).hex()}" + x


@pytest.mark.parametrize(
    "body",
    [
        reads_time,
        reads_today,
        reads_in_a_helper,
        imports_and_reads,
        draws,
        draws_from_its_own,
        draws_secrets,
    ],
)
def test_what_cannot_be_read_again_is_kept_with_a_warning_that_names_the_line(body):
    program, told = compiled(body)
    assert text_of(program, x="!") == text_of(program, x="!")
    assert told
    assert all("keeps for ever" in line for line in told)
    first = (stamp if body is reads_in_a_helper else body).__code__.co_firstlineno
    assert all(line.startswith("test_ambient.py:") for line in told)
    assert {int(line.split(":")[1]) - first for line in told} <= {1, 3}
    assert not guarded(program)


def test_draws_differ_from_each_other_and_every_run_has_the_same():
    def body(s, x):
        drawn = [random.randint(1, 10**9) for _ in range(4)]
        random.shuffle(drawn)
        s += " ".join(map(str, drawn)) + x

    program, told = compiled(body)
    numbers = text_of(program, x="").split()
    assert len(set(numbers)) == 4
    assert len(told) == 2, "one warning a line"


def test_a_draw_may_be_among_values_known_only_at_run_time():
    def body(s, x):
        s += x + sgc.gen("a")
        s += random.choice([x, s["a"]])

    program, _ = compiled(body)
    assert text_of(program, x="q")


def test_what_is_drawn_decides_ways_that_are_compiled():
    def body(s, x):
        s += x + sgc.select("kind", choices=["yes", "no"])
        if s["kind"] == "yes":
            s += f" at {time.time()}"
        s += f" drawn {random.random()}" + sgc.gen("a")

    program, _ = compiled(body)
    assert len(program.graph.blocks) > 1


def test_a_clock_in_a_loop_that_is_compiled_as_one_stands_still():
    def body(s, x):
        for _ in sgc.turns(4):
            s += f" at {time.time()} " + sgc.gen("a")
            if s["a"] == "yes":
                break

    program, told = compiled(body)
    assert len(told) == 1
    assert program.text().count(" at ") == 1, "it is not unrolled"


def test_a_draw_in_a_loop_that_is_compiled_as_one_is_refused():
    def body(s, x):
        for _ in sgc.turns(4):
            s += f" drawn {random.random()} " + sgc.gen("a")
            if s["a"] == "yes":
                break

    with pytest.raises(TraceError) as caught:
        compiled(body)
    assert caught.value.where == f"test_ambient.py:{body.__code__.co_firstlineno + 2}"


def test_the_programs_own_generator_is_not_moved_on():
    before = GENERATOR.getstate(), random.getstate()
    compiled(draws_from_its_own)
    compiled(draws)
    assert (GENERATOR.getstate(), random.getstate()) == before


def test_dates_stay_dates():
    def body(s, x):
        now = datetime.datetime.now()
        assert isinstance(now, datetime.datetime)
        assert datetime.date(2024, 2, 29) + datetime.timedelta(1) == datetime.date(2024, 3, 1)
        s += f"{now:%Y}" + x

    program, _ = compiled(body)
    assert text_of(program, x="") == str(datetime.datetime.now().year)


def test_waiting_for_a_clock_ends_with_an_error():
    def body(s, x):
        end = time.time() + 0.01
        while time.time() < end:
            pass
        s += x

    with pytest.raises(TraceError, match="stands still") as caught:
        compiled(body)
    assert caught.value.where == f"test_ambient.py:{body.__code__.co_firstlineno + 2}"


# -- the environment, files and folders ----------------------------------------------------


@sgc.function(allow_ambient=True)
def reads_variable(s, x):
    s += os.environ.get(VARIABLE, "none") + x


def test_a_variable_is_guarded_and_its_value_is_nowhere_in_the_guard(monkeypatch):
    monkeypatch.setenv(VARIABLE, "sesame-42")
    program, told = compiled(reads_variable.python)
    assert not told
    assert guarded(program) == {VARIABLE: "environment"}
    assert not any("sesame" in guard.value for guard in program.graph.guards)
    assert text_of(program, x="!") == "sesame-42!"


def test_a_loaded_program_warns_of_what_has_changed(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, "one")
    data = tmp_path / "data.txt"
    data.write_text("first")

    def body(s, x, path):
        s += os.environ[VARIABLE] + Path(path).read_text() + ",".join(os.listdir(tmp_path)) + x

    program, told = compiled(body, path=str(data))
    assert not told
    folder = str(tmp_path)
    assert guarded(program) == {VARIABLE: "environment", str(data): "file", folder: "folder"}
    saved = tmp_path.parent / f"{tmp_path.name}.sgir"
    program.save(saved)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert text_of(sgc.load(saved), x="!") == "onefirstdata.txt!"
    monkeypatch.delenv(VARIABLE)
    data.write_text("second")
    (tmp_path / "another").touch()
    with pytest.warns(SgcWarning) as caught:
        sgc.load(saved)
    told = str(caught[0].message)
    for what in (f"environment {VARIABLE}", f"file {data}", f"folder {folder}"):
        assert what in told


def test_a_file_that_is_not_there_is_no_change_of_it(tmp_path):
    data = tmp_path / "data.txt"
    data.write_text("first")

    def body(s, x):
        s += data.read_text() + x

    program, _ = compiled(body)
    program.save(tmp_path / "p.sgir")
    data.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sgc.load(tmp_path / "p.sgir")


def test_the_jit_compiles_anew_when_what_was_read_has_changed(monkeypatch):
    for value in ("one", "one", "two"):
        monkeypatch.setenv(VARIABLE, value)
        state = reads_variable("!", backend=replying(1, ["a"]))
        assert state.text() == value + "!"
    assert reads_variable.explain() == "reads_variable(x: text): compiled"


def test_the_jit_does_not_keep_a_file_that_is_gone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.txt").write_text("there")

    @sgc.function(allow_ambient=True)
    def body(s, x):
        s += (Path("data.txt").read_text() if Path("data.txt").exists() else "gone") + x

    assert body("!", backend=replying(1, ["a"])).text() == "there!"
    Path("data.txt").unlink()
    assert body("!", backend=replying(1, ["a"])).text() == "gone!"


def test_the_jit_sees_a_file_that_comes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @sgc.function(allow_ambient=True)
    def body(s, x):
        s += ("there" if Path("data.txt").exists() or os.path.isdir("data") else "none") + x

    assert body("!", backend=replying(1, ["a"])).text() == "none!"
    Path("data.txt").write_text("")
    assert body("!", backend=replying(1, ["a"])).text() == "there!"
    Path("data.txt").unlink()
    Path("data").mkdir()
    assert body("!", backend=replying(1, ["a"])).text() == "there!"


def test_a_file_whose_name_is_no_text_cannot_be_guarded_and_is_told(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff"
    Path(os.fsdecode(name)).write_text("there")

    def body(s, x):
        with open(name) as file:
            s += file.read() + x

    program, told = compiled(body)
    assert not guarded(program)
    assert "opens a file" in told[0]
    program.save(tmp_path / "p.sgir")


def test_the_environment_is_guarded_by_bytes_too(monkeypatch):
    monkeypatch.setenv(VARIABLE, "sesame")

    def body(s, x):
        s += os.environb[VARIABLE.encode()].decode() + x

    program, _ = compiled(body)
    assert guarded(program) == {VARIABLE: "environment"}


def test_a_connection_cannot_be_guarded_and_is_told():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(128)
        address = server.getsockname()

        def body(s, x):
            with socket.create_connection(address) as connection:
                s += connection.family.name + x

        program, told = compiled(body)
    assert text_of(program, x="!") == "AF_INET!"
    assert [line.partition("program ")[2] for line in told] == [
        "looks up a host; compiled, it keeps for ever what it got now",
        "connects a socket; compiled, it keeps for ever what it got now",
    ]


# -- what stays refused --------------------------------------------------------------------


def writes(s, x):
    Path(os.devnull).write_text("x")
    s += x


def sleeps(s, x):
    time.sleep(0)
    s += x


def starts(s, x):
    subprocess.run(["true"], check=True)
    s += x


@pytest.mark.parametrize("body", [writes, sleeps, starts])
def test_what_acts_is_refused_all_the_same(body):
    with pytest.raises(TraceError, match="while being traced; a compiled program would not") as e:
        compiled(body)
    assert e.value.where == f"test_ambient.py:{body.__code__.co_firstlineno + 1}"


def test_a_name_known_only_at_run_time_is_refused():
    def variable(s, x):
        s += os.environ.get(x, "")

    def file(s, x):
        with open(x) as found:
            s += found.read()

    for body in (variable, file):
        with pytest.raises(TraceError, match="named by a value known only at run time"):
            compiled(body)


def test_a_clock_that_library_code_reads_is_not_held(tmp_path, monkeypatch):
    (tmp_path / "ambient_library.py").write_text(
        "import time\ndef stamp():\n    return f'{time.time_ns()}'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import ambient_library

    def body(s, x):
        s += ambient_library.stamp() + x

    with pytest.raises(TraceError, match=r"gave two different programs|differs when interpreted"):
        compiled(body)


def test_without_leave_the_error_says_how_to_give_it():
    with pytest.raises(TraceError, match="--allow-ambient"):
        sgc.function(reads_time).compile()


# -- what Python reads for itself -----------------------------------------------------------

HELPER = """
def grouped(s):
    with s.copy() as other:
        other["a"] = "b"
"""
SHOWS_SOURCE = """
import sgc
from helper_of_prog import grouped

@sgc.function
def p(s, x):
    s += x + sgc.gen("a", max_tokens=2)
    grouped(s)

print(p.compile().name)
"""


@pytest.mark.slow
def test_lines_that_warnings_show_are_no_data(tmp_path):
    """In a process of its own, whose warnings Python shows itself."""
    path = tmp_path / "prog.py"
    path.write_text(SHOWS_SOURCE)
    (tmp_path / "helper_of_prog.py").write_text(HELPER)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.stdout == "p\n", done.stderr
    assert "join leaves 'a' as it is" in done.stderr
