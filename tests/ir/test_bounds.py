"""What a small program may stand for, and what it costs to say that it stands for too much."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hostile_files import sealed
from hostile_programs import FAMILIES
from random_graphs import random_graph

from sgc.errors import LoadError, UsageError, VerifyError
from sgc.ir.file import sgir as sgir
from sgc.ir.graph import Block, Graph, Lit, Operand, Ref, Value, make_node
from sgc.ir.limits import MAX_BLOCKS, max_chars
from sgc.ir.ops import OP_TABLE_VERSION
from sgc.ir.text.literals import escape
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import node_text, operand_text, type_text
from sgc.ir.types import STREAM, Type, choice_of, list_of
from sgc.ir.verify import find_breaches, verify
from sgc.passes.exact.fold_values import MAX_ALL_CHARS, fold_values
from sgc.proto import sgir_pb2 as pb

SAVED = Path(__file__).parent / "saved"


@pytest.mark.parametrize("name", sorted(path.stem for path in SAVED.glob("*.sgir")))
def test_files_of_before_load_or_are_refused_with_what_to_do(name: str) -> None:
    """These were saved by op table 6."""
    path = SAVED / f"{name}.sgir"
    if OP_TABLE_VERSION == 6:
        assert sgir.to_bytes(sgir.load(path)) == path.read_bytes()
        return
    with pytest.raises(LoadError) as caught:
        sgir.load(path)
    assert caught.value.hint == "compile the program again"


# -- printing --


def doubled(depth: int) -> Operand:
    """A list of 2 to that power, each half the same object."""
    found: Operand = Lit("a text")
    for _ in range(depth):
        found = (found, found)
    return found


def deep_type(depth: int) -> Type:
    found = choice_of(tuple(map(str, range(1000))))
    for _ in range(depth):
        found = list_of(found)
    return found


@pytest.mark.parametrize("most", [2, 3, 17, 100])
def test_what_is_cut_is_the_beginning_of_the_whole(most: int) -> None:
    for seed in range(20):
        for node in random_graph(seed, n_nodes=20).nodes():
            whole, found = node_text(node), node_text(node, most)
            assert found == (whole if len(whole) <= most else whole[: most - 1] + "…")


def test_what_is_cut_is_not_printed_whole() -> None:
    node = make_node("return", value=doubled(200))
    assert node_text(node, 100).startswith("return [[[")
    assert len(node_text(node, 100)) == len(operand_text(doubled(200), 100)) == 100
    assert type_text(deep_type(5), 12) == "list[list[l…"
    assert len(type_text(deep_type(0), 40)) == 40


def test_errors_cut_what_they_show() -> None:
    """Each kind of thing that a rule shows: operands, types, and names of all kinds."""
    long = "n" * 100_000
    texts = [
        f'sgir 1\nprogram @p() {{\n return\n}}\ncalled @"{long} "() {{\n %a = text_of %b\n}}',
        f'sgir 1\nprogram @p() {{\n %"{long} " = stream "p"\n %"{long} " = stream "p"\n return\n}}',
        f'sgir 1\nprogram @p() {{\n jump "{long} "\n}}',
        f'sgir 1\nprogram @p(%x: choice["{long}"] = 1) {{\n return\n}}',
        f'sgir 1\nprogram @p() {{\n %a: bool = compute "{long}" []\n return\n}}',
        f'sgir 1\nprogram @p(%x: choice["{long}"]) {{\n jump "b" args=[%x]\n'
        f'^b(%y: choice["{long} "]):\n return\n}}',
    ]
    for text in texts:
        breaches = find_breaches(parse(text))
        assert breaches
        assert all(len(breach.render()) < 1000 for breach in breaches), text[:80]


def test_escapes_are_spelled_alike_whatever_was_spelled_before() -> None:
    text = "".join(map(chr, range(0x3000))) + "".join(map(chr, range(0xE0000, 0xE0400)))
    assert escape(text) == "".join(map(escape, text))
    assert escape("\U000e0001\u202e\n") == "\\U000e0001\\u202e\\n"


# -- texts that are shared --


def shared(n: int, size: int) -> Graph:
    """A stream of one text, many times."""
    nodes = [make_node("stream", (Value("s0", STREAM),), name=Lit("p"))]
    for i in range(n):
        result = (Value(f"s{i + 1}", STREAM),)
        nodes.append(make_node("const", result, stream=Ref(f"s{i}"), text=Lit("a" * size)))
    return Graph("p", (), (Block("entry", (), (*nodes, make_node("return"))),))


def test_a_text_may_be_shared_and_not_without_bound() -> None:
    assert sgir.from_bytes(sgir.to_bytes(shared(40, 100_000))) == shared(40, 100_000)
    with pytest.raises(UsageError, match="give a long text that is used often as an argument"):
        sgir.to_bytes(shared(60, 100_000))


@pytest.mark.parametrize("what", ["text", "type", "name", "file"])
def test_a_file_cannot_stand_for_more(what: str) -> None:
    program = pb.Program.FromString(sgir.to_bytes(shared(100, 10))[sgir.HEADER.size :])
    program.strings.append("b" * 100_000)
    long = len(program.strings) - 1
    program.strings.append("choice")
    program.types.add(kind=long + 1, options=[long])
    for operand in program.operands:
        if what == "text" and operand.WhichOneof("kind") == "text":
            operand.text = long
    for value in program.values:
        value.type = len(program.types) - 1 if what == "type" else value.type
        value.name = long if what == "name" else value.name
    for node in program.nodes:
        node.line, node.file = (1, long) if what == "file" else (0, 0)
    payload = program.SerializeToString()
    assert len(payload) * 30 < max_chars(len(payload))
    with pytest.raises(LoadError, match="texts of a few times its size"):
        sgir.from_bytes(sealed(payload))


def test_folded_texts_are_bounded_together() -> None:
    graph = fold_values(parse(FAMILIES["doubled"](100)))
    made = {
        part.value
        for node in graph.nodes()
        for _, operand in node.fields
        for part in (operand if isinstance(operand, tuple) else ())
        if isinstance(part, Lit) and isinstance(part.value, str)
    }
    assert MAX_ALL_CHARS / 2 < sum(map(len, made)) <= MAX_ALL_CHARS


# -- blocks --


def test_blocks_are_bounded() -> None:
    def with_blocks(n: int) -> Graph:
        graph = parse("sgir 1\nprogram @p() {\n return\n}\n")
        (entry,) = graph.blocks
        return replace(graph, blocks=tuple(replace(entry, name=f"b{i}") for i in range(n)))

    (breach,) = find_breaches(with_blocks(MAX_BLOCKS + 1))
    assert breach.headline.startswith(f"R6 blocks: the program has {MAX_BLOCKS + 1} blocks")


def test_values_fold_in_any_order_of_blocks() -> None:
    folded = fold_values(parse(FAMILIES["upside_down"](50)))
    assert not [node for node in folded.nodes() if node.op == "compute"]


def test_states_that_go_on_to_each_other_are_no_endless_walk() -> None:
    """%b is defined twice, so that it comes to continue itself."""
    graph = parse(
        """sgir 1
        program @p() {
          %s = stream "p"
          %a = const %s "a"
          %b = const %a "b"
          %c = const %b "c"
          %b = const %c "b"
          %t = span %s %b
          jump "on" args=[%t]
        ^on(%u: text):
          return %u
        }"""
    )
    with pytest.raises(VerifyError, match="R3 names: %b is defined twice"):
        verify(graph)


LOOPED = """sgir 1
program @p(%x: text) {{
  %t: bool = compute "eq" [%x, "a"]
  jump "def"
^def:
  %s = stream "p"
  branch %t then="one" orelse="two"
^one:
  %a = const %s "a"
  jump "{after_one}"
^two:
  %b = const %s "b"
  jump "again"
^again:
  branch %t then="def" orelse="end"
^end:
  return
}}
"""


@pytest.mark.parametrize(("after_one", "told"), [("again", ""), ("two", "R4"), ("one", "R4")])
def test_arms_of_a_loop_may_both_use_a_state_made_anew(after_one: str, told: str) -> None:
    """What passes the definition again is another state; what does not is the same one."""
    breaches = find_breaches(parse(LOOPED.format(after_one=after_one)))
    assert [breach.rule[:2] for breach in breaches] == ([told] if told else [])
