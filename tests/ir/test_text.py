"""The text form: it round-trips, and says where and why it cannot be read."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_graphs import random_graph

from sgc.errors import ParseError
from sgc.ir.graph import Block, Graph, Guard, Lit, Loc, Param, Ref, Value, make_node
from sgc.ir.op_specs import Flag, OpSpec
from sgc.ir.ops import TABLE
from sgc.ir.text.parser import parse, parse_node
from sgc.ir.text.printer import node_text, to_text
from sgc.ir.types import INT, TEXT, list_of
from sgc.ir.verify import find_breaches

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_sample_prints_back_to_itself(row: OpSpec) -> None:
    assert node_text(parse_node(row.sample)) == row.sample


def test_random_graphs_round_trip() -> None:
    for seed in range(250):
        graph = random_graph(seed)
        text = to_text(graph)
        assert parse(text) == graph, text


def test_random_graphs_are_valid_and_cover_the_table() -> None:
    ops, fields = set(), set()
    for seed in range(300):
        graph = random_graph(seed)
        assert find_breaches(graph) == [], to_text(graph)
        for node in graph.nodes():
            ops.add(node.op)
            fields |= {(node.op, name) for name, _ in node.fields}
    # Where a program goes on is in tests of their own.
    covered = [row for row in TABLE if row.name == "return" or Flag.TERMINATOR not in row.flags]
    assert ops == {row.name for row in covered}
    assert fields == {(row.name, field.name) for row in covered for field in row.fields}


@given(ANY_TEXT, SCALARS)
def test_any_name_and_any_literal_round_trip(name: str, value: str | int | float | None) -> None:
    node = make_node("return", value=(Ref(name), Lit(value), (Lit(value),)))
    params = (Param(Value(name, TEXT), Lit(name)),)
    graph = Graph(name, params, (Block(name, (), (node,)),), (Guard(name, name, name),))
    text = to_text(graph)
    assert parse(text) == graph
    assert text.isascii() or all(char.isprintable() for char in text if char != "\n")


def test_what_breaks_the_verifiers_rules_still_round_trips() -> None:
    nodes = (
        make_node("const", (), text=Lit("no stream")),
        make_node("gen", (Value("only", INT),), name=Lit("x")),
        make_node("list", (Value("a", list_of(TEXT)), Value("b", TEXT))),
    )
    for blocks in ((), (Block("entry", (), ()),), (Block("entry", (), nodes),)):
        graph = Graph("odd", (), blocks)
        assert parse(to_text(graph)) == graph


def test_facts_are_comments() -> None:
    node = make_node("return", loc=Loc("a\nreturn.py", 3, "f"))
    text = to_text(Graph("p", (), (Block("entry", (), (node,)),)))
    assert text.splitlines()[2].split("#") == [f"  {'return':<60}", " a\\nreturn.py:3 in f()"]
    assert next(parse(text).nodes()).loc is None


def test_nodes_can_be_located_in_the_text_itself() -> None:
    graph = parse("sgir 1\nprogram @p() {\n\n  return 1\n}", "p.txt", locate=True)
    assert str(next(graph.nodes()).loc) == "p.txt:4"


HEAD = "sgir 1\nprogram @p() {\n"


@pytest.mark.parametrize(
    ("text", "place", "expected", "found"),
    [
        ("", "line 1, column 1", "the header `sgir 1`", "the end of the text"),
        ("import sgc", "line 1, column 1", "the header `sgir 1`", "`import`"),
        ("sgir 2\n", "line 1, column 6", "version 1 of the text form", "`2`"),
        ("sgir 1\nguard", "line 2, column 6", "the kind of the guard", "the end of the text"),
        ("sgir 1\nprogram p() {", "line 2, column 9", "the program's name", "`p`"),
        ("sgir 1\nprogram @p(%x) {", "line 2, column 14", "`:`", "`)`"),
        ("sgir 1\nprogram @p(%x: txt) {", "line 2, column 16", "a type: one of stream", "`txt`"),
        ("sgir 1\nprogram @p(%x: list) {", "line 2, column 20", "the type of the list's", "`)`"),
        (HEAD + " %a = foo\n}", "line 3, column 7", "one of the ops stream, const", "`foo`"),
        (HEAD + " %a, = fork %s 1\n}", "line 3, column 6", "a result such as `%x`", "`=`"),
        (HEAD + " %a const %s 1\n}", "line 3, column 5", "`:`, `,` or `=`", "`const`"),
        (HEAD + " publish %s bad=1\n}", "line 3, column 13", "one of the fields of", "`bad`"),
        (HEAD + " return 1 2\n}", "line 3, column 11", "the name of a field", "`2`"),
        (HEAD + " return value=1 value=2\n}", "line 3, column 17", "field value once", "`value`"),
        (HEAD + " return [1 2]\n}", "line 3, column 12", "`,` or `]`", "`2`"),
        (HEAD + " return 1x\n}", "line 3, column 9", "a name, a literal or", '"1"'),
        (HEAD + ' return "a\n}', "line 3, column 9", "a closing quote", "none"),
        (HEAD + ' return "\\q"\n}', "line 3, column 9", "no escape is spelled \\q", '"\\q"'),
        (HEAD + ' return "\\u12"\n}', "line 3, column 9", "no escape is spelled \\u", '"\\u12"'),
        (HEAD + ' return "\\UFFFFFFFF"\n}', "line 3, column 9", "is beyond Unicode", '"\\UFF'),
        (HEAD + " return %\n}", "line 3, column 9", "a name after `%`", '"\\n"'),
        (HEAD + " return 1\n", "line 4, column 1", "a node, a block's label or `}`", "the end"),
        (HEAD + " return 1\n} x", "line 4, column 3", "the end of the text", "`x`"),
        (HEAD + " return " + "[" * 99, "line 3, column 41", "lists nested at most 32", "`[`"),
        (HEAD + " %x = return\n", "line 3, column 7", "at most", "`return`"),
        (HEAD + f" return {'9' * 5000}\n", "line 3, column 9", "a well-formed literal", "`999"),
    ],
)
def test_errors_name_place_expected_and_found(
    text: str, place: str, expected: str, found: str
) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, "p.txt")
    message = str(caught.value)
    assert message.startswith(f"p.txt: {place}: expected "), message
    told, seen = message.rsplit(", found ", 1)
    assert expected in told
    assert seen.startswith(found)


def test_damaged_texts_raise_nothing_but_parse_errors() -> None:
    rng = random.Random(5)
    for seed in range(600):
        text = list(to_text(random_graph(seed % 50, n_nodes=4)))
        for _ in range(rng.randrange(1, 4)):
            start = rng.randrange(len(text))
            text[start : start + rng.randrange(3)] = rng.choice(['"', "%", "[", "}", "\\", "9", ""])
        with suppress(ParseError):
            parse("".join(text))
