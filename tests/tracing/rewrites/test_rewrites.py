"""What is refused names its line, the construct and a rewrite, and the rewrite compiles whole."""

from __future__ import annotations

import importlib.util
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from control_flow import outcome, replying
from tracing.rewrites.rewritten import PASSED, SAME, Pair
from tracing.rewrites.sites import sites, sites_of
from tracing.rewrites.untried import UNTRIED

from sgc.errors import TraceError
from sgc.programs.deopt import may_deopt
from sgc.programs.function import Function, told_pieces
from sgc.runtime.executor.run.options import RunOptions

HEAD = """\
import io, json, operator, os, pickle, random, re, time
import sgc

@sgc.tool
def tool(t: str) -> str:
    return str(int(t))
"""
PROGRAM = """
@sgc.function
def program(s, x, y, j, n: int, r: float, xs: list[str]):
    s += "q" + sgc.gen("a", max_tokens=4)
"""
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"x": "12", "y": "b", "j": '{"k": 2, "l": [1]}', "n": 2, "r": 2.5, "xs": ["b", "a"]},
    {"x": "7", "y": "7", "j": "[]", "n": 1, "r": -1.0, "xs": ["é"]},
)
POOL = ("a", "b", "3", "?")
ALL = sites()
PAIRS = [*SAME, *PASSED]


def made(body: str, folder: Path) -> tuple[Function, str, int]:
    """The program of a body, its file's name, and the number of the line that is marked; else that
    of its decorator."""
    before, _, own = body.rpartition("---\n")
    source = HEAD + before + PROGRAM + textwrap.indent(own, "    ") + "\n"
    path = folder / "refused_program.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lines = source.splitlines()
    marked = [n for n, line in enumerate(lines, 1) if line.endswith("# here")]
    return (
        module.program,
        path.name,
        marked[0] if marked else len(lines) - len(own.splitlines()) - 2,
    )


def refused(pair: Pair, folder: Path) -> TraceError:
    program, file, line = made(pair[2], folder)
    with pytest.raises(TraceError) as caught:
        program.compile(check=False)
    assert caught.value.where == f"{file}:{line}"
    return caught.value


def ran(program: Any, arguments: dict[str, Any], seed: int) -> Any:
    run = partial(program.run_once, arguments, RunOptions(seed=seed), replying(seed, POOL))
    return outcome(run)


@pytest.mark.sweep
@pytest.mark.parametrize("pair", PAIRS, ids=[pair[0] for pair in PAIRS])
def test_a_refusal_names_a_rewrite_that_compiles(pair: Pair, tmp_path: Path) -> None:
    construct, rewrite, before, after = pair
    error = refused(pair, tmp_path)
    assert construct in error.message
    assert rewrite in error.hint
    assert sites_of(error, ALL)
    (tmp_path / "rewritten").mkdir()
    program, _, _ = made(after, tmp_path / "rewritten")
    compiled = program.compile(check=False)
    assert not may_deopt(compiled.graph)
    assert not told_pieces(compiled.graph)
    (tmp_path / "again").mkdir()
    for seed, arguments in enumerate(ARGUMENTS):
        wanted = ran(program, arguments, seed)
        assert isinstance(wanted, tuple), wanted
        assert ran(compiled, arguments, seed) == wanted
        if pair in SAME:
            first, _, _ = made(before, tmp_path / "again")
            assert ran(first, arguments, seed)[:1] == wanted[:1]


def test_every_refusal_has_a_rewrite_that_is_tried(tmp_path: Path) -> None:
    tried = {site for pair in PAIRS for site in sites_of(refused(pair, tmp_path), ALL)}
    left = {(site.file, site.constant) for site in ALL if site not in tried}
    listed = {(file, constant) for rows in UNTRIED.values() for file, constant in rows}
    assert sorted(left - listed) == []  # new: to be tried in rewritten.py
    assert sorted(listed - left) == []  # tried now, or gone: to be taken off the list
