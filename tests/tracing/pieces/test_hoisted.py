"""What a comprehension goes over is evaluated before the code that the rest of it becomes."""

from __future__ import annotations

from collections import Counter, defaultdict
from enum import StrEnum
from typing import Any

import pytest
from control_flow import agree, equal_or_refused

import sgc


class Kind(StrEnum):
    OLD = "old"
    NEW = "new"
    NONE = "none"


ROWS: dict[Kind, list[dict[str, Any]]] = {
    Kind.OLD: [{"n": 1, "t": "a"}, {"n": 2, "t": "b"}],
    Kind.NEW: [{"n": 2, "t": "c"}, {"n": 3, "t": ""}],
}
REPLIES = ["least=2", "most=1", "least=3 most=9", "x=1", "", "least=z"]


class Shelf:
    def __init__(self) -> None:
        self.n_read = 0

    def rows(self, kind: Kind) -> list[dict[str, Any]]:
        self.n_read += 1
        return ROWS[kind]


def within(row: dict[str, Any], least: int = 0, most: int = 9) -> bool:
    return bool(least <= row["n"] <= most)


def limits(text: str) -> dict[str, int]:
    found = {}
    for part in text.split():
        name, _, number = part.partition("=")
        found[name] = int(number)
    return found


def of_a_subscript(kind: Kind, given: dict[str, int]) -> Any:
    found = [row for row in ROWS[kind] if within(row, **given)]
    return [row["t"] for row in found], len(found)


def of_a_method(kind: Kind, given: dict[str, int]) -> Any:
    shelf = Shelf()
    found = {row["t"]: row for row in shelf.rows(kind) if within(row, **given)}
    return found, shelf.n_read


def of_a_defaultdict(kind: Kind, given: dict[str, int]) -> Any:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    groups["old"].append({"n": 2, "t": "q"})
    groups = [row for row in groups[kind.value] if within(row, **given)]  # type: ignore[assignment]
    return groups


def of_an_iterator(kind: Kind, given: dict[str, int]) -> Any:
    found = [(n, row["t"]) for n, row in enumerate(ROWS[kind]) if within(row, **given)]
    return found


def that_is_changed(kind: Kind, given: dict[str, int]) -> Any:
    own = {kind: [dict(row) for row in ROWS[kind]]}
    found = [row for row in own[kind] if within(row, **given)]
    for row in found:
        row["n"] = 0
    return own, found


def program(body: Any) -> Any:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.select("kind", choices=[each.value for each in Kind])
        kind = Kind(s["kind"])
        s += sgc.gen("a", max_tokens=9)
        try:
            found = body(kind, limits(s["a"]))
        except (KeyError, TypeError, ValueError) as error:
            s += f"{type(error).__name__}: {error}"
            return None
        s += str(found)
        return found

    return shown


def test_of_a_table_by_an_enum() -> None:
    agree(program(of_a_subscript), REPLIES, q="x", n=24)


@pytest.mark.sweep
@pytest.mark.parametrize("body", [that_is_changed, of_a_method, of_a_defaultdict, of_an_iterator])
def test_others_are_equal_or_refused(body: Any) -> None:
    equal_or_refused(program(body), REPLIES, n=16)


@sgc.function
def ask(s, question: str):
    s += question + sgc.gen("answer", max_tokens=4)
    return s["answer"]


def counts_answers(s) -> Any:
    votes: Counter[str] = Counter()
    for _ in sgc.turns(2):
        votes[ask("q").ret_value] += 1
    return votes.most_common()


def keeps_answers(s) -> Any:
    found = {"": 0}
    for n in range(2):
        found[ask(f"{n}").ret_value.strip()] = len(ask("value").ret_value)
        found[ask("again").ret_value] = n
    return found


def counts_missing_keys(s) -> Any:
    votes = {"x=1": 0, "": 1}
    try:
        votes[ask("q").ret_value] += 1
    except KeyError as e:
        return str(e), votes
    return votes


@pytest.mark.parametrize("body", [counts_answers, keeps_answers, counts_missing_keys])
def test_keys_that_are_asked_for(body: Any) -> None:
    """A key is what the model says, and its dict is changed by code."""

    @sgc.function
    def program(s, q: str):
        found = body(s)
        s += f"{found}" + sgc.gen("end", max_tokens=2)
        return found

    agree(program, REPLIES, n=6, q="x")
