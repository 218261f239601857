"""Calls of programs that data hold while they run: lists, dicts and tuples of what is left of them.
Nothing here relies on the trace check."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from control_flow import agree, replying
from traced_at_once import live_at_once

import sgc
from sgc.errors import TraceError, UnknownVariable
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing import tracer

REPLIES = ("b", "a,bb", "", "3", "ccc")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


KINDS = {"a": 1, "b": 2}


class Item:
    def __init__(self, word: str) -> None:
        self.word, self.points = word, 0


@sgc.function
def ask(s, q: str):
    s += q + sgc.gen("a", stop="\n")
    return s["a"].strip()


@sgc.function
def rate(s, q: str):
    s += q + sgc.gen("mark", stop="\n")
    return {"mark": len(s["mark"]), "seen": []}


@sgc.function
def vote(s, q: str):
    s += q
    forks = s.fork(2)
    forks += sgc.gen("v", stop="\n")
    forks.join()


@sgc.function
def beside_objects(s, words: list[str]):
    items = [Item(word) for word in words]
    calls = [(each, ask(each.word)) for each in items]
    rated = {each.word: rate(each.word) for each in items}
    for each, call in calls:
        each.points += len(call.ret_value)
        s += each.word + call["a"]
    best = max(items, key=lambda each: each.points)
    for word, call in rated.items():
        call.ret_value["seen"].append(word)
    found = [call.ret_value for call in rated.values()]
    s += best.word + sgc.gen("z", stop="\n")
    return found, [(each.word, each.points) for each in items]


@sgc.function
def of_joins(s, words: list[str]):
    calls = []
    for word in words:
        calls.append(vote(word))
    kept = {"all": calls, "first": calls[0]}
    kept["first"]["v"].append("x")  # a list of its own
    n = sum(len(each["v"]) for each in kept["all"])
    s += f"{n}" + sgc.gen("z", stop="\n")
    return [each["v"] for each in calls], n, calls[0] is kept["first"]


@sgc.function
def held_on_some_paths(s, words: list[str]):
    items = [Item(word) for word in words]
    kept, more = [], []
    for each in items:
        call = ask(each.word)
        s += each.word + sgc.gen("g", stop="\n")
        if "a" in s["g"]:
            kept.append(call)
        elif "b" in s["g"]:
            more.append((call, each))
        more.append(call)
        kept.append(call)
    s += ",".join(each["a"] for each in kept) + sgc.gen("z", stop="\n")
    same = [any(each is other for other in more) for each in kept]
    return [each.ret_value for each in kept], len(more), same


@sgc.function
def goes_on_where_it_is_not_held(s, words: list[str]):
    items, kept = [Item(word) for word in words], {}
    for each in items:
        call = ask(each.word)
        s += each.word + sgc.gen("g", stop="\n")
        if "a" in s["g"]:
            kept["x"] = call
        call += "more" + sgc.gen("b", stop="\n")
    s += kept["x"]["b"] if kept else "none"
    return len(items)


@sgc.function
def sort(s, word: str, kinds: list[str]):
    s += word + sgc.select("kind", choices=kinds)
    return {"kind": s["kind"], "n": len(kinds)}


@sgc.function
def mapped_beside_objects(s, words: list[str]):
    items, kinds = [Item(word) for word in words], list(KINDS)
    found = sgc.map(sort, words, kinds=kinds, width=3).returns
    rows = [{"item": each, **row} for each, row in zip(items, found, strict=True)]
    by = dict(zip(words, sgc.map(sort, words, kinds=kinds[:1]).returns, strict=True))
    found[0]["n"] += 5
    for row in rows:
        row["item"].points += row["n"] + by[row["item"].word]["n"]
    s += f"{[each.points for each in items]}" + sgc.gen("z", stop="\n")
    return [row["kind"] for row in rows], [each.points for each in items]


@sgc.function
def named_by_their_turns(s, words: list[str]):
    items = [Item(word) for word in words]
    for n, each in enumerate(items):
        s += each.word + sgc.gen(f"step_{n}", stop="\n")
        each.points = len(s[f"step_{n}"])
    s += str(max(items, key=lambda each: each.points).points) + sgc.gen("z", stop="\n")
    return s["step_0"], [s[f"step_{n}"] for n in range(len(items))]


@sgc.function
def of_no_variable(s, words: list[str]):
    items = [Item(word) for word in words]
    held = {each.word: ask(each.word) for each in items}
    s += held["x"]["b"]


@sgc.function
def gone_on_with(s, words: list[str]):
    items = [Item(word) for word in words]
    held = {each.word: ask(each.word) for each in items}
    held["x"] += sgc.gen("more", stop="\n")
    s += held["x"]["more"]


PROGRAMS = (beside_objects, of_joins, held_on_some_paths, mapped_beside_objects,
            named_by_their_turns)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_as_interpreted(program: Any) -> None:
    agree(program, REPLIES, n=8, words=["x", "y z"])


class Together(ScriptedBackend):
    """Replies when as many requests as are wanted wait at once."""

    def __init__(self, n_wanted: int) -> None:
        super().__init__(lambda *_: "bb")
        self.n, self._are_all = n_wanted, asyncio.Event()

    async def generate(self, *args: Any, **kwargs: Any) -> Any:
        self.n -= 1
        if self.n == 0:
            self._are_all.set()
        await asyncio.wait_for(self._are_all.wait(), 20)
        return await super().generate(*args, **kwargs)


def test_calls_run_while_data_have_them() -> None:
    compiled = sgc.Program(tracer.trace(beside_objects, is_full=True))
    words = ["x", "y", "z"]
    ran = compiled.run_once({"words": words}, RunOptions(seed=1), Endpoint(Together(6)))
    assert [n for _, n in ran.ret_value[1]] == [2, 2, 2]


def test_a_variable_that_a_call_has_not_ends_a_run() -> None:
    compiled = sgc.Program(tracer.trace(of_no_variable, is_full=True))
    with pytest.raises(UnknownVariable, match=r"no variable 'b' has been set.*there are: a"):
        compiled.run_once({"words": ["x"]}, RunOptions(seed=1), replying(1, REPLIES))


@pytest.mark.parametrize("program", [gone_on_with, goes_on_where_it_is_not_held])
def test_a_stream_that_goes_on_is_no_call_that_has_ended(program: Any) -> None:
    with pytest.raises(TraceError):
        tracer.trace(program, is_full=True)
