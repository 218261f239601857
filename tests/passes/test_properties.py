"""Every pass keeps what it says it keeps, whatever the program; what they cost grows linearly.

The long version, in parts by seed (10,000 programs, each under every pass):

    SEEDS=0:10000 .venv/bin/pytest -s -m slow tests/passes/test_properties.py -k many
"""

from __future__ import annotations

import os
import time

import pass_runs as runs
import pytest
from random_graphs import random_graph

from sgc.ir.graph import Graph
from sgc.ir.text.parser import parse
from sgc.passes.base import Preserves
from sgc.passes.pipeline import PASSES, run_pass

N_PROGRAMS, N_GRAPHS = 12, 20
# Passes that change what a random program rarely has; their own tests make them fire.
RARE = {"insert_prefetch", "tighten_max_tokens"}


def test_random_programs_before_and_after():
    tally = runs.Tally()
    runs.run_cases(0, N_PROGRAMS, tally, every=6)
    assert sum(tally.errors.values()) < tally.n_programs / 4, f"{tally}"
    silent = {
        name
        for name, row in PASSES.items()
        if name not in RARE and row.preserves in (Preserves.REQUESTS, Preserves.RESULTS)
        and not tally.fired[name]
    }  # fmt: skip
    assert not silent, f"never changed anything: {silent}; {tally}"


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_random_programs_before_and_after():
    first, last = map(int, os.environ.get("SEEDS", "0:10000").split(":"))
    tally = runs.Tally()
    runs.run_cases(first, last, tally, every=10)
    print(tally)
    assert tally.n_untraced < tally.n_programs / 5


def test_random_graphs_stay_valid():
    for seed in range(N_GRAPHS):
        before, twin = runs.twins(random_graph(seed, n_nodes=25))
        for row in PASSES.values():
            runs.check_pass(row, before, twin)


# -- size -----------------------------------------------------------------------------------


def chain(n: int) -> Graph:
    """One stream: texts, generations and values that are read."""
    lines = ['%s0 = stream "p"']
    for i in range(0, n, 4):
        lines += [
            f'%s{i + 1} = const %s{i} "a"',
            f"%s{i + 2} = append %s{i + 1} %x",
            f"%s{i + 3}, %g{i} = gen %s{i + 2} max_tokens=4",
            f'%s{i + 4} = const %s{i + 3} "b"',
            f'%c{i}: bool = compute "eq" [%g{i}, %x]',
        ]
    return _program([*lines, f'publish %s{i + 4} "p"', "return none"])


def forks(n: int) -> Graph:
    """A wide fork whose children ask and are read, with half of them for nothing."""
    width = n // 3
    children = ", ".join(f"%c{i}" for i in range(width))
    lines = ['%s0 = stream "p"', f"%s1, {children} = fork %s0 {width}"]
    for i in range(width):
        lines += [
            f'%d{i} = const %c{i} "child {i}"',
            f"%e{i}, %g{i} = gen %d{i} max_tokens=4 temperature=0.0",
        ]
    used = ", ".join(f"%g{i}" for i in range(0, width, 2))
    return _program([*lines, f"%all: list[text] = list items=[{used}]", "return %all"])


def diamonds(n: int) -> Graph:
    """Tests in a row, each with two arms that append to the stream, and a stream beside them."""
    lines = ['%s0 = stream "p"', '%t: bool = compute "eq" [%x, "a"]']
    lines += ['branch %t then="t0" orelse="e0"']
    for i in range(n // 10):
        lines += [
            f"^t{i}:", f'%u{i} = const %s{i} "yes"', f'jump "j{i}" args=[%u{i}, %x]',
            f"^e{i}:", f'%v{i} = const %s{i} "no"', f'jump "j{i}" args=[%v{i}, %x]',
            f"^j{i}(%w{i}: stream, %y{i}: text):",
            f'%s{i + 1}, %g{i} = gen %w{i} max_tokens=4',
            f'%q{i}: bool = compute "eq" [%y{i}, %g{i}]',
            f'branch %q{i} then="t{i + 1}" orelse="e{i + 1}"',
        ]  # fmt: skip
    i += 1
    lines += [f"^t{i}:", f'jump "end" args=[%s{i}]', f"^e{i}:", f'jump "end" args=[%s{i}]']
    return _program([*lines, "^end(%z: stream):", 'publish %z "p"', "return none"])


def _program(lines: list[str]) -> Graph:
    return parse("sgir 1\nprogram @p(%x: text) {\n" + "\n".join(lines) + "\n}\n")


def seconds(name: str, graph: Graph) -> float:
    start_s = time.process_time()
    PASSES[name].run(graph)
    return time.process_time() - start_s


@pytest.mark.sweep
@pytest.mark.parametrize("make", [chain, forks, diamonds])
def test_passes_change_large_programs(make):
    """Of a tenth of the size that the slow test takes."""
    graph = make(1000)
    fired = {name for name, row in PASSES.items() if run_pass(row, graph) is not graph}
    assert fired, "nothing to do in it"


@pytest.mark.slow
@pytest.mark.parametrize("make", [chain, forks, diamonds])
@pytest.mark.parametrize("name", PASSES)
def test_passes_take_seconds_and_grow_linearly(name, make):
    small, large = make(5000), make(20_000)
    seconds(name, make(100))  # what is loaded lazily
    few = min(seconds(name, small) for _ in range(3))
    many = min(seconds(name, large) for _ in range(3))
    print(f"{name} {make.__name__}: {few:.3f} s of 5,000 nodes, {many:.3f} s of 20,000")
    assert many < 5
    assert many < 8 * few + 0.05, "four times the nodes, not eight times the work"
