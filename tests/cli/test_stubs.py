"""`sgc stubs`: what a file's programs take and give, for type checkers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
from __future__ import annotations
import enum
from dataclasses import dataclass, field
import sgc

LIMIT = 3
NAMES: list[str] = ["a"]

@dataclass
class Card:
    name: str
    tags: list[str] = field(default_factory=list)

    def shown(self, width: int = 3) -> str:
        return self.name

class Color(enum.Enum):
    RED = "red"

def helper(x: str, *, y: int = 2) -> str:
    return x * y

print("what a file prints is no part of its stubs")
if LIMIT:
    def inside() -> int:
        return 1

try:
    import nothing_of_this_name
    MODE = "fast"
except ImportError:
    MODE = "slow"

@sgc.function
def tips(s, topic: str, n: int = 3) -> str:
    s += topic + sgc.gen("x", max_tokens=3) + sgc.gen_int("k")
    s["rows"] = [s["x"]]
    if s["x"] == "a":
        s += sgc.select("c", choices=["a", "b"])
    return s["x"]

@sgc.function
def clock(s, seed: int, *rest: str):
    import time
    s += str(time.time())
"""
USE = """
from typing import reveal_type
from prog import LIMIT, MODE, Card, Color, clock, helper, tips

state = tips("tea", temperature=0.0)
reveal_type((state["x"], state["k"], state["rows"], state["c"], state["other"]))
reveal_type((state.text_of("x"), state.ret_value, tips.run("tea")["k"], tips.run("tea").ret_value))
reveal_type((LIMIT, MODE, Card("x").shown(), Color.RED.value, helper("x", y=3)))
clock(3, "a", "b")
tips(topc="tea")
tips("tea", n="three")
tips("tea", temperatur=0.1)
"""
FORKS = """
import sgc

@sgc.function
def known(s, xs: list[str]):
    for f in s.fork(2):
        f += sgc.gen("y")
    s += sgc.gen("z")

@sgc.function
def counted(s, xs: list[str]):
    for f in s.fork(len(xs)):
        f += sgc.gen("y")
    s += sgc.gen("z")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)
    return path


def test_stubs_have_all_that_the_file_has(program: Path, sgc_command: Any) -> None:
    code, out, err = sgc_command("stubs", str(program))
    assert (code, out) == (0, f"{program.with_suffix('.pyi')}: 2 programs\n"), err
    text = program.with_suffix(".pyi").read_text()
    stub = ast.parse(text)
    names = {each.name for each in stub.body if isinstance(each, ast.ClassDef)}
    assert names >= {"Card", "Color", "_TipsRun", "_TipsStream", "_Tips", "_Clock"}
    for line in (
        "LIMIT: int",
        "NAMES: list[str]",
        "MODE: str",
        "inside: _Any",
        "    def __getitem__(self, name: _Literal['rows']) -> list[str]: ...",
        "    def __getitem__(self, name: _Literal['c']) -> _Literal['a', 'b']: ...",
        "tips: _Tips",
    ):
        assert line in text.split("\n")
    assert "def __call__(self, seed: int, *rest: str, backend: _Any=..." in text
    assert "the program reads the clock" in text  # why nothing is known of its variables


def test_stubs_go_where_they_are_wanted(program: Path, sgc_command: Any) -> None:
    code, out, _ = sgc_command("stubs", str(program), "-o", "-")
    assert code == 0
    assert "tips: _Tips" in out
    assert "what a file prints" not in out
    assert not program.with_suffix(".pyi").exists()


def test_children_of_a_fork_take_no_variables_from_the_main_stream(
    tmp_path: Path, sgc_command: Any
) -> None:
    path = tmp_path / "forks.py"
    path.write_text(FORKS)
    code, out, err = sgc_command("stubs", str(path), "-o", "-")
    assert code == 0, err
    for name in ("Known", "Counted"):
        members = out.split(f"class _{name}Stream(")[1].split("\nclass ")[0]
        assert "(self, name: _Literal['z']) -> str: ..." in members
        assert "_Literal['y']" not in members


def test_a_file_without_programs_has_no_stubs(tmp_path: Path, sgc_command: Any) -> None:
    (tmp_path / "none.py").write_text("x = 1\n")
    code, _, err = sgc_command("stubs", str(tmp_path / "none.py"))
    assert code == 2
    assert "there is no @sgc.function in it" in err
    assert sgc_command("stubs", str(tmp_path / "missing.py"))[0] == 2


def test_stubs_of_somebody_else_stay(program: Path, sgc_command: Any) -> None:
    stub = program.with_suffix(".pyi")
    stub.write_text("x: int\n")
    code, _, err = sgc_command("stubs", str(program))
    assert code == 2
    assert "-o" in err
    assert stub.read_text() == "x: int\n"
    stub.unlink()
    for _ in range(2):
        assert sgc_command("stubs", str(program))[0] == 0


@pytest.mark.slow
def test_mypy_reads_them_and_programs_themselves(program: Path, sgc_command: Any) -> None:
    """Also of a program without stubs, in an install as this one is."""
    sgc_command("stubs", str(program))
    (program.parent / "use.py").write_text(USE)
    inline = PROGRAM + "\ntips(topc='tea')\ntips('tea', n=2)\nother = tips.bind(topic='x')\n"
    (program.parent / "inline.py").write_text(inline)
    command = [sys.executable, "-m", "mypy", "use.py", "inline.py"]
    done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)
    said = done.stdout
    for found in (
        "tuple[str, str, list[str], Literal['a'] | Literal['b'], Any]",
        "tuple[str, str, str, str]",
        "tuple[int, str, str, Literal['red']?, str]",
        'use.py:10: error: Unexpected keyword argument "topc"',
        'use.py:11: error: Argument "n"',
        'use.py:12: error: Unexpected keyword argument "temperatur"',
        'Unexpected keyword argument "topc" for "__call__" of "FunctionOf"',
    ):
        assert found in said
    assert said.count("error:") == 4 + said.count("import-not-found")
