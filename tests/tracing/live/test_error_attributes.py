"""Attributes of the program's own errors, also of names that the tracer's values and its own
errors use for themselves (`index`, `kind`, `value`, `why`)."""

from __future__ import annotations

import pytest
from control_flow import agree
from traced_at_once import live_at_once

import sgc
from sgc.tracing import tracer

REPLIES = ("aa", "b", "ccc", "")


class Conflict(Exception):
    def __init__(self, kind: str, index: int):
        self.kind, self.index = kind, index
        self.value, self.count, self.why = index * 2, index + 1, kind[1:]
        self.given, self.code, self.symbol = [kind], {kind: index}, None
        super().__init__(f"{kind} at {index}")


def refuse(word: str, seen: list[str]) -> None:
    if word in seen:
        raise Conflict("word", seen.index(word))
    if not word:
        raise Conflict("none", len(seen))
    seen.append(word)


def by_line(e: Conflict) -> object:
    return [e.kind[0], e.index, e.value, e.count, e.why, e.given, e.code, e.symbol]


def by_text(e: Conflict) -> object:
    return f"{e.kind[0]}{e.index}: {e.count}"


def by_pattern(e: Conflict) -> object:
    match e:
        case Conflict(kind="word", index=i, value=v, why=w):
            return [i, v, w]
        case Conflict(kind=kind):
            return kind


def missing(e: Conflict) -> object:
    try:
        return e.title  # type: ignore[attr-defined]
    except AttributeError as error:
        return str(error)


WAYS = (by_line, by_text, by_pattern, missing)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


@pytest.mark.parametrize("way", WAYS)
def test_a_handler_reads_what_the_error_holds(way):
    @sgc.function
    def program(s, q: str):
        seen: list[str] = []
        told = []
        for _ in range(5):
            s += q + sgc.gen("x")
            try:
                refuse(s["x"], seen)
            except Conflict as e:
                told.append(way(e))
                s += f"No: {e}."
                continue
            told.append("ok")
        s += f"{told}" + sgc.gen("y")
        return told

    agree(program, REPLIES, q="x")


def test_a_tools_error_has_no_attributes():
    @sgc.tool(effect="pure")
    def look(word: str) -> str:
        return {"aa": "x", "b": "y"}[word]

    @sgc.function
    def program(s, q: str):
        told = []
        for _ in range(3):
            s += q + sgc.gen("x")
            try:
                told.append(look(s["x"]))
            except KeyError as e:
                try:
                    told.append(f"{e.index}")  # type: ignore[attr-defined]
                except AttributeError as error:
                    told.append(str(error))
        return told

    agree(program, REPLIES, q="x", tools=(look,))
