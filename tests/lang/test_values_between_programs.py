"""Values that no JSON has, between programs that call or map each other, and returned.

Compiled, each is what it is interpreted, or the compiler says that it cannot tell.
"""

from __future__ import annotations

import linecache
import textwrap
from typing import Any

import pytest
from control_flow import agree_or_refuse

from sgc.errors import TraceError

POOL = ("a", "b", "a,b,c", "12x", "", "é", "3,x,4")
HEAD = """
import sgc
from collections import Counter, OrderedDict, defaultdict, deque

@sgc.function
def called(s, w: str):
    s += w + sgc.gen("r", max_tokens=4)
    if "a" in s["r"]:
        s += "!"
    x = s["r"]
    return {value}

@sgc.function
def given(s, value):
    s += "given" + sgc.gen("r", max_tokens=4)
    x = s["r"]
    return {asked}

@sgc.function
def program(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    {how}
"""
VALUES = (
    "set(x)", "(x, w)", "frozenset(x)", "Counter(x)", "OrderedDict(a=x)",
    "defaultdict(list, a=[x])", "[set(x), w]", "{'a': {x}}", "{'a': (x, 1)}", "[(x, 1)]",
    "deque(x)", "([x], {1: x})", "{1: x}",
)  # fmt: skip
ASKED = (
    "type(value).__name__", "isinstance(value, set)", "isinstance(value, tuple)",
    "isinstance(value, (dict, list))", "[*value]", "len(value)", "value",
    "[type(each).__name__ for each in value]", "[isinstance(each, tuple) for each in value]",
)  # fmt: skip
HOW = {
    "called": "value = called(w=s['a']).ret_value\nreturn {asked}",
    "mapped": "xs = s['a'].split(',')\nvalues = sgc.map(called, xs).returns\n"
    "return [{asked} for value in values]",
    "given": "x = w = s['a']\nreturn sgc.map(given, [{value} for x in s['a'].split(',')]).returns",
}


def _program(value: str, asked: str, how: str) -> Any:
    body = HOW[how].replace("{value}", value).replace("{asked}", asked)
    source = HEAD.replace("{value}", value).replace("{asked}", asked)
    source = source.replace("{how}", textwrap.indent(body, "    ").lstrip())
    file = f"between_{how}_{VALUES.index(value)}_{ASKED.index(asked)}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "between"}
    exec(compile(source, file, "exec"), names)
    return names["program"]


CASES = [(value, asked, how) for value in VALUES for asked in ASKED for how in HOW]


@pytest.mark.parametrize(
    ("value", "asked", "how"),
    [
        pytest.param(*case, marks=[] if n % 80 == 0 else pytest.mark.slow)
        for n, case in enumerate(CASES)
    ],
)
def test_a_value_is_the_same_in_another_program(value: str, asked: str, how: str) -> None:
    program = _program(value, asked, how)
    try:
        compiled = program.compile(check=False)
    except TraceError:
        return
    agree_or_refuse(program, compiled, POOL, 8)
