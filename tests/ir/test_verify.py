"""The verifier where golden files cannot reach: how breaches look, speed, odd nodes, branches."""

from __future__ import annotations

import pytest
from waiting import cpu_below

from sgc.errors import VerifyError
from sgc.ir.analysis import flow as control_flow
from sgc.ir.graph import Block, Graph, Lit, Loc, Node, Operand, Ref, Value, make_node
from sgc.ir.text.parser import parse
from sgc.ir.types import STREAM, TEXT, list_of
from sgc.ir.verify import find_breaches, verify


def one_block(*nodes: Node) -> Graph:
    return Graph("p", (), (Block("entry", (), (*nodes, make_node("return"))),))


def stream(name: str = "s0", line: int = 9) -> Node:
    return make_node("stream", (Value(name, STREAM),), Loc("tips.py", line, "tips"), name=Lit("p"))


def gen(before: str, after: str, text: str, line: int) -> Node:
    results = (Value(after, STREAM), Value(text, TEXT))
    return make_node("gen", results, Loc("tips.py", line, "tips"), stream=Ref(before))


def test_a_breach_shows_rule_users_line_and_nodes() -> None:
    graph = one_block(stream(), gen("s0", "a1", "t1", 12), gen("s0", "b1", "t2", 13))
    with pytest.raises(VerifyError) as caught:
        verify(graph, _line_13)
    assert str(caught.value) == (
        "R4 linear-stream: %s0 is used twice; a stream may be used once; fork it first\n"
        "  tips.py:13 in tips():   b = sgc.gen(s)\n"
        "      %a1, %t1 = gen %s0   first use (tips.py:12)\n"
        "  >   %b1, %t2 = gen %s0   second use (tips.py:13)"
    )


def _line_13(loc: Loc) -> str | None:
    return "    b = sgc.gen(s)\n" if loc.line == 13 else None


def test_a_breach_at_one_node_shows_its_neighbours() -> None:
    bad = make_node("const", (Value("s1", STREAM),), stream=Ref("s0"))
    with pytest.raises(VerifyError) as caught:
        verify(one_block(stream(), bad))
    assert str(caught.value) == (
        "R1 fields: const: needs the field text\n"
        '      %s0 = stream "p"\n'
        "  >   %s1 = const %s0\n"
        "      return"
    )


def test_every_breach_is_listed() -> None:
    text = "sgir 1\nprogram @p() {\n" + " %x = list items=[%a, %b, %c]\n" * 3 + "}"
    with pytest.raises(VerifyError) as caught:
        verify(parse(text))
    assert str(caught.value).count("is not defined") == 9
    assert str(caught.value).count("defined twice") == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((("x", Lit(1)),), "has no field x; it has value"),
        ((("value", Lit(1)), ("value", Lit(1))), "has its fields in the order value, value"),
        ((("value", Lit(b"x")),), "found a literal of the Python type bytes"),  # type: ignore[arg-type]
        ((("value", Lit(type("Sub", (str,), {})("x"))),), "of the Python type Sub"),
    ],
)
def test_nodes_the_parser_would_not_make(
    fields: tuple[tuple[str, Operand], ...], message: str
) -> None:
    breaches = find_breaches(Graph("p", (), (Block("e", (), (Node("return", (), fields),)),)))
    assert [b.rule for b in breaches] == ["R1 fields"]
    assert message in breaches[0].message


def test_fields_out_of_order() -> None:
    fields = (("text", Lit("x")), ("stream", Ref("s0")))
    (breach,) = find_breaches(one_block(stream(), Node("const", (Value("s1", STREAM),), fields)))
    assert "in the order text, stream; each once" in breach.message


def test_deep_nesting_is_a_breach_not_a_crash() -> None:
    operand: Operand = ()
    type_ = TEXT
    for _ in range(100_000):
        operand, type_ = (operand,), list_of(type_)
    graph = one_block(make_node("list", (Value("x", type_),), items=operand))
    assert [b.rule for b in find_breaches(graph)] == ["R11 depth"] * 2


def test_a_program_without_blocks() -> None:
    (breach,) = find_breaches(Graph("p", (), ()))
    assert breach.headline == "R6 blocks: the program has no block; it needs at least `return`"


def test_ten_thousand_nodes_in_a_second() -> None:
    nodes = [stream("s0")]
    for i in range(5000):
        nodes.append(gen(f"s{i}", f"s{i + 1}", f"t{i}", i + 1))
        first, last = Ref(f"s{i // 2}"), Ref(f"s{i + 1}")
        nodes.append(make_node("span", (Value(f"p{i}", TEXT),), start=first, end=last))
    graph = one_block(*nodes)
    with cpu_below(1):
        verify(graph)


def diamond(monkeypatch: pytest.MonkeyPatch, uses: dict[str, str], flow: dict[str, str]) -> Graph:
    """Blocks that use up one state each; `flow` stands in for ops that branch."""
    blocks = [Block("a", (), (stream(), make_node("return", value=Lit("a"))))]
    for name, state in uses.items():
        node = make_node("const", (Value(f"{name}1", STREAM),), stream=Ref(state), text=Lit(name))
        blocks.append(Block(name, (), (node, make_node("return", value=Lit(name)))))
    monkeypatch.setattr(
        control_flow, "successors", lambda node: tuple(flow.get(node.text("value"), ""))
    )
    return Graph("p", (), tuple(blocks))


@pytest.mark.parametrize(
    ("uses", "flow", "rules"),
    [
        # Two arms use up the same state: at most one of them runs.
        ({"b": "s0", "c": "s0"}, {"a": "bc"}, []),
        # One arm and what follows both.
        ({"b": "s0", "c": "s0"}, {"a": "bc", "b": "c"}, ["R4 linear-stream"]),
        # The same, with the later block listed first.
        ({"c": "s0", "b": "s0"}, {"a": "bc", "b": "c"}, ["R4 linear-stream"]),
        # What only one arm defines.
        ({"b": "s0", "c": "b1"}, {"a": "bc", "b": "c"}, ["R5 dominance"]),
        ({"b": "s0", "c": "b1"}, {"a": "b", "b": "c"}, []),
        # A loop uses a state from outside it up again and again.
        ({"b": "s0"}, {"a": "b", "b": "b"}, ["R4 linear-stream"]),
        ({"b": "s0", "c": "b1"}, {"a": "b", "b": "c", "c": "b"}, ["R4 linear-stream"]),
    ],
)
def test_rules_across_blocks(
    monkeypatch: pytest.MonkeyPatch, uses: dict[str, str], flow: dict[str, str], rules: list[str]
) -> None:
    assert [b.rule for b in find_breaches(diamond(monkeypatch, uses, flow))] == rules


HANDED_ON = """sgir 1
program @p() {
^entry:
  %s0 = stream "p" path="p"
  %s1 = const %s0 "a"
  jump "b" args=[%s0, %s1]
^b(%start: stream, %end: stream):
  LINE
  publish %end "p" keys=[] items=[]
  return none
}
"""


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("%text = span %start %end", []),  # it is only read there
        ('%s2 = const %start "b"', ["R4 linear-stream"]),
    ],
)
def test_a_jump_uses_a_state_up_where_its_target_does(line: str, rules: list[str]) -> None:
    graph = parse(HANDED_ON.replace("LINE", line))
    assert [b.rule for b in find_breaches(graph)] == rules
