"""Dropping what no result needs, after `keep` has said what is wanted."""

from __future__ import annotations

import pytest
from pass_cases import graph

import sgc
from sgc.cli import main
from sgc.ir.text.printer import to_text
from sgc.passes.facts.kept_results import keep
from sgc.passes.pipeline import optimize
from sgc.runtime.executor.run.options import RunOptions

SIGNED = 'signature="(x: str) -> str"'
BODY = """
%s = stream "p"
%s1, %g = gen %s name="g"
%q = stream "q" path="p/q.0"
%q1, %h = gen %q name="h"
publish %s1 "p" keys=["g"] items=[%g]
publish %q1 "q" keys=["h"] items=[%h]
return %x
"""


def test_what_is_kept_is_for_the_user_to_say():
    whole = graph(BODY)
    assert keep(whole, "all") is whole
    ops = {what: [node.op for node in optimize(keep(whole, what)).nodes()] for what in
           ("all", "main", "returns")}  # fmt: skip
    assert ops["all"].count("gen") == 2
    assert (ops["main"].count("gen"), ops["main"].count("publish")) == (1, 1)
    assert ops["returns"] == ["return"]
    assert "keep" in {receipt.pass_name for receipt in keep(whole, "main").receipts}


CALLED = """called @note(%item: text) {
  %s0     = stream "note" path="note"
  %s1, %x = gen    %s0 name="x"
  publish %s1 "note" keys=["x"] items=[%x]
  return %x
}
"""


@pytest.mark.parametrize(("reads", "n_published"), [('names=["x"]', 1), ("returns=true", 0)])
def test_a_called_program_gives_what_its_map_reads(reads, n_published):
    body = f"""
    %s = stream "p"
    %xs: list[text] = map 0 ["a"] caller=%s {reads}
    return %xs
    """
    made = optimize(keep(graph(body, CALLED), "returns"))
    assert sum(node.op == "publish" for node in made.all_nodes()) == n_published
    assert sum(node.op == "gen" for node in made.all_nodes()) == 1


@sgc.function
def two_parts(s, q):
    s += q + sgc.gen("a", max_tokens=4)
    forks = s.fork(2)
    for f in forks:
        f += "more" + sgc.gen("b", max_tokens=4)
    return s["a"]


def test_a_program_without_streams_has_its_value(scripted):
    graph_ = two_parts.compile(check=False).graph
    program = sgc.Program(optimize(keep(graph_, "returns")))
    result = program.run_once({"q": "hi"}, RunOptions(), scripted())
    assert (result.streams, result.stats.requests) == ((), 1)
    assert result.ret_value == " reply 2"
    assert (result.text(), dict(result.variables)) == ("", {})
    with pytest.raises(sgc.errors.UnknownVariable, match="no variable 'a' was set"):
        result["a"]


@sgc.function
def a_child_for_each(s, words: list[str]):
    s += "Q"
    for f, word in zip(s.fork(len(words) + 1), words, strict=False):
        f += word + sgc.gen("a", max_tokens=4)
    s += sgc.gen("b", max_tokens=4)
    return len(words)


CHILDREN = [f"a_child_for_each/:0.{number}" for number in range(3)]


@pytest.mark.parametrize(
    ("what", "paths"),
    [("all", ["a_child_for_each", *CHILDREN]), ("main", ["a_child_for_each"]), ("returns", [])],
)
def test_children_that_nothing_publishes_are_not_listed(what, paths, scripted):
    """Of a fork into a number known only at run time; one child is never begun."""
    kept = keep(a_child_for_each.compile(check=False).graph, what)
    for each in (kept, optimize(kept)):
        result = sgc.Program(each).run_once({"words": ["x", "y"]}, RunOptions(), scripted())
        assert [stream.path for stream in result.streams] == paths
        assert result.ret_value == 2


def test_the_command_line(tmp_path):
    source = tmp_path / "two.py"
    source.write_text(
        "import sgc\n\n\n@sgc.function\ndef two(s):\n"
        '    s += "a" + sgc.gen("a", max_tokens=4)\n'
        '    with s.copy() as t:\n        t += sgc.gen("b", max_tokens=4)\n'
        '    return s["a"]\n'
    )
    whole, narrow, again = (str(tmp_path / name) for name in ("w.sgir", "n.sgir", "a.sgir"))
    for command in (
        ["compile", str(source), "-o", whole],
        ["compile", str(source), "--keep", "returns", "-o", narrow],
        ["opt", whole, "--keep", "returns", "-o", again],
    ):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert not ended.value.code
    texts = [to_text(sgc.load(path).graph).split("program")[1] for path in (whole, narrow, again)]
    assert [text.count(" gen ") for text in texts] == [2, 1, 1]
    assert texts[1].count("publish") == texts[2].count("publish") == 0
