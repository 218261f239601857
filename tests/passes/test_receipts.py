"""What a receipt tells of where a pass did something."""

from __future__ import annotations

from dataclasses import replace

from sgc.ir.file.sgir import from_bytes, to_bytes
from sgc.ir.graph import Graph, Loc
from sgc.ir.limits import MAX_DETAIL_CHARS, MAX_DETAILS
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.passes.base import Pass, Preserves
from sgc.passes.pipeline import optimize, run_pass

PROGRAM = """sgir 1
program @p() {
  %s0 = stream "p"
  %s1 = const %s0 "a"
  %s2 = const %s1 "b"
  %s3, %t = gen %s2 name="x"
  %s4 = const %s3 "kept"
  publish %s4 "p"
  return %t
}
"""


def program() -> Graph:
    graph = parse(PROGRAM)
    lines = [3, 4, 5, 7, 9, 3, 10]
    block = graph.blocks[0]
    nodes = tuple(
        replace(node, loc=Loc("p.py", line)) for node, line in zip(block.nodes, lines, strict=True)
    )
    return replace(graph, blocks=(replace(block, nodes=nodes),))


def made_by(details: tuple[str, ...] | None) -> Pass:
    def run(graph: Graph) -> Graph:
        block = graph.blocks[0]
        first = block.nodes[0].with_fields(path=block.nodes[0].get("path"))
        return replace(graph, blocks=(replace(block, nodes=(first, *block.nodes[1:])),))

    explain = None if details is None else lambda before, after: details
    return Pass("p", Preserves.REQUESTS, run, "did it", explain)


def test_a_pass_that_tells_nothing_names_the_lines_that_it_changed() -> None:
    folded = optimize(program(), names=("fold_constants",))
    (receipt,) = folded.receipts
    assert receipt.details == ("p.py:4-5",)
    assert from_bytes(to_bytes(folded)).receipts == folded.receipts
    assert "#   p.py:4-5\nprogram @p() {" in to_text(folded)


def test_a_pass_tells_of_itself_in_bounded_lines() -> None:
    told = ("p.py:4: one\n line", "x" * 1000)
    (receipt,) = run_pass(made_by(told), program()).receipts
    assert receipt.details == ("p.py:4: one line", "x" * MAX_DETAIL_CHARS)
    many = tuple(f"line {n}" for n in range(100))
    (receipt,) = run_pass(made_by(many), program()).receipts
    assert len(receipt.details) == MAX_DETAILS
    assert receipt.details[-1] == "and 37 more"
