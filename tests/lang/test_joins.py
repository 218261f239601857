"""Joins that wait for the first children of a fork: who wins, who is cut off, what is refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from control_flow import replying

import sgc
from sgc.errors import CutOff, JoinFailed, TraceError, UnsupportedParameter, UsageError
from sgc.ir.graph import Graph
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace

TURN_S = 0.04


class Delayed(ScriptedBackend):
    """Replies after as many turns as `delay` says; remembers who was cancelled."""

    def __init__(self, reply: Callable[[str], str], delay: Callable[[str], int]) -> None:
        super().__init__(lambda prompt, sampling: reply(_text(prompt)))
        self._delay = delay
        self.cancelled: list[str] = []
        self.done: list[str] = []

    async def generate(self, prompt: Any, sampling: Any, on_delta: Any = None) -> Any:
        try:
            await asyncio.sleep(self._delay(_text(prompt)) * TURN_S)
        except asyncio.CancelledError:
            self.cancelled.append(_text(prompt))
            raise
        self.done.append(_text(prompt))
        return await super().generate(prompt, sampling, on_delta)


def _text(prompt: Any) -> str:
    return "".join(segment.text for segment in prompt)


def after(*turns: int) -> Callable[[], Delayed]:
    """Backends where child i takes its own time for each generation; it replies with i."""
    return lambda: Delayed(lambda text: text[-2], lambda text: turns[int(text[-2])])


def in_both_ways(
    function: sgc.Function, backend: Callable[[], Delayed], **arguments: Any
) -> list[tuple[RunResult, Delayed]]:
    """Interpreted and compiled."""
    found = []
    for each in (function, function.compile()):
        made = backend()
        found.append((each.run_once(arguments, RunOptions(), Endpoint(made)), made))
    return found


def errors_in_both_ways(
    function: sgc.Function, backend: Callable[[], Delayed], kind: type[Exception]
) -> list[str]:
    texts = []
    for each in (function, Program(function.trace())):
        with pytest.raises(kind) as error:
            each.run_once({}, RunOptions(), Endpoint(backend()))
        texts.append(str(error.value))
    return texts


@sgc.function
def racing(s, q: str):
    s += q
    group = s.fork(3)
    for i, f in enumerate(group):
        f += f"child {i}:" + sgc.gen("x", max_tokens=4)
    group.join(mode="first")
    s += " first: " + sgc.join(",", s["x"])
    s += "."


def test_the_first_wins_and_the_others_requests_are_cancelled():
    for result, backend in in_both_ways(racing, after(9, 1, 9), q="q "):
        assert result.streams[0].text == "q  first: 1."
        assert result.streams[0].variables["x"] == ["1"]
        assert [s.path for s in result.streams] == ["racing", "racing/:0.1"]
        assert sorted(backend.cancelled) == ["q child 0:", "q child 2:"]
        assert backend.done == ["q child 1:"]


@sgc.function
def two_of(s):
    group = s.fork(4)
    for i, f in enumerate(group):
        f += f"child {i}:" + sgc.gen("x")
        f += f" again {i}:" + sgc.gen("y")
    group.join(mode="k_of_n", k=2, when=lambda f: f["x"] != "2")
    return {"x": s["x"], "y": s["y"]}


def test_k_of_n_takes_them_in_the_order_of_the_children():
    for result, backend in in_both_ways(two_of, after(5, 30, 1, 3)):
        assert result.ret_value == {"x": ["0", "3"], "y": ["0", "3"]}, "2 ended first, but fails"
        assert backend.cancelled == ["child 1:"]


@sgc.function
def mixed(s):
    group = s.fork(3)
    for i, f in enumerate(group):
        f += f"child {i}:" + sgc.gen("x")
    group.join(mode="first", when=lambda f: (f["x"] == "0") | (len(f["x"]) > 1))
    return s["x"]


def test_a_predicate_may_join_tests():
    for result, backend in in_both_ways(mixed, after(4, 1, 40)):
        assert result.ret_value == ["0"]
        assert backend.cancelled == ["child 2:"]


@sgc.function
def deep(s):
    group = s.fork(2)
    for i, f in enumerate(group):
        f += "inner"
        inner = f.fork(2)
        inner += lambda n, i=i: f"{n} of {i}:" + sgc.gen("x")
        inner.join()
        with f.var_scope("all"):
            inner.join("concate_and_append")
    group.join(mode="first")
    return s["x"], s["all"]


def test_what_a_child_forked_is_cut_off_with_it():
    for result, backend in in_both_ways(deep, after(20, 1)):
        assert list(result.ret_value) == [[["1", "1"]], ["0 of 1:11 of 1:1"]]
        assert sorted(backend.cancelled) == ["inner0 of 0:", "inner1 of 0:"]
        assert len(result.streams) == 4


@sgc.function
def goes_on(s):
    group = s.fork(2)
    for i, f in enumerate(group):
        f += f"child {i}:" + sgc.gen("x")
    group.join(mode="first")
    group[1] += " more 1:" + sgc.gen("y")
    return group[1]["y"]


def test_a_winner_goes_on():
    for result, backend in in_both_ways(goes_on, after(9, 1)):
        assert result.ret_value == "1"
        assert backend.done == ["child 1:", "child 1:1 more 1:"]


def test_a_loser_cannot_be_used():
    for text in errors_in_both_ways(goes_on, after(1, 9), CutOff):
        assert "child 1 of a fork was cut off when the join at test_joins.py:" in text
        assert text.startswith("test_joins.py:")


@sgc.function
def adds(s):
    group = s.fork(2)
    for i, f in enumerate(group):
        f += f"child {i}:" + sgc.gen("x")
    group.join(mode="first")
    group[0] += " more"


def test_a_loser_takes_no_more_text():
    for text in errors_in_both_ways(adds, after(9, 1), CutOff):
        assert "child 0 of a fork was cut off" in text
    for result, _ in in_both_ways(adds, after(1, 9)):
        assert result.streams[1].text == "child 0:0 more"


@sgc.function
def reads(s):
    group = s.fork(2)
    for i, f in enumerate(group):
        f += f"child {i}:" + sgc.gen("x")
    group.join(mode="first")
    s += group[0]["x"]


def test_a_losers_value_cannot_be_read():
    for text in errors_in_both_ways(reads, after(9, 1), CutOff):
        assert "child 0 of a fork was cut off" in text


@sgc.function
def picky(s):
    group = s.fork(3)
    for i, f in enumerate(group):
        f += f"child {i}:" + sgc.gen("x")
    group.join(mode="k_of_n", k=2, when=lambda f: f["x"] == "1")


def test_too_few_is_an_error():
    for text in errors_in_both_ways(picky, after(1, 2, 3), JoinFailed):
        assert text.startswith("test_joins.py:")
        assert "only " in text
        assert "waits for 2" in text


@sgc.function
def looping(s, q: str):
    s += q
    for turn in sgc.turns(4):
        group = s.fork(3)
        for i, f in enumerate(group):
            f += f"{turn}.{i}:" + sgc.gen("part", max_tokens=3)
        group.join(mode="first", when=lambda f: f["part"] != "no")
        s += group.states[0].function_name
        with s.var_scope("all"):
            s += " so " + sgc.gen("said", max_tokens=3)
        if s["said"] == "stop":
            break


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes())


@pytest.mark.filterwarnings("ignore::sgc.errors.SgcWarning")  # later turns keep the first's
def test_joins_in_a_loop_agree_where_order_is_fixed():
    program = looping.compile()
    assert ops(program.graph)["join_first"] <= 2
    outcomes = set()
    for seed in range(12):
        options = RunOptions(seed=seed, ordered_joins=True)
        found = []
        for each in (looping, program):
            endpoint = replying(seed, ["no", "go", "stop"])
            try:
                result = each.run_once({"q": "x"}, options, endpoint)
                found.append(repr([(s.path, s.text, s.variables) for s in result.streams]))
            except JoinFailed as error:
                found.append(error.message)
        assert found[0] == found[1], seed
        outcomes.add(found[0])
    assert len(outcomes) > 3


def test_a_run_with_a_log_needs_an_order(tmp_path):
    for each in (racing, racing.compile()):
        log = RunLog.open(tmp_path / f"{type(each).__name__}.jsonl")
        with pytest.raises(UnsupportedParameter, match="ordered_joins=True"):
            each.run_once({"q": "q"}, RunOptions(log=log), Endpoint(after(1, 2, 3)()))


def refused(body: Any, kind: type[Exception] = TraceError) -> str:
    with pytest.raises(kind) as error:
        sgc.function(body).compile()
    assert "test_joins.py" in str(error.value)
    return str(error.value)


def test_predicates_that_decide_are_refused():
    def both(s):
        group = s.fork(2)
        group += sgc.gen("x")
        group.join(mode="first", when=lambda f: f["x"] == "a" or f["x"] == "b")

    def number(s):
        group = s.fork(2)
        group += sgc.gen("x")
        group.join(mode="first", when=lambda f: int(f["x"]) > 3)

    for body in (both, number):
        assert "& and | in place of `and`" in refused(body)


def test_what_the_interpreter_cannot_go_on_from_is_not_left_to_it():
    def wild(s):
        group = s.fork(2)
        group += "child 1:" + sgc.gen("x")
        group.join(mode="first")
        for name in "bcdefghij":
            s += sgc.gen(name)
            if s[name] == "yes":
                s += "why?" + sgc.gen("why")

    with pytest.raises(TraceError, match="a join that takes the first children"):
        trace(sgc.function(wild), budget=Budget(runs=4))


def test_wrong_use():
    def too_many(s):
        s.fork(2).join(mode="k_of_n", k=3)

    def no_k(s):
        s.fork(2).join(mode="first", k=2)

    def stray(s):
        s.fork(2).join(when=lambda f: True)

    def text(s):
        group = s.fork(2)
        group += "child 1:" + sgc.gen("x")
        group.join(mode="first", when=lambda f: f["x"])

    def appends(s):
        def when(f):
            f += "more"
            return True

        s.fork(2).join(mode="first", when=when)

    for body in (too_many, no_k, stray, text, appends):
        refused(body, UsageError)
        with pytest.raises(UsageError, match=r"test_joins\.py:"):
            sgc.function(body).run_once({}, RunOptions(), Endpoint(after(1, 1)()))


def test_joins_in_turn():
    @sgc.function
    def twice(s):
        for name in ("a", "b"):
            group = s.fork(2)
            for i, f in enumerate(group):
                f += f"child {i}:" + sgc.gen(name)
            group.join(mode="first")
        return s["a"], s["b"]

    for result, _ in in_both_ways(twice, after(9, 1)):
        assert list(result.ret_value) == [["1"], ["1"]]
