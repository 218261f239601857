"""Who decides whether a generation heals its border: it, its function, the caller, the run."""

from __future__ import annotations

import pytest
from tests_support import run_both

import sgc
from sgc.errors import UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.tracing.tracer import trace


class Asked(Endpoint):
    """An endpoint that keeps whether each generation was to heal, by the end of its prompt."""

    def __init__(self) -> None:
        self.heals: dict[str, bool] = {}
        super().__init__(ScriptedBackend(self._reply))

    def _reply(self, prompt, sampling) -> str:
        self.heals[prompt[-1].text.rpartition("|>")[2]] = sampling.heal
        return ""


def heals(program, **options) -> dict[str, bool]:
    """The same, interpreted and compiled."""
    interpreted, compiled, called = Asked(), Asked(), Asked()
    program.run(backend=interpreted, **options).sync()
    program.compile().run(backend=compiled, **options)
    program(backend=called, **options).sync()
    assert interpreted.heals == compiled.heals == called.heals
    return interpreted.heals


def _body(s):
    s += "own" + sgc.gen(heal=True) + sgc.user("not" + sgc.gen(heal=False))
    s += sgc.user("default" + sgc.gen()) + sgc.user("many" + sgc.gen(n=2))


@pytest.mark.parametrize(
    ("of_function", "of_run", "default"),
    [
        (None, None, False), (None, True, True), (None, False, False),
        (True, None, True), (True, False, True), (False, True, False),
    ],
)  # fmt: skip
def test_a_generation_decides_then_its_function_then_the_run(of_function, of_run, default):
    found = heals(sgc.function(heal=of_function)(_body), heal=of_run)
    assert found == {"own": True, "not": False, "default": default, "many": default}


@sgc.function
def plain(s):
    s += "plain" + sgc.gen("a")


@sgc.function(heal=False)
def never(s):
    s += "never" + sgc.gen("a")


@sgc.function(heal=True)
def outer(s):
    never()
    plain()
    s += "outer" + sgc.gen("a")
    child = s.fork(1)[0]
    child += "child" + sgc.gen("b")


def test_a_function_called_has_its_callers_default_unless_it_has_one():
    assert heals(outer) == {"plain": True, "never": False, "outer": True, "outerchild": True}
    assert heals(plain) == {"plain": False}


def test_it_is_written_on_each_generation():
    nodes = [node for node in trace(outer).nodes() if node.op == "gen"]
    assert [dict(node.fields)["heal"].value for node in nodes] == [False, True, True, True]
    assert not any("heal" in dict(node.fields) for node in trace(plain).nodes())


def test_binding_keeps_it():
    @sgc.function(heal=True)
    def program(s, x):
        s += x + sgc.gen()

    assert program.bind(x="bound").heal is True
    assert heals(program.bind(x="bound")) == {"bound": True}


def test_a_call_after_a_function_was_replaced_has_the_new_ones_default():
    inner = sgc.function(_body)

    @sgc.function
    def program(s):
        s += "x"
        inner()

    endpoint = Asked()
    program(backend=endpoint).sync()
    inner = sgc.function(heal=True)(_body)
    again = Asked()
    program(backend=again).sync()
    assert sum(endpoint.heals.values()) == 1
    assert sum(again.heals.values()) == 3


def test_it_may_be_an_argument(scripted):
    @sgc.function
    def program(s, heal: bool):
        s += "x" + sgc.gen("a", heal=heal)

    run_both(program, scripted(), heal=True)


@pytest.mark.parametrize("heal", [1, "yes"])
def test_it_is_a_bool(scripted, heal):
    with pytest.raises(UsageError, match="heal must be a bool"):
        sgc.function(heal=heal)(_body)
    with pytest.raises(UsageError, match="heal must be a bool"):
        plain.run(backend=scripted(), heal=heal)

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", heal=heal)

    with pytest.raises(UsageError, match="heal must be a bool") as caught:
        program.compile()
    assert caught.value.where.startswith("test_heal.py:")


def test_a_select_is_not_healed(scripted):
    @sgc.function(heal=True)
    def program(s):
        s += "x" + sgc.gen("a", choices=["b", "c"], heal=True)

    assert run_both(program, scripted())["a"] == "b"
