"""Sharing of what is equal: where it fires, where it must not, and that runs agree."""

from __future__ import annotations

import asyncio
import random
import textwrap
from dataclasses import replace

import pytest
import random_programs
from random_graphs import random_graph
from tests_support import asked, results

import sgc
from sgc.errors import TraceError
from sgc.ir.graph import Block, Graph, Lit, Node, Ref, Value, make_node
from sgc.ir.text.parser import parse
from sgc.ir.types import STREAM, TEXT
from sgc.ir.verify import verify
from sgc.passes.exact.share_equal import share_equal
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runs.options import make_options
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

GREEDY = "max_tokens=4 temperature=0.0"


def graph(body: str) -> Graph:
    lines = "\n".join(f"  {line.strip()}" for line in textwrap.dedent(body).strip().splitlines())
    return parse(f"sgir 1\nprogram @p(%x: text, %n: int, %b: bool, %t: float) {{\n{lines}\n}}\n")


BLOCKS = """sgir 1
program @p(%x: text, %b: bool) {{
^entry:
  %s0 = stream "p"
  %s1, %c0 = fork %s0 1
  %c1, %u = gen %c0 {greedy}
  branch %b then="yes" orelse="no"
^yes:
  %y1, %v = {first} {greedy}
  %l = compute "strip" [%x]
  jump "end" args=[%y1, %l]
^no:
  %n1, %w = {first} {greedy}
  %n2, %z = gen %n1 {greedy}
  %m: text = compute "strip" [%x]
  jump "end" args=[%n2, %m]
^end(%e0: stream, %k: text):
  %o: text = compute "strip" [%x]
  %e1 = append %e0 %o
  return %k
}}
"""


def test_what_every_way_has_passed_is_shared_and_what_only_one_has_is_not():
    text = BLOCKS.format(greedy=GREEDY, first="gen %s1").replace("%l = c", "%l: text = c")
    found = share_equal(parse(text))
    by_name = {value.name: node for node in found.nodes() for value in node.results}
    assert [by_name[name].op for name in "uvwz"] == ["gen", "share", "share", "gen"]
    assert all(by_name[name].op == "compute" for name in "lmo")
    verify(found)
    assert share_equal(found) is found


def test_each_turn_of_a_loop_asks_for_itself():
    found = parse(f"""sgir 1
program @p(%b: bool) {{
^entry:
  %s0 = stream "p"
  jump "turn" args=[%s0]
^turn(%t0: stream):
  %t1, %c0 = fork %t0 1
  %c1, %u = gen %c0 {GREEDY}
  %t2, %v = gen %t1 {GREEDY}
  branch %b then="again" orelse="end"
^again:
  jump "turn" args=[%t2]
^end:
  return none
}}
""")
    shared = share_equal(found)
    assert [node.op for node in shared.blocks[1].nodes][1:3] == ["gen", "share"]
    assert shared.blocks[0] is found.blocks[0]


def test_the_receipt_names_who_shares_with_whom():
    @sgc.function
    def p(s, q: str):
        for child in s.fork(3):
            child += q + sgc.gen("t", temperature=0)

    (receipt,) = (r for r in p.compile().graph.receipts if r.pass_name == "share_equal")
    line = p.loc.line + 3
    assert receipt.details == (
        f"test_share_equal.py:{line}: gen t is that of test_share_equal.py:{line}, 2 times",
    )


# -- runs ---------------------------------------------------------------------------------


@sgc.function
def twins(s, q: str):
    group = s.fork(3)
    group += q + sgc.gen("t", temperature=0, max_tokens=4) + sgc.select("v", ["a", "b"])
    group += sgc.gen("u", max_tokens=4) + sgc.gen("many", n=2, temperature=0)
    s += "".join(group[i]["t"] + group[i]["u"] for i in range(3))


class Counting(ScriptedBackend):
    def __init__(self):
        super().__init__(lambda prompt, sampling: f"r{sampling.seed % 1000}")
        self.n_asked = 0

    async def generate(self, *asked):
        self.n_asked += 1
        return await super().generate(*asked)


def test_a_shared_generation_reads_like_one_that_was_asked():
    backend, plain = Counting(), Counting()
    options = RunOptions(seed=3)
    without = trace(twins)
    found = asyncio.run(run_graph(share_equal(without), backend, {"q": "Q"}, options))
    wanted = asyncio.run(run_graph(without, plain, {"q": "Q"}, options))
    assert results(found) == results(wanted)
    assert asked(found) == asked(wanted)
    assert found.streams[2].path == wanted.streams[2].path
    assert (backend.n_asked, plain.n_asked) == (1 + 3 + 3 * 2, 3 + 3 + 3 * 2)
    assert found.stats.shared_requests == 2 + 2
    assert found.stats.requests == wanted.stats.requests - 4
    for request in found.requests:
        assert request.meta_info() is not None or request.kind == "commit"


def test_a_log_of_a_shared_run_feeds_one_that_asks_for_each(tmp_path):
    first = Counting()
    with RunLog.open(tmp_path / "log") as log:
        program = Program(share_equal(trace(twins)))
        wanted = program.run("Q", backend=Endpoint(first), seed=3, log=log)
    for again in (lambda: Program(trace(twins), level=0), lambda: twins):
        backend = Counting()
        with RunLog.open(tmp_path / "log") as log:
            options = make_options({"log": log})
            found = again().run_once({"q": "Q"}, options, Endpoint(backend))
        assert backend.n_asked == 0
        assert results(found) == results(wanted)


ARGUMENTS = {"x": "Tea ", "y": " is\n", "n": 5}


def likely(seed: int) -> Graph | None:
    """A random program in which much is equal: some children do the same, mostly greedy. None for
    a program that cannot be traced.
    """
    rng = random.Random(seed)
    first, rest = (random_programs._steps(rng, 5, depth=1) for _ in range(2))
    rest = [step for step in rest if step[0] in ("gen", "gen_stop", "select", "call", "read")]

    def program(s, x: str, y: str, n: int):
        for child in s.fork(1 + seed % 3):
            random_programs._run(child, first, [x, y], n)
        values = [x, y]
        random_programs._run(s, rest + rest, values, n)
        return values[2:]

    try:
        graph = trace(sgc.function(program))
    except TraceError:
        return None
    nodes = (_steadied(node, rng) for node in graph.blocks[0].nodes)
    return replace(graph, blocks=(replace(graph.blocks[0], nodes=tuple(nodes)),))


def _steadied(node: Node, rng: random.Random) -> Node:
    if node.op not in ("gen", "gen_n") or rng.random() < 0.2:
        return node
    how = {"seed": Lit(3)} if rng.random() < 0.2 else {"temperature": Lit(0.0)}
    return node.with_fields(**how)


def check(seed: int) -> int:
    """Runs a random program before and after; how many requests were shared."""
    before = likely(seed)
    if before is None:
        return 0
    after = share_equal(before)
    assert share_equal(after) is after
    assert share_equal(before) == after
    verify(after)
    backend = ScriptedBackend(
        lambda prompt, sampling: f"r{len(str(prompt)) % 3} {sampling.seed % 7}.\n",
        lambda prompt, choices: len(str(prompt)) % len(choices),
    )
    options = RunOptions(seed=seed)

    async def run() -> list:
        return [await run_graph(each, backend, ARGUMENTS, options) for each in (before, after)]

    one, other = asyncio.run(run())
    assert results(one) == results(other), f"seed {seed}"
    assert asked(one) == asked(other), f"seed {seed}"
    return other.stats.shared_requests


def test_random_programs_give_the_same(recwarn):
    assert sum(map(check, range(16))) > 8


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_ten_thousand_random_programs_give_the_same(recwarn):
    assert sum(map(check, range(1000, 11_000))) > 10_000


def test_random_graphs_stay_sound():
    for seed in range(60):
        before = random_graph(seed, 30)
        after = share_equal(before)
        verify(after)
        assert share_equal(after) is after


def wide(n: int) -> Graph:
    """n children of which each goes on like every tenth, in a chain of histories."""
    nodes: list[Node] = [make_node("stream", (Value("s", STREAM),), name=Lit("p"))]
    children = [Value(f"c{i}", STREAM) for i in range(n)]
    trunk = Value("t", STREAM)
    nodes.append(make_node("fork", (trunk, *children), stream=Ref("s"), n=Lit(n)))
    for i, child in enumerate(children):
        state = Value(f"d{i}", STREAM)
        nodes.append(make_node("const", (state,), stream=Ref(child.name), text=Lit("a" * (i % 10))))
        made = (Value(f"e{i}", STREAM), Value(f"v{i}", TEXT))
        nodes.append(make_node("gen", made, stream=Ref(state.name), temperature=Lit(0.0)))
    nodes.append(make_node("return", (), value=Lit(None)))
    return Graph("p", (), (Block("entry", (), tuple(nodes)),))


def test_the_steps_grow_with_the_graph(monkeypatch):
    from sgc.passes.exact import share_equal as module

    counts = []
    for n in (500, 5000):  # children, of two nodes each
        n_keys = 0
        plain = module._Sharing._key_of

        def counted(self, operand, plain=plain):
            nonlocal n_keys
            n_keys += 1
            return plain(self, operand)

        with monkeypatch.context() as patch:
            patch.setattr(module._Sharing, "_key_of", counted)
            found = share_equal(wide(n))
        assert sum(node.op == "gen" for node in found.nodes()) == 10
        counts.append(n_keys)
    assert counts[1] < 11 * counts[0]


def test_the_order_of_sets_does_not_matter():
    seeds = random.Random(5).sample(range(10_000), 20)
    assert [share_equal(random_graph(s, 40)) for s in seeds] == [
        share_equal(random_graph(s, 40)) for s in seeds
    ]
