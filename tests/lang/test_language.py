"""The language, interpreted and compiled alike: streams, forks, roles, names, calls."""

from __future__ import annotations

import threading

import pytest
from tests_support import run_both
from waiting import BOUND_S

import sgc
from sgc.errors import (
    ArgumentError,
    ProgramError,
    SgcError,
    UnknownVariable,
    UnsupportedParameter,
    UsageError,
)
from sgc.interpreter.calls import finished
from sgc.runtime.executor.interface.backend import Sampling


@sgc.function
def forks(s, x):
    s += "trunk " + x
    s["before"] = "set before"
    s += sgc.gen("shared")
    group = s.fork(3)
    group += lambda i: f" child {i}"
    group += [" a", " b", " c"]
    group += " all" + sgc.gen("own")
    group[1] += sgc.gen("extra")
    s += " trunk goes on"
    group.join()
    s += " joined " + ",".join(s["own"])
    second = group[0].fork(2)
    second += sgc.gen("deep")
    second.join()
    return [group[0]["deep"], s["own"], s["extra"], len(group), [c["shared"] for c in group]]


def test_forks_and_joins(scripted):
    result = run_both(forks, scripted(), x="X")
    deep, own, extra, size, shared = result.ret_value
    assert size == 3
    assert len(own) == 3
    assert len(set(own)) == 1  # same lengths, so the same scripted reply
    assert len(extra) == 1
    assert len(deep) == 2
    assert set(shared) == {result["shared"]}
    assert [stream.path for stream in result.streams] == [
        "forks", "forks/:0.0", "forks/:0.1", "forks/:0.2", "forks/:0.0/:0.0", "forks/:0.0/:0.1",
    ]  # fmt: skip
    assert result.streams[1].text.startswith("trunk X reply")
    assert " child 0 a all" in result.streams[1].text
    assert result["before"] == "set before"
    assert "before" not in result.streams[2].variables  # a stream's own names


def test_join_appends_texts_in_order(scripted):
    @sgc.function
    def program(s, x):
        s += x
        group = s.fork(2)
        group += lambda i: f"<{i}:"
        group += sgc.gen("g")
        group.join("concate_and_append")
        s += sgc.gen("after")

    result = run_both(program, scripted(lambda p, s: "r>"), x="T")
    assert result.text() == "T<0:r><1:r>r>"


@sgc.function
def roles(s, x):
    s += sgc.system("be brief")
    s.user("hello " + x)
    with s.assistant():
        s += sgc.gen("a") + "!"
    s += sgc.user_begin() + "raw" + sgc.user_end()
    s += sgc.assistant_begin()
    with s.var_scope("scope"):
        s += "in scope " + sgc.gen("b")
    s += sgc.assistant_end()
    with s.copy() as other:
        other += sgc.user("copied") + sgc.assistant(sgc.gen("c"))
    return s["scope"], s["c"]


def test_roles_scopes_and_copies(scripted):
    result = run_both(roles, scripted(lambda p, s: "ok"), x="you")
    assert result.ret_value in (("in scope ok", ["ok"]), ["in scope ok", ["ok"]])
    assert result.messages() == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello you"},
        {"role": "assistant", "content": "ok!"},
        {"role": "user", "content": "raw"},
        {"role": "assistant", "content": "in scope ok"},
    ]


@sgc.function
def helper(s, a, b="B"):
    s += f"{a}-{b}-" + sgc.gen("h")
    return s["h"]


@sgc.function
def calls(s, x):
    first = helper(x)
    second = helper(x, b=first.ret_value)
    s += first["h"] + second["h"]
    s += second.text()
    third = [helper(str(i))["h"] for i in range(2)]
    return {"all": [first.ret_value, second, *third]}


def test_nested_calls_are_streams_of_the_same_run(scripted):
    result = run_both(calls, scripted(), x="X")
    paths = [stream.path for stream in result.streams]
    assert paths == ["calls"] + [f"calls/helper.{i}" for i in range(4)]
    assert result.ret_value["all"][1] == result.streams[2].text


def test_select_takes_the_preferred_choice(scripted):
    @sgc.function
    def program(s, x):
        s += x + sgc.select("pick", choices=["a", "b" + x, "c"])
        s += sgc.gen("again", choices=["d", "e"])

    result = run_both(program, scripted(prefer=lambda p, c: 1), x="X")
    assert (result["pick"], result["again"]) == ("bX", "e")
    assert result.text() == "XbXe"


def test_bound_and_static_arguments(scripted):
    @sgc.function
    def program(s, xs, n=2, style: dict = {"a": "b"}):  # noqa: B006
        for x in xs:
            s += x
        s += style["a"] + "y" * n

    result = run_both(program, scripted(), bind={"xs": ["p", "q"], "n": 3})
    assert result.text() == "pqbyyy"
    with pytest.raises(ArgumentError, match="no argument 'z'"):
        program.compile(z=1)


def test_a_programs_own_parameters_come_first(scripted):
    @sgc.function
    def program(s, seed, temperature="warm"):
        s += f"{seed} {temperature}"

    state = program.run(seed="a", temperature="b", backend=scripted(), max_new_tokens=5)
    assert state.text() == "a b"
    compiled = program.compile().run(seed="a", backend=scripted(), top_p=0.5)
    assert compiled.text() == "a warm"


def test_defaults_of_a_run_reach_generations(scripted):
    seen: list[Sampling] = []

    def reply(prompt, sampling):
        seen.append(sampling)
        return "r"

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", 7) + sgc.gen("b", temperature=0.0, seed=4)

    program.run(backend=scripted(reply), max_new_tokens=9, temperature=0.7, stop="!").text()
    assert [s.max_tokens for s in seen] == [7, 9]
    assert [s.temperature for s in seen] == [0.7, 0.0]
    assert [s.stop for s in seen] == [("!",), ("!",)]


# -- errors ------------------------------------------------------------------------------


def _where(error: SgcError) -> str:
    return error.where.split(":")[0]


def test_reading_too_early_is_an_error_with_the_line(scripted):
    @sgc.function
    def program(s):
        s += sgc.gen("b")
        return s["a"]

    for run in (lambda: program.run(backend=scripted()), program.compile):
        with pytest.raises(UnknownVariable, match=r"no variable 'a' has been set.*: b") as caught:
            run()
        assert isinstance(caught.value, KeyError)
        assert _where(caught.value) == "test_language.py"


@pytest.mark.parametrize(
    ("append", "message"),
    [
        (lambda s: s.__iadd__(5), "only text and expressions can be appended, found int 5"),
        (lambda s: s.__iadd__(None), "found NoneType None"),
        (lambda s: s + "a", r"a state is appended to in place.*\n  write s \+= …"),
        (lambda s: "a" + s, "a state is appended to in place"),
        (lambda s: s.fork(0), "from 1 to 100000"),
        (lambda s: s.fork("2"), "whole number"),
        (lambda s: s.fork(2).join("sideways"), "no mode 'sideways'"),
        (lambda s: s.fork(2).__iadd__(["one"]), "group of 2 takes as many parts, found 1"),
        (lambda s: s.__iadd__(sgc.user("a" + sgc.user("b"))), "roles do not nest"),
        (lambda s: s.__iadd__(sgc.user_end()), "no role is open"),
        (lambda s: s.__iadd__(sgc.select("c", [])), "at least one choice"),
        (lambda s: s.__iadd__(sgc.gen("g", regex="(a")), "regex is no valid pattern"),
        (lambda s: s.__iadd__(sgc.gen("g", n=0)), "n must be from 1 to 10000, found 0"),
        (lambda s: s.__iadd__(sgc.gen("g", dtype="date")), "dtype must be one of int, float"),
        (lambda s: s.__iadd__(sgc.gen("g", dtype=int, regex="a")), "dtype and regex are all given"),
        (lambda s: s.__iadd__(sgc.gen("g", json_schema="{")), "json_schema is no JSON"),
        (lambda s: s.__iadd__(sgc.image("https://x/y.png")), "not fetched by URL"),
        (lambda s: s.__iadd__(sgc.image("/no/such.png")), "cannot read the image"),
        (lambda s: s.__iadd__(sgc.separate_reasoning(sgc.gen("g"), "x")), "no model_type 'x'"),
        (lambda s: s.__iadd__(sgc.gen(3)), "must be a plain text"),
    ],
)
def test_wrong_uses_name_the_line(scripted, append, message):
    @sgc.function
    def program(s):
        append(s)

    for run in (lambda: program.run(backend=scripted()), lambda: program.compile(check=False)):
        with pytest.raises((UsageError, UnsupportedParameter), match=message) as caught:
            run()
        assert _where(caught.value) == "test_language.py"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_tokens": -1}, "max_tokens must be from 0"),
        ({"temperature": float("nan")}, "must be finite"),
        ({"top_p": 2.0}, "top_p must be from 0 to 1"),
        ({"max_tokens": "9"}, "whole number"),
        ({"stop": [""]}, "non-empty texts"),
    ],
)
def test_parameters_out_of_range_name_the_line(scripted, params, message):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g", **params)

    with pytest.raises(SgcError, match=message) as caught:
        program.run(backend=scripted()).text()
    assert _where(caught.value) == "test_language.py"


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing argument 'a'"),
        (("x", "y", "z"), {}, "takes 2 arguments, found 3"),
        (("x",), {"a": "y"}, "given twice"),
        (("x",), {"nope": 1}, "unknown argument 'nope'"),
    ],
)
def test_wrong_arguments_are_listed(scripted, args, kwargs, message):
    @sgc.function
    def program(s, a, b="b"):
        s += a + b

    with pytest.raises(ArgumentError, match=message):
        program.run(*args, backend=scripted(), **kwargs)


def test_wrong_arguments_of_a_call_name_its_line(scripted):
    @sgc.function
    def inner(s, a):
        s += a

    @sgc.function
    def outer(s):
        s += "x"
        inner(s, "y")

    for run in (lambda: outer.run(backend=scripted()), outer.compile):
        with pytest.raises(ArgumentError, match="takes 1 argument, found 2") as caught:
            run()
        line = outer.loc.line + 3
        assert caught.value.where == f"test_language.py:{line}"


def test_a_failing_backend_reaches_the_caller_with_the_users_line(scripted):
    def reply(prompt, sampling):
        raise RuntimeError("backend broke")

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g")
        s += "y" + sgc.gen("h")

    # The body may find out while it still appends, or whoever reads afterwards.
    for read in (
        lambda: program.run(backend=scripted(reply)).text(),
        lambda: program.run(backend=scripted(reply))["g"],
        lambda: program.run(backend=scripted(reply))["h"],
        lambda: finished(program.run(backend=scripted(reply))),
    ):
        with pytest.raises(ProgramError, match="backend broke") as caught:
            read()
        assert _where(caught.value) == "test_language.py"
    with pytest.raises(ProgramError, match="backend broke"):
        program.compile(check=False).run(backend=scripted(reply))


def test_an_exception_of_the_body_is_raised_as_it_is(scripted):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g")
        raise LookupError(s["g"])

    with pytest.raises(LookupError, match="reply"):
        program.run(backend=scripted())


def test_a_finished_run_cannot_be_extended(scripted):
    @sgc.function
    def program(s):
        s += "x"

    state = program.run(backend=scripted())
    with pytest.raises(UsageError, match="is over"):
        state += "y"
    assert state.text() == "x"
    state["note"] = 3
    assert state["note"] == 3


def test_runs_in_many_threads_do_not_meet(scripted):
    endpoint = scripted()
    texts: dict[int, str] = {}

    def work(i: int) -> None:
        texts[i] = calls.run(x="x" * i, backend=endpoint).text()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=BOUND_S)
    assert texts == {i: calls.run(x="x" * i, backend=endpoint).text() for i in range(12)}


def test_not_a_program():
    with pytest.raises(UsageError, match="takes no stream"):
        sgc.function(lambda: None)

    def generator(s):
        yield s

    async def coroutine(s):
        s += "x"

    for body in (generator, coroutine):
        with pytest.raises(UsageError, match="cannot be a program"):
            sgc.function(body)
    with pytest.raises(UsageError, match="takes a Python function"):
        sgc.function(3)


def test_rest_and_options_of_a_program(scripted):
    @sgc.function
    def program(s, first, *rest, last="z", **options):
        s += first + "".join(rest) + last + str(sorted(options.items()))
        return len(rest)

    run = program.run("a", "b", "c", more=1, backend=scripted())
    assert (run.text(), run.ret_value) == ("abcz[('more', 1)]", 2)
    graph = program.compile(rest=("b", "c"), options={"more": 1}, last="z")
    assert graph.run("a", backend=scripted()).text() == run.text()
