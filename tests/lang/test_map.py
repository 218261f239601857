"""`sgc.map`: interpreted, compiled and loaded from a file, it is one program."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from control_flow import outcome, replying

import sgc
from sgc.deopt import may_deopt, run_with_deopt
from sgc.endpoints import Endpoint
from sgc.errors import ArgumentError, SgcError, TraceError, UnknownVariable, UsageError
from sgc.ir.ceiling import ceiling
from sgc.ir.file import from_bytes, to_bytes
from sgc.ir.graph import Graph
from sgc.ir.parser import parse
from sgc.ir.printer import to_text
from sgc.program import Program
from sgc.runtime.executor.backend import TextRun
from sgc.runtime.executor.options import RunOptions
from sgc.runtime.executor.scripted import ScriptedBackend
from sgc.tracing.explore import Budget
from sgc.tracing.tracer import trace

LISTS = ([], ["a"], ["b", "a", "c"], ["", "x y", "b", "b", "e"])
TEXTS = ["go", "stop", "no way", "7"]


def agree(function: sgc.Function, *rows: dict[str, Any], tools: Any = (), **bind: Any) -> Graph:
    """Runs a program in every way, the file without its source among them: all give the same."""
    traced = function.compile(opt_level=0, **bind).graph
    programs = [
        Program(from_bytes(to_bytes(graph)))
        for graph in (traced, function.compile(opt_level=1, check=False, **bind).graph)
    ]
    for number, row in enumerate(rows):
        options = RunOptions(seed=number, allow_tools=sgc.tools.resolve_tools(tools))
        wanted = outcome(
            partial(function.run_once, {**bind, **row}, options, replying(number, TEXTS))
        )
        for program in programs:
            found = outcome(partial(program.run_once, row, options, replying(number, TEXTS)))
            assert found == wanted, row
    assert parse(to_text(traced)) == traced == from_bytes(to_bytes(traced))
    return traced


def lists(name: str = "xs") -> list[dict[str, Any]]:
    return [{name: items} for items in LISTS]


@sgc.function
def note(s, x, style: str = "plain"):
    s += f"[{style}] {x}: " + sgc.gen("note", max_tokens=4)
    return s["note"] + "!"


@sgc.function
def over_argument(s, xs: list[str], tone: str):
    s += "Begin." + sgc.gen("b")
    states = sgc.map(note, xs, width=2, style=tone)
    s += "\nnotes: " + sgc.join("|", states["note"]) + sgc.gen("end")
    for each in states.returns:
        s += each
    return states["note"]


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
def deciding(s, x, n: int):
    s += f"{x}? " + sgc.gen("first", max_tokens=4)
    for turn in sgc.turns(n):
        if s["first"] == "stop":
            break
        s += f" {turn} " + sgc.gen("more", max_tokens=2)
    forks = s.fork(2)
    forks += sgc.gen("f")
    forks.join()
    s += note(x)["note"]
    return {"x": x, "first": s["first"]}


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


@sgc.tool(effect="pure")
def find(query: str) -> list:
    return [{"title": query + str(n), "n": n} for n in range(2)]


@sgc.tool
def keep(text: str) -> str:
    return f"kept {text}"


@sgc.function
def read(s, page, n: int = 1):
    s += f"{page['title']}: " + sgc.gen("said")
    s += keep(s["said"]) + keep(page["title"])


@sgc.function
def searches(s, q: str):
    s += keep(q)
    states = sgc.map(read, find(q))
    s += sgc.join(",", states["said"]) + keep("last")
    sgc.map(read, [{"title": "x"}, {"title": "y"}])


def test_calls_that_call_tools():
    agree(searches, {"q": "one"}, {"q": "two"}, tools=[find, keep])
    options = RunOptions(seed=1, allow_tools=sgc.tools.resolve_tools([find, keep]))
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


# -- width ----------------------------------------------------------------------------------


class Counting(ScriptedBackend):
    """Counts the requests in flight; each takes a few turns of the loop."""

    def __init__(self) -> None:
        super().__init__(lambda prompt, sampling: "reply")
        self.now = self.most = self.n = 0

    async def generate(self, *args: Any, **kwargs: Any) -> Any:
        self.n += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0.004)
            return await super().generate(*args, **kwargs)
        finally:
            self.now -= 1


@sgc.function
def narrow(s, xs: list[str]):
    s += sgc.join("", sgc.map(note, xs, width=3)["note"])


@sgc.function
def narrow_in_place(s):
    sgc.map(note, list("abcdefgh"), width=3)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize(
    ("function", "arguments"), [(narrow, {"xs": list("abcdefgh")}), (narrow_in_place, {})]
)
def test_the_width_is_reached_and_never_exceeded(function, arguments, is_compiled):
    backend = Counting()
    program = function.compile() if is_compiled else function
    program.run_once(arguments, RunOptions(seed=1), Endpoint(backend))
    assert (backend.most, backend.n) == (3, 8)


# -- failing --------------------------------------------------------------------------------


@sgc.function
def counts(s, x):
    s += f"{x}: " + sgc.gen("n", max_tokens=3)
    return int(s["n"])


@sgc.function
def adds(s, xs: list[str]):
    total = 0
    for n in sgc.map(counts, xs).returns:
        total = total + n
    s += f"{total}" + sgc.gen("end")


def test_the_error_is_that_of_the_first_call_in_order():
    agree(adds, *lists(), *lists(), *lists())
    with pytest.raises(ValueError, match="invalid literal"):
        adds.run_once({"xs": ["a"]}, RunOptions(seed=1), replying(1, ["no"]))


class Failing(ScriptedBackend):
    """Fails for one item; for those after it, waits until it is cancelled."""

    def __init__(self) -> None:
        super().__init__(lambda prompt, sampling: "reply")
        self.cancelled: list[str] = []

    async def generate(self, prompt: Any, *args: Any, **kwargs: Any) -> Any:
        text = "".join(segment.text for segment in prompt)
        if "bad" in text:
            await asyncio.sleep(0.02)
            raise SgcError("the backend failed")
        if "slow" in text:
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.append(text)
        return await super().generate(prompt, *args, **kwargs)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_failing_call_stops_those_after_it(is_compiled):
    backend = Failing()
    program = narrow.compile() if is_compiled else narrow
    with pytest.raises(SgcError, match="the backend failed"):
        program.run_once(
            {"xs": ["fine", "bad", "slow", "never"]}, RunOptions(seed=1), Endpoint(backend)
        )
    assert backend.cancelled == ["[plain] slow: "]


@sgc.function
def sometimes(s, x):
    s += x + sgc.gen("a", max_tokens=3)
    if s["a"] == "go":
        s["found"] = "it"


@sgc.function
def asks(s, xs: list[str]):
    states = sgc.map(sometimes, xs)
    s += sgc.join("", states["a"]) + sgc.gen("b")
    if s["b"] != "stop":
        s += sgc.join("", states["found"])


def test_a_name_that_a_call_has_not_set():
    agree(asks, *lists(), *lists(), *lists())
    with pytest.raises(UnknownVariable):
        asks.compile().run_once({"xs": ["a"]}, RunOptions(seed=1), replying(1, ["no"]))


# -- logs -----------------------------------------------------------------------------------


@sgc.function
def logged(s, xs: list[str]):
    s += sgc.join(",", sgc.map(read, find("q"), width=2)["said"])
    s += sgc.join(",", sgc.map(deciding, xs, n=2)["first"]) + keep("end") + sgc.gen("end")


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_cut_log_is_gone_on_with(tmp_path, is_compiled):
    tools = sgc.tools.resolve_tools([find, keep])
    ways = [logged, logged.compile()]

    def run(way: Any, log: Any, texts: list[str]) -> Any:
        with sgc.RunLog.open(log, on_unknown="retry") as found:
            options = RunOptions(seed=3, allow_tools=tools, log=found)
            return way.run_once({"xs": ["a", "b", "c"]}, options, replying(1, texts))

    whole = tmp_path / "whole.log"
    wanted = run(ways[is_compiled], whole, TEXTS)
    lines = whole.read_bytes().splitlines(keepends=True)
    for n in range(4, len(lines) + 1, 5):
        part = tmp_path / f"{n}.log"
        part.write_bytes(b"".join(lines[:n]))
        found = run(ways[not is_compiled], part, TEXTS)
        assert [s.text for s in found.streams] == [s.text for s in wanted.streams], n
    assert run(ways[0], whole, []).stats.logged_requests == wanted.stats.requests


@sgc.function
def endless(s, x):
    s += x + sgc.gen("a")
    while s["a"] != "stop":
        x = x + "."
        s += x + sgc.gen("a")


@sgc.function
def ends(s, xs: list[str]):
    s += sgc.join(",", sgc.map(endless, xs)["a"])


def test_what_was_not_compiled_goes_on_in_the_interpreter():
    program = Program(trace(ends, budget=Budget(nodes=60)))
    assert [may_deopt(graph) for graph in (program.graph, *program.graph.called)] == [True, True]
    arguments, endpoint = {"xs": ["a", "b", "c"]}, replying(2, ["go", "stop"])
    options = RunOptions(seed=2)
    wanted = ends.run_once(arguments, options, endpoint)
    interpreted = []

    def interpret(chosen: RunOptions) -> Any:
        interpreted.append(ends.run_once(arguments, chosen, endpoint))
        return interpreted[-1]

    found = run_with_deopt(program, endpoint.backend, arguments, options, interpret)
    assert (found.text(), len(interpreted)) == (wanted.text(), 1)
    assert found.stats.logged_requests > 0


# -- refusals and limits -----------------------------------------------------------------------


def test_a_function_that_maps_itself_is_refused_at_its_line():
    @sgc.function
    def tree(s, x: str, xs: list[str]):
        s += x + sgc.gen("a")
        for each in sgc.map(tree, xs, xs=xs).returns:
            s += each

    with pytest.raises(TraceError, match="inside of tree") as caught:
        tree.compile()
    assert caught.value.where.startswith("test_map.py:")


def test_handling_what_a_call_may_raise_is_refused():
    @sgc.function
    def main(s, xs: list[str]):
        try:
            sgc.map(counts, xs)
        except ValueError:
            s += "none"

    with pytest.raises(TraceError, match="handle it in counts itself"):
        main.compile()


@sgc.function
def takes(s, n: int):
    s += f"{n + 1}" + sgc.gen("a")


def call(**given: Any) -> None:
    @sgc.function
    def main(s, q: str):
        fixed = dict(given)
        sgc.map(fixed.pop("function", note), fixed.pop("xs", ["a"]), **fixed)

    main.run_once({"q": "a,b"}, RunOptions(), replying(1, TEXTS))


def test_a_function_that_the_program_makes_is_refused_unless_traced_in_place():
    @sgc.function
    def main(s, xs: list[str]):
        @sgc.function
        def inner(t, x):
            t += x + sgc.gen("a")

        sgc.map(inner, ["a", "b"])
        sgc.map(note.bind(style="s"), xs)
        sgc.map(inner, xs)

    with pytest.raises(TraceError, match="define what is mapped outside"):
        main.compile()


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"function": len}, UsageError, "calls an @sgc.function"),
        ({"xs": "abc"}, UsageError, "goes over a list, found a value of type str"),
        ({"width": 0}, UsageError, "width from 1"),
        ({"width": True}, UsageError, "width from 1"),
        ({"function": takes, "xs": ["a"]}, ArgumentError, "'n' must be int"),
        ({"nothing": 1}, ArgumentError, "no argument 'nothing'"),
        ({"x": 1, "style": "s"}, ArgumentError, "no parameter"),
    ],
)
def test_a_misuse_tells_its_line(given, error, told):
    with pytest.raises(error, match=told) as caught:
        call(**given)
    assert "test_map.py:" in str(caught.value)


def test_what_can_be_no_item_is_told_when_compiling():
    @sgc.function
    def over_lines(s, xs: list[str]):
        sgc.map(takes, xs)

    @sgc.function
    def over_a_line(s):
        s += sgc.gen("a", max_tokens=2)
        sgc.map(takes, [s["a"]])

    @sgc.function
    def over_a_text(s, x: str):
        sgc.map(note, x)

    for main, told in (
        (over_lines, "argument 'n' must be int, found text"),
        (over_a_line, "argument 'n' must be int, found str"),
        (over_a_text, "goes over a list, found a value of type text"),
    ):
        with pytest.raises(UsageError, match=rf"test_map.py:\d+: .*{told}"):
            main.compile()


def test_a_map_outside_a_program():
    with pytest.raises(UsageError, match="outside a program"):
        sgc.map(note, ["a"])


def test_a_call_is_over():
    @sgc.function
    def main(s):
        states = sgc.map(note, ["a"])
        state = states[0]
        state += "more"

    for run in (main.compile, lambda: main.run_once({}, RunOptions(), replying(1, TEXTS))):
        with pytest.raises(UsageError, match="can be read but not extended"):
            run()


def test_the_ceiling_counts_known_lists_and_names_others():
    @sgc.function
    def main(s, xs: list[str]):
        s += sgc.gen("many", n=3, max_tokens=2)
        sgc.map(note, s["many"])
        sgc.map(note, xs)

    most = ceiling(main.compile().graph)
    assert (most.requests, most.tokens) == (3 + 3, 3 * 2 + 3 * 4)
    assert [(m.program, m.lists, m.requests, m.tokens) for m in most.mapped] == [
        ("note", ("%xs",), 1, 4)
    ]


@sgc.function
def wordy(s, x):
    s += "one "
    s += "two " + x
    s.text()


def test_passes_rewrite_what_is_called():
    @sgc.function
    def main(s, xs: list[str]):
        sgc.map(wordy, xs)

    found = [
        [node.op for node in main.compile(opt_level=level).graph.called[0].nodes()]
        for level in (0, 1)
    ]
    assert found == [
        ["stream", "const", "const", "append", "text_of", "publish", "return"],
        ["stream", "const", "append", "publish", "return"],
    ]


def test_explain_and_dump_show_what_is_called(tmp_path: Path):
    from click.testing import CliRunner

    from sgc.cli.commands import cli

    path = tmp_path / "p.sgir"
    over_argument.compile().save(path)
    run = CliRunner().invoke
    assert (
        "for note, times the length of %xs: 1 requests, 4"
        in run(cli, ["explain", str(path)]).output
    )
    assert "called @note(%x: text" in run(cli, ["dump", str(path)]).output
    shown = json.loads(run(cli, ["dump", str(path), "--format", "json"]).output)
    assert shown["called"][0]["name"] == "note"


def test_an_error_of_a_map_comes_before_one_that_the_program_raises_after_it():
    @sgc.function
    def called(t, word: str):
        t += word + sgc.gen("deep")
        if t["deep"] != "never":
            raise ValueError("of the map")

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        states = sgc.map(called, s["x"].split())
        s += sgc.join("/", states["deep"])
        if s["x"] != "never":
            raise KeyError("after it")

    for run in (program, program.compile()):
        with pytest.raises((SgcError, ValueError), match="of the map"):
            run.run_once({"q": "?"}, RunOptions(), Endpoint(Late("a b")))


class Late(ScriptedBackend):
    """Answers the calls of maps late: those whose prompts are short."""

    def __init__(self, text):
        super().__init__(lambda prompt, sampling: text)

    async def generate(self, prompt, sampling, on_delta=None):
        await asyncio.sleep(0 if prompt[0].text == "?" else 0.05)
        return await super().generate(prompt, sampling, on_delta)
