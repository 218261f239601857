"""Dropping what no result needs, after `keep` has said what is wanted."""

from __future__ import annotations

import pytest
from pass_cases import check_case, graph

import sgc
from sgc.cli import main
from sgc.ir.text.printer import to_text
from sgc.passes.facts.kept_results import keep
from sgc.passes.pipeline import optimize
from sgc.runtime.executor.run.options import RunOptions

SIGNED = 'signature="(x: str) -> str"'
CASES = {
    "a stream that nothing reads, and the last generation of one that is read": (
        """
        %s = stream "p"
        %s1, %a = gen %s name="a"
        %s2 = const %s1 "more"
        %s3, %b = gen %s2 name="b"
        %t = stream "q" path="p/q.0"
        %t1 = append %t %a
        %t2, %c = gen %t1 name="c"
        return %a
        """,
        """
        %s = stream "p"
        %s1, %a = gen %s name="a"
        return %a
        """,
    ),
    "a fork that does not come again goes, else its last children do": (
        """
        %s = stream "p"
        %s1, %c0, %c1, %c2 = fork %s 3
        %d1, %g = gen %c1
        %e2, %h = gen %c2
        %s2, %k0, %k1 = fork %s1 2
        %l0, %i = gen %k0
        %s3, %j = gen %s2
        return [%g, %j]
        """,
        """
        %s = stream "p"
        %s1, %c0, %c1 = fork %s 2
        %d1, %g = gen %c1
        %s3, %j = gen %s1
        return [%g, %j]
        """,
    ),
    "a fork whose number a later one's children have in their paths": (
        """
        %s = stream "p"
        %s1, %c0, %c1 = fork %s 2
        %s2, %k0 = fork %s1 1
        %l0, %i = gen %k0
        return %i
        """,
        """
        %s = stream "p"
        %s1, %c0 = fork %s 1
        %s2, %k0 = fork %s1 1
        %l0, %i = gen %k0
        return %i
        """,
    ),
    "parameters that nobody reads, and what was handed on for them": (
        """
        %s = stream "p"
        %s1, %g = gen %s
        jump "turn" args=[%s1, %g, 0]
        ^turn(%t: stream, %v: text, %i: int):
        %j: int = compute "add" [%i, 1]
        %e: bool = compute "lt" [%j, 3]
        branch %e then="again" orelse="end"
        ^again:
        jump "turn" args=[%t, %v, %j]
        ^end:
        return %j
        """,
        """
        jump "turn" args=[0]
        ^turn(%i: int):
        %j: int = compute "add" [%i, 1]
        %e: bool = compute "lt" [%j, 3]
        branch %e then="again" orelse="end"
        ^again:
        jump "turn" args=[%j]
        ^end:
        return %j
        """,
    ),
    "pure calls after the last one that is needed; others are counted by": (
        f"""
        %a: text = tool "m:f" [%x] effect="pure" {SIGNED}
        %b: text = tool "m:f" [%x] effect="pure" {SIGNED}
        %c: text = tool "m:f" [%x] effect="pure" {SIGNED}
        return %b
        """,
        f"""
        %a: text = tool "m:f" [%x] effect="pure" {SIGNED}
        %b: text = tool "m:f" [%x] effect="pure" {SIGNED}
        return %b
        """,
    ),
    "refused: effects, calls that may be repeated, and what ends a run": (
        f"""
        %s = stream "p"
        %s1, %g = gen %s
        %a: text = tool "m:f" [%g] effect="effect" {SIGNED}
        %c: text = tool "m:f" [%x] effect="idempotent" {SIGNED}
        fail "ValueError" %x
        """,
        None,
    ),
    "refused: a stream whose call is counted in the next one's path": (
        """
        %s = stream "p"
        %q = stream "q" caller=%s
        %r = stream "q" caller=%s
        %r1, %g = gen %r
        return %g
        """,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_drop_dead(case):
    check_case("drop_dead", *CASES[case])


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
