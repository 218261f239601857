"""What of `sgc.map` is refused, and its limits."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from control_flow import replying
from lang.map_programs import TEXTS, counts, note, over_argument

import sgc
from sgc.errors import ArgumentError, SgcError, TraceError, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.run.options import RunOptions

# -- refusals and limits -----------------------------------------------------------------------


def test_a_function_that_maps_itself_is_refused_at_its_line():
    @sgc.function
    def tree(s, x: str, xs: list[str]):
        s += x + sgc.gen("a")
        for each in sgc.map(tree, xs, xs=xs).returns:
            s += each

    with pytest.raises(TraceError, match="inside of tree") as caught:
        tree.compile()
    assert caught.value.where.startswith("test_map_refusals.py:")


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


@pytest.mark.slow
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
    assert "test_map_refusals.py:" in str(caught.value)


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
        with pytest.raises(UsageError, match=rf"test_map_refusals.py:\d+: .*{told}"):
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

    from sgc.cli.main import cli

    path = tmp_path / "p.sgir"
    over_argument.compile().save(path)
    run = CliRunner().invoke
    assert (
        "for note, times the length of %xs: 1 request, 4" in run(cli, ["explain", str(path)]).output
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
