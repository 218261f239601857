"""Forks into a number of streams known only at run time."""

from __future__ import annotations

from typing import Any

import pytest
from control_flow import agree, replying

import sgc
from sgc.errors import ForkError, TraceError
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

REPLIES = ("yes", "no", " a b", "1", "2", "3")
WORDS = {"xs": ["one", "two", "three"]}


@sgc.function
def over_a_list(s, xs: list[str]):
    s += "Q"
    forks = s.fork(len(xs))
    for f, x in zip(forks, xs, strict=False):
        f += x + sgc.gen("y", max_tokens=4)
    ys = [f["y"].strip() for f in forks]
    s += ",".join(ys) + sgc.gen("z")
    return ys


@sgc.function
def the_list_first(s, xs: list[str]):
    for i, (x, f) in enumerate(zip(xs, s.fork(len(xs)), strict=False)):
        f += f"{i}{x}" + sgc.gen("y", max_tokens=4)
        s += f["y"]


@sgc.function
def a_number_from_a_reply(s, xs: list[str]):
    s += sgc.gen("n", regex="[1-3]")
    forks = s.fork(int(s["n"]))
    for i, f in enumerate(forks):
        f += f"{i}:" + sgc.gen("p", max_tokens=4)
        if f["p"] == "yes":
            f += "more" + sgc.gen("p", max_tokens=4)
    forks.join()
    s += "/".join(s["p"]) + forks[0]["p"] + forks[-1]["p"] + sgc.gen("e")
    return len(forks), "p" in forks[0], "q" in forks[0]


@sgc.function
def names_that_some_set(s, xs: list[str]):
    forks = s.fork(len(xs))
    for f in forks:
        f += sgc.gen("a", max_tokens=4)
        if f["a"] == "yes":
            f += sgc.gen("b", max_tokens=4)
    forks.join()
    s += ",".join(s["a"])
    s += ("+" + ",".join(s["b"])) if "b" in s else "none"


@sgc.function
def asked(t, word: str):
    t += word + sgc.gen("answer", max_tokens=4)
    return t["answer"]


@sgc.function
def calls_and_maps_inside(s, xs: list[str]):
    s += "all"
    for f, x in zip(s.fork(len(xs)), xs, strict=True):
        f += asked(x).ret_value
        f += sgc.join("/", sgc.map(asked, x.split("e")).returns)
        for g in f.fork(2):
            g += sgc.gen("g", max_tokens=4)
    with s.copy() as c:
        c += sgc.gen("c", max_tokens=4)


@sgc.function
def in_a_loop(s, xs: list[str]):
    found = []
    for x in xs:
        forks = s.fork(len(x))
        for i, f in enumerate(forks):
            f += x + sgc.gen("y", max_tokens=4, temperature=0.5 + 0.25 * (i == 1))
        found.append(max(f["y"] for f in forks))
        s += found[-1]
    return found


@sgc.function
def children_that_no_turn_begins(s, xs: list[str]):
    s += "some"
    for f, x in zip(s.fork(len(xs) + 2), xs, strict=False):
        f += x + sgc.gen("y", max_tokens=4)
    s += sgc.gen("z", max_tokens=4)


@sgc.function
def left_early(s, xs: list[str]):
    for f, x in zip(s.fork(len(xs)), xs, strict=False):
        f += x + sgc.gen("y", max_tokens=4)
        if f["y"] == "yes":
            break
        s += f["y"]
    s += sgc.gen("z", max_tokens=4)


@sgc.function
def inside_roles(s, xs: list[str]):
    s += sgc.user("hello")
    with s.assistant():
        s += "I say "
    for f, x in zip(s.fork(len(xs)), xs, strict=False):
        f += sgc.user(x)
        f += sgc.assistant(sgc.gen("y", max_tokens=4))
        with f.var_scope("v"):
            f += "v" + f["y"]
        s += f["v"]


@sgc.function
def never_looped_over(s, xs: list[str]):
    forks = s.fork(len(xs))
    s += sgc.gen("y", max_tokens=4)
    return len(forks) if forks else 0


@sgc.function
def the_trunk_goes_on(s, xs: list[str]):
    s += "a" + sgc.gen("t", max_tokens=4)
    forks = s.fork(len(xs))
    s += "b" + sgc.gen("t", max_tokens=4)
    for f in forks:
        f += f["t"] + sgc.gen("y", max_tokens=4)
    again = s.fork(len(xs))
    for g, f in zip(again, forks, strict=False):
        g += f["t"] + f["y"] + sgc.gen("u", max_tokens=4)
    return [f["t"] + g["u"] for f, g in zip(forks, again, strict=False)]


PROGRAMS = [
    over_a_list, the_list_first, a_number_from_a_reply, names_that_some_set, calls_and_maps_inside,
    in_a_loop, children_that_no_turn_begins, left_early, inside_roles, never_looped_over,
    the_trunk_goes_on,
]  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_it_is_what_it_is_interpreted(program: Any) -> None:
    graph = agree(program, REPLIES, **WORDS)
    assert any(node.op == "open_fork" for node in graph.nodes())
    agree(program, REPLIES, n=4, xs=["a" * 5])


def test_one_graph_takes_any_number() -> None:
    graph = trace(over_a_list, is_full=True)
    for n in (1, 40):
        agree(over_a_list, REPLIES, n=2, graph=graph, xs=[f"w{i}" for i in range(n)])
    assert len(list(graph.nodes())) < 100


@pytest.mark.parametrize("n", [0, -1, 100_001])
def test_a_number_that_no_fork_can_have(n: int) -> None:
    @sgc.function
    def program(s, n: int):
        for f in s.fork(n):
            f += sgc.gen("y")

    compiled = Program(trace(program, is_full=True))
    for each in (program, compiled):
        with pytest.raises(ForkError, match=f"from 1 to 100000 children, found {n}"):
            each.run_once({"n": n}, RunOptions(), replying(0, REPLIES))


def appends_in_a_second_loop(s, forks):
    for f in forks:
        f += sgc.gen("b")


def joins_by_text(s, forks):
    forks.join("concate_and_append")


def appends_to_all(s, forks):
    forks += "x"


def reads_what_some_set(s, forks):
    s += forks[0]["b"]


def sets_later(s, forks):
    last = None
    for f in s.fork(int(s["n"])):
        if last is not None:
            last["c"] = "x"
        last = f
    s += "x"


@pytest.mark.parametrize(
    "use",
    [appends_in_a_second_loop, joins_by_text, appends_to_all, reads_what_some_set, sets_later],
)
def test_what_cannot_be_traced_is_refused(use: Any) -> None:
    @sgc.function
    def program(s):
        s += sgc.gen("n", regex="[1-3]", max_tokens=1)
        forks = s.fork(int(s["n"]))
        for f in forks:
            f += sgc.gen("a", max_tokens=4)
            if f["a"] == "yes":
                f["b"] = "x"
        use(s, forks)

    with pytest.raises(TraceError, match=r"fork into a number of streams|the very stream"):
        trace(program, is_full=True)


def test_a_fork_left_early_is_not_used_again() -> None:
    @sgc.function
    def program(s, xs: list[str]):
        forks = s.fork(len(xs))
        for f in forks:
            f += sgc.gen("a", max_tokens=4)
            if f["a"] == "yes":
                break
        forks.join()

    with pytest.raises(TraceError, match="is used again after `break`"):
        trace(program, is_full=True)


def test_children_that_may_be_missing_are_not_read() -> None:
    @sgc.function
    def program(s, xs: list[str]):
        forks = s.fork(len(xs) + 1)
        for f, x in zip(forks, xs, strict=False):
            f += x + sgc.gen("a", max_tokens=4)
        s += forks[0]["a"]

    with pytest.raises(TraceError, match="a loop that may not have begun all"):
        trace(program, is_full=True)


@sgc.function
def texts_from_an_argument(s, q: str, width: int):
    s += q + sgc.gen("a", n=width, max_tokens=4)
    texts = s["a"] if isinstance(s["a"], list) else [s["a"]]
    for text in texts:
        s += text
    return len(texts)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_texts_of_a_number_known_only_at_run_time(width: int) -> None:
    agree(texts_from_an_argument, REPLIES, q="x", width=width)
