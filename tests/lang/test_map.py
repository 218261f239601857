"""`sgc.map`: interpreted, compiled and loaded from a file, it is one program."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from control_flow import replying
from lang.map_programs import TEXTS, agree, deciding, find, keep, lists, note, over_argument, read

import sgc
from sgc.errors import TraceError, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.interface.backend import TextRun
from sgc.runtime.executor.run.options import RunOptions


def test_a_list_known_only_at_run_time():
    graph = agree(over_argument, *[{**row, "tone": "kind"} for row in lists()])
    assert [each.name for each in graph.called] == ["note"]


@sgc.function
def in_place(s, q: str):
    states = sgc.map(note, ["a", q, "<|user|>"], width=2)
    assert len(states) == 3
    s += ", ".join(states["note"]) + states[1].ret_value + states[0].text()
    s += "".join(state["note"] for state in states)


def test_a_list_that_is_known_is_traced_in_place():
    graph = agree(in_place, {"q": "what"}, {"q": ""})
    assert not graph.called


@sgc.function
def maps_deciding(s, xs: list[str]):
    states = sgc.map(deciding, xs, n=2)
    s += sgc.join(" ", states["first"]) + sgc.gen("a")
    if s["a"] == "go":
        again = sgc.map(deciding, ["u", "v"], n=1)
        s += again[0]["first"] + again[1].text() + ",".join(again["first"])
    for x in xs:
        s += sgc.join("/", sgc.map(note, [x, "z"])["note"]) + sgc.gen("b")
    return states.returns


def test_calls_that_branch_loop_fork_and_call():
    graph = agree(maps_deciding, *lists(), *lists())
    assert sorted(each.name for each in graph.called) == ["deciding", "deciding", "note"]


def test_a_known_list_of_calls_that_decide_is_not_exponential():
    @sgc.function
    def main(s, q: str):
        s += sgc.map(deciding, ["a", "b", "c", "d", "e", "f", q], n=1)[6]["first"]

    graph = agree(main, {"q": "x"}, {"q": "y"})
    assert sum(node.op == "map" for node in graph.nodes()) == 1


@sgc.function
def section(s, lines: list[str], style: str):
    s += sgc.join(";", sgc.map(note, lines, width=3, style=style)["note"])
    s += sgc.map(note, ["p", "q"])[1]["note"] + sgc.gen("sum")


@sgc.function
def document(s, sections: list[list[str]]):
    states = sgc.map(section, sections, width=2, style="brief")
    s += sgc.join("\n", states["sum"]) + sgc.gen("end")


def test_maps_in_maps():
    rows: list[Any] = [[], [[]], [["a", "b"], [], ["c"]]]
    graph = agree(document, *[{"sections": row} for row in rows])
    assert len(graph.called) == 2
    result = document.run_once({"sections": rows[2]}, RunOptions(seed=1), replying(1, TEXTS))
    paths = [stream.path for stream in result.streams]
    assert paths[:4] == [
        "document", "document/section:0.0", "document/section:0.0/note:0.0",
        "document/section:0.0/note:0.1",
    ]  # fmt: skip


@sgc.function
def sources(s, q: str):
    s += q + sgc.gen("many", n=3)
    drawn = sgc.map(note, s["many"])
    parts = sgc.map(note, q.split(","))
    s += sgc.join("|", drawn["note"]) + sgc.join("|", parts["note"])
    s += sgc.join("|", sgc.map(note, drawn["note"]).returns)


def test_lists_that_are_drawn_split_and_mapped():
    agree(sources, {"q": "a,b"}, {"q": ""})


@sgc.function
def searches(s, q: str):
    s += keep(q)
    states = sgc.map(read, find(q))
    s += sgc.join(",", states["said"]) + keep("last")
    sgc.map(read, [{"title": "x"}, {"title": "y"}])


def test_calls_that_call_tools():
    agree(searches, {"q": "one"}, {"q": "two"}, tools=[find, keep])
    options = RunOptions(seed=1, allow_tools=sgc.lang.tools.resolve_tools([find, keep]))
    made = [
        [
            call.identity()
            for call in each.run_once({"q": "q"}, options, replying(1, TEXTS)).tool_calls
        ]
        for each in (searches, searches.compile())
    ]
    assert made[0] == made[1]
    assert [(path, number) for path, number, *_ in made[0][:5]] == [
        ("", 0), ("", 1), ("searches/read:0.0", 0), ("searches/read:0.0", 1),
        ("searches/read:0.1", 0),
    ]  # fmt: skip


@sgc.function
def titled(s, page: dict):
    s += f"{page['title']}: " + sgc.gen("said")


@sgc.function
def shows(s, x, photo):
    s += x + sgc.image(photo) + sgc.gen("seen")


@sgc.function
def album(s, xs: list[str], photo, q: str):
    s += sgc.join(",", sgc.map(shows, xs, photo=photo)["seen"])
    s += sgc.join(",", sgc.map(titled, find(q))["said"])


def test_images_and_dicts_are_handed_on():
    rows = [{**row, "photo": b"\xff\xd8\xff photo", "q": "q"} for row in lists()]
    agree(album, *rows, tools=[find])


def test_a_generated_text_names_no_image():
    @sgc.function
    def main(s, q: str):
        s += q + sgc.gen("names", n=2)
        sgc.map(looks, s["names"])

    with pytest.raises(TraceError, match="takes x for an image, and is given a text"):
        main.compile()
    with pytest.raises(UsageError, match="named by a text that was generated"):
        main.run_once({"q": "x"}, RunOptions(), replying(1, ["/etc/passwd"]))


@sgc.function
def looks(s, x):
    s += sgc.image(x) + sgc.gen("i")


class Special(ScriptedBackend):
    """Has special tokens, and writes them."""

    async def capabilities(self) -> Any:
        return replace(await super().capabilities(), special_tokens=("<|end|>",))


@sgc.function
def quotes(s, x):
    s += f"say {x}: " + sgc.gen("q")
    s["mine"] = "<|end|> mine"
    return x + "<|end|>"


@sgc.function
def quotes_all(s, xs: list[str], q: str):
    for states in (sgc.map(quotes, xs), sgc.map(quotes, ["<|end|>", q])):
        for given in (states["q"], states.returns, states["mine"]):
            s += sgc.join(" ", given) + sgc.gen("e")


def test_special_tokens_in_what_is_handed_on_stay_text():
    endpoint = Endpoint(Special(lambda prompt, sampling: "so <|end|>"))
    row = {"xs": ["a <|end|>", "b"], "q": "c"}
    for program in (quotes_all, quotes_all.compile()):
        for request in program.run_once(row, RunOptions(seed=1), endpoint).requests:
            for run in request.prompt:
                spans = [match.span() for match in re.finditer(r"<\|end\|>", run.text)]
                assert not isinstance(run, TextRun) or run.literal == tuple(spans)
