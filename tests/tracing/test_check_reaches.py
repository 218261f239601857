"""The trace check reaches the arms of a program's tests, by replies that the tests look for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import sgc
from sgc import gen
from sgc.errors import TraceError
from sgc.runtime.executor.interface.backend import Sampling
from sgc.tracing.checking.candidates import Candidates
from sgc.tracing.checking.check import check_trace
from sgc.tracing.checking.hints import Hints, HintsOf
from sgc.tracing.checking.pattern_samples import sample_of
from sgc.tracing.checking.rounds import Draw, Round
from sgc.tracing.checking.scripted_arguments import Arguments, schema_of_text
from sgc.tracing.checking.scripted_replies import obeying
from sgc.tracing.checking.trials import Trial
from sgc.tracing.tracer import trace

pytestmark = pytest.mark.full_check


def of_a_number(said: str) -> Callable[..., Any]:
    def program(s, q: str):
        s += q + gen("g", max_tokens=8)
        try:
            n = int(s["g"])
        except ValueError:
            return "none"
        if n == 7321:
            s += said

    return program


def of_an_argument(said: str) -> Callable[..., Any]:
    def program(s, secret: int):
        s += gen("g", regex=r"\d{1,3}", max_tokens=8)
        if int(s["g"]) == secret:
            s += said

    return program


def of_a_pattern(said: str) -> Callable[..., Any]:
    def program(s, q: str):
        s += q + gen("g", max_tokens=8)
        found = re.search(r"Action: (\w+)\[(\d{3})\]", s["g"])
        if found and found[1] != "x":
            s += said

    return program


def of_data(said: str) -> Callable[..., Any]:
    def program(s, q: str):
        s += q + gen("g", max_tokens=8)
        try:
            call = json.loads(s["g"])
            name, given = call["tool"], call["arguments"]
        except (ValueError, KeyError, TypeError):
            return "no call"
        if name == "lookup" and "query" in given:
            s += said

    return program


def of_a_second_reply(said: str) -> Callable[..., Any]:
    def program(s, q: str):
        s += q + gen("first", max_tokens=8)
        if not s["first"].startswith("Plan of the day"):
            return "no plan"
        s += "\n" + gen("second", max_tokens=8)
        if s["second"].strip().lower() == "carried out":
            s += said

    return program


@sgc.tool(effect="pure")
def rows(query: str) -> list[list]:
    return [["a", 1]]


def of_a_tools_rows(said: str) -> Callable[..., Any]:
    def program(s, q: str):
        if 3 in [row[1] for row in rows(q) if len(row) > 1]:
            s += said
        s += gen("g", max_tokens=8)

    return program


def of_a_default(said: str) -> Callable[..., Any]:
    def program(s, q: str, today: str = "2024-05-17"):
        if date.fromisoformat(today).year == 2024:
            s += said
        s += q + gen("g", max_tokens=8)

    return program


def of_a_date(said: str) -> Callable[..., Any]:
    def program(s, q: str):
        s += q + gen("g", max_tokens=8)
        day = date.fromisoformat(s["g"])
        s += said + str(day.month)

    return program


def of_the_end_of_a_date(said: str) -> Callable[..., Any]:
    def program(s, q: str):
        s += q + gen("g", max_tokens=2)
        day = date.fromisoformat("2026-01-0" + s["g"])
        s += said + str(day.year)

    return program


def of_a_time(said: str) -> Callable[..., Any]:
    def program(s, q: str):
        s += q + gen("g", max_tokens=8)
        begins = datetime.strptime(s["g"].strip(), "%d %B %Y, %H:%M")
        s += said + str(begins.hour)

    return program


def of_an_amount(said: str) -> Callable[..., Any]:
    def program(s, q: str):
        s += q + gen("g", max_tokens=8)
        if Decimal(s["g"]) > 2:
            s += said

    return program


PROGRAMS = [
    of_a_default, of_a_date, of_the_end_of_a_date, of_a_time, of_an_amount,
    of_a_number, of_an_argument, of_a_pattern, of_data, of_a_second_reply, of_a_tools_rows,
]  # fmt: skip


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_a_wrong_arm_is_found(make):
    right = sgc.function(make("right"))
    check_trace(right, trace(right), {})
    with pytest.raises(TraceError, match="wrong"):
        check_trace(right, trace(sgc.function(make("wrong"))), {})


def test_hints_of_numbers_keep_the_type_of_an_argument():
    def program(s, n: int, r: float):
        s += f"{n} {r}" + gen("g", max_tokens=2)

    given, each = Arguments(trace(sgc.function(program))), Round(("a",), 0, True, ("a",))
    hints = Hints(numbers=(2.5, 7), arguments=frozenset({"n", "r"}))
    found = [given.of(number, each, hints) for number in range(12)]
    assert all(type(row["n"]) is int and type(row["r"]) is float for row in found)


def test_a_constraint_that_backtracks_does_not_hang_the_check():
    sampling = Sampling(regex="(a{0,9}){0,30}b", max_tokens=90)
    texts = ("a" * 60, "aab")
    assert obeying(sampling, 0, texts) != texts[0]
    assert obeying(sampling, 1, texts) == texts[1]


PATTERNS = [
    r"(\w+): (\d+)", r"[^,\n]{2,5},", r"(?i)yes|no", r"(?P<a>[a-f])-(?P=a)", r"^\s*\d+\.\s+(.+)$",
    r"\[(\w+)\]\((https?://[^)]+)\)", r"(?:ab|cd)*?x", r"\D\W\S", r"[äö-ü]", r"a{3}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_sample_matches_its_pattern(pattern):
    assert all(re.search(pattern, sample_of(pattern, Random(n)) or "") for n in range(30))


def test_what_is_no_pattern_has_no_sample():
    assert sample_of("(", Random(0)) is None


def test_hints_are_those_of_what_makes_a_test():
    graph = trace(sgc.function(of_data("x")))
    hints = HintsOf(graph)
    assert {"tool", "arguments", "query"} <= {*hints.keys}
    tests = [b.name for b in graph.blocks if b.nodes[-1].op == "branch"]
    found = [hints.of(graph.name, name) for name in tests]
    assert any("lookup" in each.texts for each in found)
    assert all(each.is_of_reply for each in found)


def test_candidates_are_made_of_hints():
    def made() -> tuple[str, ...]:
        hints = Hints(texts=("Plan",), numbers=(12,), keys=("tool",), patterns=(r"A\d",))
        return tuple(
            text
            for nth in range(12)
            for text in Candidates(hints, ("own",), ("other",), Random(nth)).texts(nth)
        )

    assert made() == made()
    assert {"Plan", "12"} <= {*made()}
    assert any(re.fullmatch(r"A\d", text) for text in made())
    assert any({"tool", "other"} <= {*_data(text)} for text in made())


def _data(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return ()
    return found if isinstance(found, dict) else ()


def test_a_reply_is_changed_in_a_part():
    reply = json.dumps({"tool": "look", "arguments": {"city": "Ulm"}})
    hints = Hints(texts=("query",), keys=("query", "arguments"))
    made = [Candidates(hints, (), (), Random(n), reply).texts(1)[0] for n in range(60)]
    found = [_data(text) for text in made]
    assert all(found)
    assert any("query" in str(each["arguments"]) for each in found)
    assert any(each["tool"] == "look" and each["arguments"] != {"city": "Ulm"} for each in found)


def test_replies_change_from_a_prompt_on():
    first, second, third = (Draw(n, ("a",)) for n in range(3))
    trial = Trial({}, ((math.inf, first),)).changed_from(10, second)
    assert [trial.draw_for(n).number for n in (0, 9, 10, 99)] == [0, 0, 1, 1]
    later = trial.changed_from(20, third)
    assert [later.draw_for(n).number for n in (9, 10, 19, 20)] == [0, 1, 1, 2]
    assert [trial.changed_from(5, third).draw_for(n).number for n in (4, 5, 99)] == [0, 2, 2]
    assert trial.changed_from(0, third).draw_for(0).number == 2


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("list[list]", {"type": "array", "items": {"type": "array"}}),
        ("dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("str | None", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ("Any", {}),
        ("", {}),
    ],
)
def test_an_annotation_has_a_schema(annotation, schema):
    assert schema_of_text(annotation) == schema
