"""Parts of the tracer by themselves: what is known, what is alike, what may still be read."""

from __future__ import annotations

import dis
import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

import sgc
from sgc.core.places import here
from sgc.core.symbols import Symbol
from sgc.errors import TraceError
from sgc.ir.graph import Graph, Lit, Ref
from sgc.ir.text.parser import parse
from sgc.ir.types import FLOAT, INT, JSON, TEXT, Type, choice_of
from sgc.ir.verify import verify
from sgc.tracing.callees import Callees, Wanted, joined_type, narrowed
from sgc.tracing.code.bytecode import info_of
from sgc.tracing.paths.facts import Facts, fact_of
from sgc.tracing.paths.loops import Loops
from sgc.tracing.session import TraceSession
from sgc.tracing.snapshots.leaves import is_same
from sgc.tracing.snapshots.snapshot import Part, Snapshot, match
from sgc.tracing.tracer import trace

# -- facts --


def is_(text: str) -> object:
    return fact_of("eq", [Ref("x"), Lit(text)])


def outcome(known: dict[str, bool], text: str, *options: str) -> bool | None:
    facts = Facts({is_(each): is_true for each, is_true in known.items()})
    return facts.outcome(is_(text), lambda name: options or None)


def test_what_is_known_of_a_choice() -> None:
    assert fact_of("eq", [Lit("a"), Ref("x")]) == is_("a")
    assert outcome({}, "a", "a", "b") is None
    assert outcome({}, "z", "a", "b") is False
    assert outcome({"a": False}, "b", "a", "b") is True
    assert outcome({"a": False}, "b", "a", "b", "c") is None
    assert outcome({"a": True}, "b") is False
    assert outcome({"a": True}, "a") is True
    assert outcome({"a": False}, "b") is None


# -- snapshots --


def snapshot(
    *types: Type,
    prefix: str = "a",
    facts: dict[object, bool] | None = None,
    own: tuple[str, ...] = (),
    starts: frozenset[str] = frozenset(),
    names: dict[str, Part] | None = None,
) -> Snapshot:
    slots = tuple(Symbol(f"{prefix}{n}", type_) for n, type_ in enumerate(types))
    whole = Part(("shape", len(slots)), slots)
    return Snapshot(whole, (names or {},), (own,), facts or {}, (), (), starts, {})


def fact(name: str) -> object:
    return fact_of("eq", [Ref(name), Lit("yes")])


def test_states_of_one_shape_are_paired() -> None:
    found = match(snapshot(TEXT, INT), snapshot(TEXT, INT, prefix="b"))
    assert found == {"a0": "b0", "a1": "b1"}
    assert match(snapshot(TEXT), snapshot(TEXT, TEXT)) is None
    assert match(snapshot(TEXT), snapshot(INT)) is None


def test_what_one_state_relies_on_the_other_must_know() -> None:
    ours = snapshot(TEXT, facts={fact("a0"): True})
    assert match(ours, snapshot(TEXT, prefix="b")) is None
    assert match(ours, snapshot(TEXT, prefix="b", facts={fact("b0"): False})) is None
    assert match(ours, snapshot(TEXT, prefix="b", facts={fact("b0"): True})) == {"a0": "b0"}


def test_what_began_before_stays_what_it_is() -> None:
    ours = snapshot(TEXT, starts=frozenset({"a0"}))
    assert match(ours, snapshot(TEXT, prefix="b")) is None
    assert match(ours, snapshot(TEXT)) == {"a0": "a0"}


def test_what_is_set_on_a_stream_itself_is_no_trunks() -> None:
    assert match(snapshot(own=("v",)), snapshot()) == {}
    assert match(snapshot(), snapshot(own=("v",))) is None


def test_values_that_print_alike_or_are_equal_are_told_apart() -> None:
    assert is_same(0.5, 0.5)
    for one, other in ((0.0, -0.0), (1, True), (1, 1.0), ("1", 1), (Lit(0.0), Lit(-0.0))):
        assert not is_same(one, other)


# -- bytecode --


def place(function: Callable[..., object], name: str) -> int:
    """Where a function of that name is called."""
    ops = list(dis.get_instructions(function))
    first = next(n for n, op in enumerate(ops) if op.argval == name)
    return next(op.offset for op in ops[first:] if op.opname == "CALL")


def go(*_: object) -> object:
    return None


def handles(x: int, y: int) -> int:
    try:
        go()
    except ValueError:
        return y
    return x


def chooses(a: int, b: int, c: int) -> int:
    if a:
        return b
    return c


def stores(x: int) -> object:
    x = go()
    return x


def opens(manager: object) -> None:
    with manager:  # type: ignore[attr-defined]
        go()


def test_what_may_still_be_read() -> None:
    assert info_of(handles.__code__).before(place(handles, "go")).live == {"x", "y"}
    assert info_of(chooses.__code__).before(0).live == {"a", "b", "c"}
    assert info_of(stores.__code__).before(0).live == set()


def test_whether_the_program_handles_an_error() -> None:
    assert info_of(handles.__code__).is_caught(place(handles, "go"))
    assert not info_of(opens.__code__).is_caught(place(opens, "go"))
    assert not info_of(stores.__code__).is_caught(place(stores, "go"))


# -- programs --


def traced(function: object) -> Graph:
    graph = trace(function, {})  # type: ignore[arg-type]
    verify(graph)
    return graph


def ops(graph: Graph, name: str) -> int:
    return sum(node.op == name for node in graph.nodes())


@sgc.function
def plain_loop(s):  # type: ignore[no-untyped-def]
    for part in ("a", "b", "c"):
        s += part + sgc.gen("x", max_tokens=4)
        if s["x"] == "yes":
            s += "good"
        s += "."


@sgc.function(max_turns=7)
def bounded(s):  # type: ignore[no-untyped-def]
    s += sgc.gen("x", max_tokens=4)
    while s["x"] != "stop":
        s += "turn " + sgc.gen("x", max_tokens=4)


@sgc.function
def joined(s):  # type: ignore[no-untyped-def]
    s += sgc.gen("x", max_tokens=4)
    told = s["x"] if s["x"] == "yes" else s["x"].strip()
    unread = s["x"] if s["x"] == "no" else s["x"].lower()
    s += told
    if not unread:
        s += "nothing"
    s += sgc.gen("y", max_tokens=4)


@sgc.function
def carried(s):  # type: ignore[no-untyped-def]
    s += sgc.gen("x", max_tokens=4)
    told = s["x"].strip()
    if s["x"] == "yes":
        told = s["x"].upper()
    s += sgc.gen("z", max_tokens=4)
    if s["z"] == "no":
        told = s["z"].upper()
    s += told


def test_what_one_join_hands_on_to_the_next_is_kept() -> None:
    graph = traced(carried)
    assert ops(graph, "gen") == 2
    joins = [block for block in graph.blocks if any(p.type == TEXT for p in block.params)]
    assert len(joins) >= 2


def test_turns_of_a_loop_over_texts_are_told_apart() -> None:
    graph = traced(plain_loop)
    assert ops(graph, "gen") == 3
    assert [node.text("text") for node in graph.nodes() if node.op == "const"].count("good") == 3


@sgc.function(max_turns=7)
def counting(s):  # type: ignore[no-untyped-def]
    n, said = 0, ""
    while True:
        s += "turn " + sgc.gen("x", max_tokens=4)
        if s["x"] == "stop":
            return n, said
        n += 1
        if s["x"] != "no":
            said += s["x"]


def test_each_way_back_to_a_wider_state_counts_its_turn() -> None:
    graph = traced(counting)
    assert (ops(graph, "gen"), ops(graph, "fail")) == (1, 2)


def test_a_loop_is_a_jump_back() -> None:
    graph = traced(bounded)
    assert (ops(graph, "gen"), ops(graph, "fail")) == (2, 1)
    jumps = [node for node in graph.nodes() if node.op == "jump"]
    head = next(block.name for block in graph.blocks if len(block.params) > 1)
    first, back = (node for node in jumps if node.text("target") == head)
    given = zip(*(node.get("args") for node in (first, back)), strict=True)
    assert all(one != other for one, other in given), "what changes is handed on, and no more"


def test_ways_join_with_what_they_differ_in() -> None:
    graph = traced(joined)
    assert ops(graph, "gen") == 2
    assert {p.type.kind for block in graph.blocks for p in block.params} >= {TEXT.kind}


def test_each_program_gives_the_same_compiled(scripted: Callable[..., object]) -> None:
    """On replies that lead every way."""
    for function in (plain_loop, joined, carried):
        compiled = function.compile()
        for replies in (["yes", "stop", "no"], ["no", " x ", "stop"], ["stop"], [""]):
            told = [_texts(run, scripted, replies) for run in (function, compiled)]
            assert told[0] == told[1]


def _texts(program: object, scripted: Callable[..., object], replies: list[str]) -> str:
    waiting = iter(replies * 8)

    def reply(*_: object) -> str:
        return next(waiting)

    try:
        return program.run(backend=scripted(reply)).text()  # type: ignore[attr-defined]
    except sgc.SgcError as error:
        return type(error).__name__


# -- what is mapped --


def test_the_type_of_what_is_gathered() -> None:
    assert joined_type({TEXT, choice_of(("a",))}) == TEXT
    assert joined_type({TEXT, INT}) == JSON
    assert joined_type({FLOAT}) == FLOAT


def test_lists_that_nothing_reads_are_left_out() -> None:
    graph = parse(
        """sgir 1
        program @p(%xs: list[text]) {
          %s = stream "p" path="p"
          %a, %b, %c, %d = map 0 %xs caller=%s names=["a", "b"] returns=true texts=true
          return [%b, %d]
        }
        called @f(%x: text) {
          %s = stream "f" path="f"
          %s1, %a = gen %s
          publish %s1 "f" keys=["a", "b"] items=[%a, %a]
          return %x
        }"""
    )
    (node,) = [node for node in narrowed(graph).nodes() if node.op == "map"]
    assert [value.name for value in node.results] == ["b", "d"]
    fields = dict(node.fields)
    assert fields["names"] == (Lit("b"),)
    assert "returns" not in fields
    assert fields["texts"] == Lit(True)


def test_a_function_does_not_map_itself() -> None:
    callees = Callees(plain_loop, lambda wanted: pytest.fail("it is traced"))
    with pytest.raises(BaseException, match="inside of plain_loop"):
        callees.find(Wanted(plain_loop, {}, {}, None, None))


def test_a_fault_of_the_tracer_is_no_error_of_the_program(monkeypatch):
    compute = TraceSession.compute

    def fails(self: TraceSession, fn: str, *args: object, **kwargs: object) -> object:
        # An `item` has no type of its own, which is asserted.
        return compute(self, fn if self.path is None else "item", *args)

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=2)
        if s["x"] == "yes":
            s += s["x"].upper()

    monkeypatch.setattr(TraceSession, "compute", fails)
    with pytest.raises(TraceError, match="a fault of its own"):
        trace(program)


# -- runs --


@sgc.function
def four_tests(s, q: str):
    for word in ("a", "b", "c", "d"):
        if word in q:
            s += word
    s += q + sgc.gen("x")


def test_what_a_run_of_a_trace_holds_is_freed_as_it_ends(monkeypatch):
    alive: weakref.WeakSet[Loops] = weakref.WeakSet()
    most, start = [], Loops.start

    def started(self: Loops) -> None:
        alive.add(self)
        most.append(len(alive))
        start(self)

    monkeypatch.setattr(Loops, "start", started)
    monkeypatch.setattr(gc, "enable", lambda: None)  # by counting references alone
    gc.disable()
    try:
        trace(four_tests)
    finally:
        monkeypatch.undo()
        gc.enable()
    assert len(most) > 8
    assert max(most) <= 2


@dataclass
class Placed:
    where: str = field(default_factory=here)


def test_an_error_in_what_dataclasses_has_made_names_the_line_that_calls_it():
    line = sys._getframe().f_lineno + 1
    assert Placed().where == f"test_tracing_parts.py:{line}"
