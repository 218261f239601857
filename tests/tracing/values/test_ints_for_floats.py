"""An int may be given where a float is expected: what depends on its type is a decision."""

from __future__ import annotations

import pytest
from tests_support import one_in

import sgc
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend


@sgc.function
def asked(s, x: float):
    if isinstance(x, int):
        s += "int" + sgc.gen("a")
    else:
        s += "float" + sgc.gen("a")


@sgc.function
def typed(s, x: float):
    s += type(x).__name__ + ("!" if type(x) is float else "?") + sgc.gen("a")


@sgc.function
def matched(s, x: float):
    match x:
        case int():
            s += "int" + sgc.gen("a")
        case _:
            s += "float" + sgc.gen("a")


@sgc.function
def computed(s, x: float):
    y = x + x
    s += f"{x} {y} " + ("i" if isinstance(y, int) else "f") + sgc.gen("a")


@sgc.function
def either(s, x: float):
    s += ("number" if isinstance(x, (int, float)) else "none") + sgc.gen("a")


@sgc.function
def many(s, xs: list[float]):
    s += ",".join("i" if isinstance(x, int) else "f" for x in xs) + sgc.gen("a")


@sgc.function
def looked_at(s, xs: list[float]):
    for x in xs:
        s += "i" if isinstance(x, int) else "f"
    s += sgc.gen("a")


@pytest.mark.parametrize(
    "function", one_in(3, [asked, typed, matched, computed, either, many, looked_at]),
    ids=lambda function: function.name,
)  # fmt: skip
def test_compiled_is_as_interpreted(function) -> None:
    program = function.compile()
    is_list = function in (many, looked_at)
    for value in ([3, 2.5, 4.0], [1.5]) if is_list else (3, 3.0, -2.5, 0):
        texts = [
            run(value, backend=Endpoint(ScriptedBackend(lambda prompt, sampling: "r"))).text()
            for run in (function.run, program.run)
        ]
        assert texts[0] == texts[1]
