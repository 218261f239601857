"""Programs with a line at one of many places: in an arm, a loop, a helper, a mapped call."""

from __future__ import annotations

import linecache
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from control_flow import outcome, replying

from sgc.programs.deopt import run_with_deopt
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions

POOL = ("ab", "x", "no", "a,b,c", "")
HEAD = """
import binascii, fnmatch, time, zlib
import sgc

@sgc.tool(effect="pure")
def look(x: str) -> str:
    return f"<{x}>"

def helper(s, x):
    if x:
        {line}
    return s["a"]

@sgc.function
def called(s, x: str):
    s += x + sgc.gen("b", max_tokens=4)
    {line}
    s += "|" + sgc.gen("c", max_tokens=4)
    return s["b"]

@sgc.function
def program(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    x = s["a"]
    {place}
    s += "." + sgc.gen("z", max_tokens=3)
    return s["z"]
"""
PLACES = {
    "arm": "if x == 'x':\n    {line}",
    "loop": "for n in range(4):\n    s += sgc.gen('a', max_tokens=2)\n    x = s['a']\n"
            "    if x == 'ab':\n        {line}\n        break",
    "first": "{line}",
    "helper": "s += helper(s, x)",
    "called": "s += called(x).ret_value",
    "mapped": "s += sgc.join(',', sgc.map(called, x.split(','))['c'])",
    "fork": "fs = s.fork(2)\nfs += sgc.gen('f', max_tokens=2)\nif fs[0]['f'] == 'x':\n    {line}\n"
            "s += fs[1]['f']",
    "handled": "try:\n    y = int(x)\nexcept ValueError:\n    {line}",
    "tool": "s += look(x)\nif look(x) != '<x>':\n    {line}\ns += look('q' + x)",
}  # fmt: skip


def program_at(place: str, line: str, lines: Sequence[str], body: str = "") -> Any:
    """A program with a line, one of some, at a place; body: it, if it is none of PLACES."""
    body = textwrap.indent(body or PLACES[place], "    ").strip()
    source = HEAD.replace("{place}", body).replace("{line}", line)
    file = f"left_{place}_{lines.index(line)}_{len(lines)}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "left_lines"}
    exec(compile(source, file, "exec"), names)
    return names["program"]


def run_at(
    program: Any, function: Any, seed: int, left: list[RunOptions] | None = None
) -> tuple[Any, Counter[str]]:
    """What a run gives, and what it asks the backend. left: gets how the interpreter goes on."""
    asked = Counter[str]()
    endpoint, options = replying(seed, POOL, asked), RunOptions(seed=seed)

    def interpret(how: RunOptions) -> Any:
        if left is not None:
            left.append(how)
        return function.run_once({"q": "x"}, how, endpoint)

    if not isinstance(program, Program):
        return outcome(lambda: interpret(options)), asked
    given = {"q": "x"}, options
    return outcome(lambda: run_with_deopt(program, endpoint.backend, *given, interpret)), asked
