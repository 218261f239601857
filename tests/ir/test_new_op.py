"""A new op is a row of the table, a handler and a word: nothing else has to know its name.

Three ops are in the table while a test runs: one asks, one appends, one is pure. Both forms, the
verifier, every pass and the executor take them as they are.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pass_runs
import pytest
from tests_support import results, run_both

import sgc
from sgc.errors import VerifyError
from sgc.ir.file.sgir import from_bytes, to_bytes
from sgc.ir.graph import Graph, Node
from sgc.ir.op_specs import PRINTABLE, STREAMS, TEXTUAL, FieldSpec, Flag, OpSpec
from sgc.ir.ops import OPS
from sgc.ir.sampling import SAMPLING
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.ir.types import Kind
from sgc.ir.verify import verify
from sgc.lang.append import advance
from sgc.lang.state import ProgramState
from sgc.passes.base import Preserves
from sgc.passes.pipeline import PASSES, optimize
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.backend import Prompt, Sampling
from sgc.runtime.executor.ops.handlers import ASKING, HANDLERS
from sgc.runtime.executor.ops.run import Run
from sgc.runtime.executor.ops.showing import extend
from sgc.runtime.executor.run.record import RunResult
from sgc.runtime.executor.run.stream import Piece, PieceKind, pass_gate

# -- the rows --------------------------------------------------------------------------------

STREAM = FieldSpec("stream", STREAMS, consumes=True, positional=True)
ROWS = (
    OpSpec(
        "answer",
        "Asks for a short answer, appends it and gives it.",
        (
            STREAM,
            FieldSpec("name", frozenset({Kind.TEXT}), default="", static=True, is_label=True),
            FieldSpec("last", frozenset({Kind.BOOL}), default=False, static=True, is_label=True),
            *SAMPLING,
        ),
        (Kind.STREAM, Kind.TEXT),
        frozenset({Flag.APPENDS, Flag.STOCHASTIC, Flag.ASKS, Flag.GENERATES}),
        '%s2, %short = answer %s1 name="short"',
    ),
    OpSpec(
        "quote",
        "Appends a value in quotation marks.",
        (STREAM, FieldSpec("value", PRINTABLE, positional=True)),
        (Kind.STREAM,),
        frozenset({Flag.APPENDS}),
        "%s1 = quote %s0 %topic",
    ),
    OpSpec(
        "louder",
        "A text in capital letters.",
        (FieldSpec("value", TEXTUAL, positional=True),),
        (Kind.TEXT,),
        frozenset({Flag.PURE}),
        "%loud = louder %short",
    ),
)

# -- the handlers ----------------------------------------------------------------------------


async def answer(run: Run, node: Node) -> tuple[Any, ...]:
    state = run.field(node, "stream")
    await pass_gate(state)
    prompt = run.context.prompt(state)
    backend = run.asking.backend_of(run, node, state.path, state.n_draws)
    reply = await backend.generate(prompt, Sampling(max_tokens=8, temperature=0.0))
    piece = Piece(PieceKind.GENERATED, reply.text, ids=reply.kept_ids)
    return state.draw([piece], prompt, run.context.special), reply.text


def quote(run: Run, node: Node) -> tuple[Any, ...]:
    text = f'"{run.field(node, "value")}"'
    return (extend(run, node, run.field(node, "stream"), Piece(PieceKind.VALUE, text)),)


def louder(run: Run, node: Node) -> tuple[Any, ...]:
    return (run.field(node, "value").upper(),)


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in ROWS:
        monkeypatch.setitem(OPS, row.name, row)
    monkeypatch.setitem(ASKING, "answer", answer)
    monkeypatch.setitem(HANDLERS, "quote", quote)
    monkeypatch.setitem(HANDLERS, "louder", louder)


# -- the goldens -----------------------------------------------------------------------------

BEFORE = """\
sgir 1
program @p(%x: text) {
^entry:
  %s0           = stream "p" path="p"
  %s1           = quote  %s0 %x
  %s2, %c0, %c1 = fork   %s1 2
  %c2, %one     = answer %c0 name="one" temperature=0.0
  %c3, %two     = answer %c1 name="two" temperature=0.0
  %unread       = louder %x
  %is_x: bool   = compute "eq" [%two, %x]
  branch %is_x then="yes" orelse="no"
^yes:
  %s3 = const  %s2 "yes"
  jump "end" args=[%s3]
^no:
  %s4 = const  %s2 "no"
  jump "end" args=[%s4]
^end(%s5: stream):
  %t0         = stream "q" path="q"
  %t1         = quote  %t0 "Why?"
  %t2, %three = answer %t1 name="three"
  %loud       = louder %three
  publish %s5 "p"
  publish %c2 "p" keys=["one"] items=[%one]
  publish %c3 "p" keys=["two"] items=[%two]
  publish %t2 "q" keys=["three"] items=[%three]
  return %loud
}
"""
AFTER = """\
sgir 1
program @p(%x: text) {
^entry:
  %s0             = stream "p" path="p"
  %s1             = quote  %s0 %x
  %s2, %c0, %c1   = fork   %s1 2
  %c2, %one       = answer %c0 name="one" last=true temperature=0.0
  %c3, %two: text = share  %c1 %c0 %c2 %one name="two"
  %is_x: bool     = compute "eq" [%two, %x]
  %t0             = stream "q" path="q"
  %t1             = quote  %t0 "Why?"
  %t2, %three     = answer %t1 name="three" last=true
  %loud           = louder %three
  branch %is_x then="yes" orelse="no"
^yes:
  %s3 = const  %s2 "yes"
  jump "end" args=[%s3]
^no:
  %s4 = const  %s2 "no"
  jump "end" args=[%s4]
^end(%s5: stream):
  publish %s5 "p"
  publish %c2 "p" keys=["one"] items=[%one]
  publish %c3 "p" keys=["two"] items=[%two]
  publish %t2 "q" keys=["three"] items=[%three]
  return %loud
}
"""


def program() -> Graph:
    return parse(BEFORE)


def test_both_forms_hold_the_new_ops() -> None:
    graph = program()
    assert to_text(graph) == BEFORE
    assert from_bytes(to_bytes(graph)) == graph


def test_the_verifier_knows_what_they_take_and_give() -> None:
    for old, new, rule in (
        ("quote  %s0 %x", "quote  %s0 %s0", "R1 fields"),
        ("answer %c1", "answer %c0", "R4 linear-stream"),
        ("%loud       =", "%loud: int  =", "R2 results"),
    ):
        with pytest.raises(VerifyError, match=rule):
            verify(parse(BEFORE.replace(old, new)))


def test_passes_share_start_early_drop_and_mark_them() -> None:
    after = optimize(program(), 1)
    assert to_text(replace(after, receipts=())) == AFTER


@pytest.mark.parametrize("x", ["tea", "3"])
@pytest.mark.parametrize("name", PASSES)
def test_every_pass_keeps_what_it_says(name: str, x: str) -> None:
    before, twin = pass_runs.twins(program())
    after = pass_runs.check_pass(PASSES[name], before, twin)
    pass_runs.check_forms(after)
    (wanted, asked), (found, asked_after) = run(before, x), run(after, x)
    assert results(found) == results(wanted)
    if PASSES[name].preserves is Preserves.REQUESTS:
        assert sorted(asked_after) == sorted(asked)


def run(graph: Graph, x: str) -> tuple[RunResult, list[str]]:
    """The result, and the prompts that were asked with."""
    prompts: list[str] = []

    def reply(prompt: Prompt, sampling: Sampling) -> str:
        prompts.append("".join(segment.text for segment in prompt))
        return str(len(prompts[-1]))

    return asyncio.run(run_graph(graph, ScriptedBackend(reply), {"x": x})), prompts


def test_a_run_gives_what_the_handlers_give() -> None:
    found, prompts = run(program(), "3")
    texts = [stream.text for stream in found.streams]
    assert texts == ['"3"yes', '"3"3', '"3"3', '"Why?"6']
    assert found.ret_value == "6"
    assert sorted(prompts) == ['"3"', '"3"', '"Why?"']
    shared, prompts = run(optimize(program(), 1), "3")
    assert results(shared) == results(found)
    assert sorted(prompts) == ['"3"', '"Why?"']


# -- the word --------------------------------------------------------------------------------


def quoted(state: ProgramState, text: str) -> None:
    """What `s += sgc.quoted(text)` would do."""
    ((_, operand),) = state.session.text_parts(text)
    advance(state, "quote", value=operand)


@sgc.function
def uses_the_word(s, x):
    s += "Say "
    quoted(s, x)
    s += " again: " + sgc.gen("again")


def test_a_word_emits_it_interpreted_and_compiled(scripted: Any) -> None:
    found = run_both(uses_the_word, scripted(), x="tea")
    assert found.text().startswith('Say "tea" again: ')
    (node,) = (each for each in uses_the_word.compile().graph.nodes() if each.op == "quote")
    assert str(node.loc).startswith("test_new_op.py:")
