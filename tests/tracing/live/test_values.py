"""Attributes of live objects, which have values out of arguments or JSON.
Nothing here relies on the trace check."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from control_flow import agree, agree_or_refuse
from traced_at_once import live_at_once

import sgc
from sgc.errors import TraceError
from sgc.programs.program import Program
from sgc.tracing import tracer

REPLIES = (
    '{"k": ["a"], "n": 3}', '{"k": [], "n": "b"}', '{"k": {"x": 1}, "n": null}', "yes", "", "2",
)  # fmt: skip
ROWS = [{"from": "a@x", "tags": ["t", "u"]}, {"from": "b@y", "tags": []}]


@dataclass
class Mail:
    sender: Any
    tags: Any = None
    kind: str = "other"
    log: list[tuple[int, str]] = field(default_factory=list)

    def header(self) -> str:
        return f"From: {self.sender} {self.kind}"

    def last(self, n: int) -> str:
        return next((text for number, text in reversed(self.log) if number == n), "none")


def sorted_into_kinds(s: Any, rows: list[dict[str, Any]]) -> Any:
    mails = [Mail(row["from"], row["tags"]) for row in rows]
    for mail in mails:
        s += mail.header() + sgc.gen("a", max_tokens=9)
        if "a" in s["a"]:
            mail.kind = "good"
    best = max(mails, key=lambda each: each.kind)
    s += best.header() + f"{best.tags}"
    return [each.sender for each in mails], best.tags


def out_of_a_reply(s: Any, rows: list[dict[str, Any]]) -> Any:
    mails = []
    for row in rows:
        s += str(row["from"]) + sgc.gen("a", max_tokens=9)
        try:
            mails.append(Mail(row["from"], json.loads(s["a"])))
        except ValueError:
            mails.append(Mail("none"))
    for mail in mails:
        if isinstance(mail.tags, dict):
            mail.kind = "dict"
    first = min(mails, key=lambda each: each.kind)
    s += f"{first.sender} {first.tags}"


def one_is_changed(s: Any, rows: list[dict[str, Any]]) -> Any:
    mails = [Mail(row["from"], row["tags"]) for row in rows]
    for mail in mails:
        s += mail.header() + sgc.gen("a", max_tokens=9)
        if s["a"]:
            mail.tags.append("new")
            mail.kind = "changed"
    return [(each.kind, each.tags) for each in mails], [row["tags"] for row in rows]


def the_row_is_changed(s: Any, rows: list[dict[str, Any]]) -> Any:
    s += sgc.gen("a", max_tokens=9)
    data = json.loads(s["a"])
    mails = [Mail("x", data), Mail("y", data)]
    for mail in mails:
        s += mail.header() + sgc.gen("b", max_tokens=9)
        mail.kind = s["b"]
    data["new"] = "1"
    for mail in sorted(mails, key=lambda each: each.kind):
        s += f"{mail.tags}"


def two_have_the_same(s: Any, rows: list[dict[str, Any]]) -> Any:
    s += sgc.gen("a", max_tokens=9)
    data = json.loads(s["a"])
    mails = [Mail("x", data), Mail("y", data), Mail("z", json.loads(s["a"]))]
    for mail in mails:
        s += mail.header() + sgc.gen("b", max_tokens=9)
        mail.kind = s["b"]
    first = min(mails, key=lambda each: each.kind)
    first.tags["new"] = "1"
    return [each.tags for each in mails]


def one_is_another(s: Any, rows: list[dict[str, Any]]) -> Any:
    mails = [Mail(row["from"], row["tags"]) for row in rows]
    for mail in mails:
        s += mail.header() + sgc.gen("a", max_tokens=9)
        mail.kind = s["a"]
    best = max(mails, key=lambda each: each.kind)
    return [(each.tags is best.tags, each.tags == best.tags, each is best) for each in mails]


def backwards(s: Any, rows: list[dict[str, Any]]) -> Any:
    mails = [Mail(row["from"]) for row in rows]
    for mail in mails:
        s += mail.header() + sgc.gen("a", max_tokens=9)
        mail.log.append((len(mail.log), s["a"]))
    last = mails[-1]
    for number, text in reversed(last.log):
        s += f"{number} {text}"
        if "a" in text and len(last.log) < 4:
            last.log.append((7, text))
    return last.last(7)


WHOLE = [sorted_into_kinds, out_of_a_reply, backwards]
CHANGED = [one_is_changed, the_row_is_changed, two_have_the_same, one_is_another]


@pytest.mark.parametrize("of", WHOLE)
def test_attributes_have_values_of_run_time(of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)
    program = sgc.function(of)
    graph = tracer.trace(program, is_full=True)
    agree(program, REPLIES, n=12, graph=graph, rows=ROWS)
    for rows in (ROWS[1:], []):
        agree_or_refuse(program, Program(graph), REPLIES, 4, rows=rows)


@pytest.mark.parametrize("of", CHANGED)
def test_what_others_have_changes_as_in_python(of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)
    program = sgc.function(of)
    try:
        compiled = Program(tracer.trace(program, is_full=True))
    except TraceError:
        return
    agree_or_refuse(program, compiled, REPLIES, 20, rows=ROWS)


@dataclass
class Tagged:
    name: str
    tags: list[str] = field(default_factory=list)


@sgc.function
def lists_in_tuples(s):
    s += "q" + sgc.gen("l", stop="\n")
    found = [Tagged(word) for word in s["l"].split(",")]
    pairs = []
    for each in found:
        pairs.append((each.name, each.tags))
    for each in found:
        s += each.name + sgc.gen("t", stop="\n")
        each.tags.append(s["t"])
    for name, tags in pairs:
        tags.append("seen")
        s += f"{name} {len(tags)};"
    best = max(found, key=lambda each: len(each.tags))
    return "/".join(best.tags)


def test_a_list_of_an_attribute_in_a_tuple_is_the_same_list(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(lists_in_tuples, ["a,b", "a", ""], n=6)


@sgc.function
def also_a_variables(s):
    found = [Tagged(word) for word in "ab"]
    for each in found:
        s += each.name + sgc.gen("t", stop="\n")
        words = s["t"].split(",")
        each.tags = words
        if words[0]:
            s += words[0] + str(len(words))
    best = max(found, key=lambda each: len(each.tags))
    best.name += "!"
    s += f"{best.name} {best.tags}" + sgc.gen("z", stop="\n")


@sgc.function
def changed_by_the_attribute(s):
    found = [Tagged(word) for word in "ab"]
    for each in found:
        s += each.name + sgc.gen("t", stop="\n")
        words = s["t"].split(",")
        each.tags = words
        each.tags.append("late")
        s += str(len(words))
    best = max(found, key=lambda each: len(each.tags))
    best.name += "!"
    s += f"{best.name} {best.tags}"


@sgc.function
def changed_by_the_variable(s):
    found = [Tagged(word) for word in "ab"]
    for each in found:
        s += each.name + sgc.gen("t", stop="\n")
        words = s["t"].split(",")
        each.tags = words
        words.append("late")
    best = max(found, key=lambda each: len(each.tags))
    best.name += "!"
    s += f"{best.name} {best.tags}"


def test_a_list_that_a_variable_has_too_is_taken_if_neither_changes(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(also_a_variables, ["a,b", "a", "", "c,d,e"], n=8)


@pytest.mark.parametrize(
    "program", [changed_by_the_attribute, changed_by_the_variable], ids=lambda each: each.__name__
)
def test_a_list_that_two_have_is_changed(program: Any, monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(program, ["a,b", "a", "", "c,d,e"], n=8)
