"""`@sgc.tool` in the language: what it is called with and gives, and that tracing calls none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests_support import asked, results

import sgc
from sgc.errors import ArgumentError, ToolError, TraceError, UsageError
from sgc.runtime.executor.run.options import RunOptions

CALLED: list[Any] = []


@sgc.tool(effect="pure")
def search(query: str, n: int = 3) -> str:
    CALLED.append(("search", query, n))
    return f"{n} hits for {query!r}"


@sgc.tool
async def book(place, *, seats: int) -> int:
    CALLED.append(("book", place, seats))
    await asyncio.sleep(0)
    return seats + 1


@sgc.tool(effect="idempotent")
def names(given: dict) -> list[str]:
    CALLED.append(("names", given))
    return sorted(given)


@sgc.tool(effect="pure", on_error=-1)
def parse(text: str) -> int:
    return int(text)


@sgc.function
def agent(s, question: str):
    s += "Q: " + question + sgc.gen("query")
    s += search(s["query"], n=2)
    s += sgc.gen("place")
    s["seats"] = book(s["place"], seats=2)
    s["names"] = names({"a": question, "b": [s["query"], 1, True, None, 0.5]})
    s += f"{s['seats']} booked" + f" {parse(s['place'])}"
    return s["names"]


@pytest.fixture(autouse=True)
def no_calls():
    CALLED.clear()


def both(function, endpoint, **arguments):
    """The result, which must be the same interpreted and compiled, with the calls of each."""
    options = RunOptions(seed=3)
    interpreted = function.run_once(arguments, options, endpoint)
    calls = list(CALLED)
    program = function.compile()
    assert calls == CALLED, "compiling and checking call no tool"
    CALLED.clear()
    compiled = program.run_once(arguments, options, endpoint)
    assert (results(compiled), asked(compiled)) == (results(interpreted), asked(interpreted))
    assert [c.identity() for c in compiled.tool_calls] == [
        c.identity() for c in interpreted.tool_calls
    ]
    assert sorted(CALLED, key=repr) == sorted(calls, key=repr)
    return compiled


def test_interpreted_and_compiled_call_the_same(scripted):
    result = both(agent, scripted(), question="why")
    assert CALLED == [
        ("search", " reply 6", 2),
        ("book", " reply 35", 2),
        ("names", {"a": "why", "b": [" reply 6", 1, True, None, 0.5]}),
    ]
    assert result.text() == "Q: why reply 62 hits for ' reply 6' reply 353 booked -1"
    assert (result["seats"], result.ret_value) == (3, ["a", "b"])
    assert [(c.name, c.effect) for c in result.tool_calls] == [
        (f"{__name__}:search", "pure"), (f"{__name__}:book", "effect"),
        (f"{__name__}:names", "idempotent"), (f"{__name__}:parse", "pure"),
    ]  # fmt: skip
    assert result.tool_calls[3].error.startswith("ValueError: invalid literal")
    assert str(result.tool_calls[0].loc).startswith("test_tools.py:")


def test_outside_a_program_it_is_the_function():
    assert search("tea") == "3 hits for 'tea'"
    assert asyncio.run(book("here", seats=1)) == 2
    assert search.__name__ == "search"
    assert search.signature == "(query: str, n: int = …) -> str"
    assert repr(book) == f"<sgc.tool {__name__}:book(place, seats: int) -> int effect=effect>"


def test_the_jit_sees_that_a_tool_was_replaced(scripted, monkeypatch):
    @sgc.function
    def program(s):
        s += search("x") + sgc.gen("g")

    def search_again(query: str, n: int = 3) -> str:
        return "again"

    search_again.__name__ = "search"
    first = program(backend=scripted())
    assert (first.text()[:6], first.how) == ("3 hits", "compiled")
    monkeypatch.setitem(globals(), "search", sgc.tool(effect="pure")(search_again))
    second = program(backend=scripted())
    assert (second.text()[:5], second.how) == ("again", "compiled")


def test_a_saved_program_calls_only_what_it_is_allowed(scripted, tmp_path):
    path = tmp_path / "agent.sgir"
    agent.compile().save(path)
    n_asked = []

    def reply(prompt, sampling):
        n_asked.append(prompt)
        return "r"

    endpoint = scripted(reply)
    with pytest.raises(ToolError, match=r"calls the tool .*:search., which is not allowed"):
        sgc.load(path).run("q", backend=endpoint)
    with pytest.raises(ToolError, match=r":parse., which is not allowed"):
        sgc.load(path, allow_tools=[search, book, names]).run("q", backend=endpoint)
    assert not n_asked
    tools = [search, book.python, names, parse]  # a plain function has the effect that was compiled
    assert sgc.load(path).run("q", backend=endpoint, allow_tools=tools)["seats"] == 3
    assert len(sgc.load(path, allow_tools=tools).run_batch([("a",), ("b",)], backend=endpoint)) == 2


def test_another_tool_of_the_name_is_refused(scripted, tmp_path):
    path = tmp_path / "agent.sgir"
    agent.compile().save(path)

    def changed(place, *, seats: float) -> int:
        return 0

    changed.__name__ = "book"
    with pytest.raises(ToolError) as caught:
        sgc.load(path).run("q", backend=scripted(), allow_tools=[search, changed, names, parse])
    assert "'(place, seats: int) -> int' and is '(place, seats: float) -> int'" in str(caught.value)
    pure = sgc.tool(effect="pure")(book.python)
    with pytest.raises(ToolError, match="its effect was 'effect' and is 'pure'"):
        sgc.load(path).run("q", backend=scripted(), allow_tools=[search, pure, names, parse])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([3], "functions and names of them, found 3"),
        ("a:b", "takes a list of tools"),
        (["json"], "a tool is named module:name"),
        (["json:nothing"], "json has no function 'nothing'"),
        (["no_such_module:f"], "cannot be imported"),
    ],
)
def test_what_cannot_be_allowed(scripted, given, message):
    with pytest.raises((UsageError, ToolError), match=message):
        agent.run("q", backend=scripted(), allow_tools=given)


def test_wrong_arguments_are_errors_at_the_users_line(scripted):
    @sgc.function
    def surplus(s):
        search("a", "b", "c")

    @sgc.function
    def odd(s):
        search({"a": object()})

    for program, message in ((surplus, "too many positional"), (odd, "is given a object")):
        with pytest.raises(ArgumentError, match=message) as caught:
            program.run(backend=scripted())
        assert caught.value.where.startswith("test_tools.py:")


def test_two_tools_of_one_name_are_not_compiled_together():
    other = sgc.tool(effect="pure")(search.python)

    @sgc.function
    def program(s):
        s += search("a") + other("a")

    with pytest.raises(TraceError, match="two different tools that are both named"):
        program.compile()


def _returns(annotation):
    def function():
        return None

    function.__annotations__ = {"return": annotation}
    return function


@pytest.mark.parametrize("annotation", [bytes, set[str], tuple[int, ...], object, "Unknown"])
def test_what_no_tool_can_give(annotation):
    with pytest.raises(UsageError, match="is annotated to give"):
        sgc.tool(_returns(annotation))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"effect": "none"}, "one of pure, idempotent, effect"),
        ({"timeout_s": 0}, "above 0"),
        ({"timeout_s": True}, "above 0"),
        ({"on_error": 3}, "is no text"),
    ],
)
def test_how_a_tool_cannot_be(how, message):
    with pytest.raises(UsageError, match=message):
        sgc.tool(**how)(_returns(str))


def test_what_is_called_in_the_check_is_scripted(scripted):
    """A branch that only the interpreter takes calls no real tool either."""

    @sgc.function
    def program(s):
        s += sgc.gen("g")
        if "e" in "abcdefgh":
            s += search(s["g"])

    program.compile()
    assert CALLED == []


@sgc.function
def branches(s, q):
    s += q + sgc.gen("g")
    if s["g"] == "yes":
        s += search(s["g"])
    elif s["g"] == "no":
        s["seats"] = book("here", seats=1)
    if parse("7") > 2:
        s += sgc.gen("h")
    s["names"] = names({"a": s["g"]})


def test_branches_call_the_tools_of_their_own_way_in_order(scripted):
    program = branches.compile()
    assert CALLED == []
    for answer, n_calls in (("yes", 3), ("no", 3), ("maybe", 2)):
        endpoint = scripted(lambda prompt, sampling, answer=answer: answer)
        options = RunOptions(seed=1)
        interpreted = branches.run_once({"q": "?"}, options, endpoint)
        with sgc.RunLog.temporary() as log:
            compiled = program.run_once({"q": "?"}, replace(options, log=log), endpoint)
            CALLED.clear()
            fed = branches.run_once({"q": "?"}, replace(options, log=log), endpoint)
        assert CALLED == [], "a compiled run's log feeds the interpreter"
        assert fed.stats.logged_requests == fed.stats.requests
        calls = [[c.identity() for c in run.tool_calls] for run in (interpreted, compiled, fed)]
        assert calls[0] == calls[1] == calls[2]
        assert len(calls[0]) == n_calls
        assert results(interpreted) == results(compiled) == results(fed)
