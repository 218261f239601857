"""Objects of the program's classes that leave it: they are returned, or given to a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from control_flow import agree, replying

import sgc
from sgc.errors import ProgramError, TraceError
from sgc.runtime.executor.interface.records import refuse_leaving
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

REPLIES = ("a", "b", "a,b", "b,a,cc", "", "7", "12", "yes", "no")


class Named(NamedTuple):
    n: int
    word: str


@dataclass
class Note:
    text: str


@dataclass(frozen=True)
class Mark:
    n: int
    word: str = ""


@sgc.function
def ask(s, x: str):
    s += x + sgc.gen("y", max_tokens=4)
    return s["y"]


@sgc.tool(effect="pure")
def shown(note) -> str:
    return note.text


def leaves_as_it_is(s, xs: list[str]):
    notes = [Note(x) for x in xs]
    for note in notes:
        s += note.text + sgc.gen("n", max_tokens=2)
    return notes[0] if xs else None


def leaves_in_a_list(s, xs: list[str]):
    marks = [Mark(len(ask(x).ret_value)) for x in xs]
    return {"all": marks}


def leaves_in_a_named_tuple(s, xs: list[str]):
    events = [Named(len(ask(x).ret_value), x) for x in xs]
    return max(events)


def leaves_to_a_tool(s, xs: list[str]):
    for note in [Note(x) for x in xs]:
        s += shown(note) + sgc.gen("n", max_tokens=2)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "program", [leaves_as_it_is, leaves_in_a_list], ids=lambda program: program.__name__
)
def test_an_object_known_only_at_run_time_does_not_leave_the_program(program: Any) -> None:
    with pytest.raises(TraceError, match="leaves the program"):
        trace(sgc.function(program), is_full=True)


@pytest.mark.slow
def test_a_named_tuple_leaves_it_as_a_tuple() -> None:
    agree(sgc.function(leaves_in_a_named_tuple), REPLIES, xs=["x", "a,b"])


@pytest.mark.slow
def test_a_tool_is_given_no_object() -> None:
    with pytest.raises(TraceError, match="an object of Note leaves the program"):
        trace(sgc.function(leaves_to_a_tool), is_full=True)


@sgc.function
def hides_an_object(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    found = {word: Mark(len(word), word) for word in s["a"].split(",")}
    s += str(len(found)) + sgc.gen("z", max_tokens=2)
    return found


def test_nor_does_one_that_is_found_only_when_it_runs() -> None:
    def compiled_and_run() -> None:
        compiled = hides_an_object.compile()
        compiled.run_once({"q": "x"}, RunOptions(seed=1), replying(1, REPLIES))

    with pytest.raises((ProgramError, TraceError), match="leaves the program"):
        compiled_and_run()


def test_a_list_that_holds_itself_may_leave() -> None:
    items: list[Any] = [1]
    items.append(items)
    assert refuse_leaving(items) is items
