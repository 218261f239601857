"""What tests of `sgc.map` share: programs, and that they are one in every way."""

from __future__ import annotations

from functools import partial
from typing import Any

from control_flow import outcome, replying

import sgc
from sgc.ir.file.sgir import from_bytes, to_bytes
from sgc.ir.graph import Graph
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions

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
        options = RunOptions(seed=number, allow_tools=sgc.lang.tools.resolve_tools(tools))
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
def counts(s, x):
    s += f"{x}: " + sgc.gen("n", max_tokens=3)
    return int(s["n"])
