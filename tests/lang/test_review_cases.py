"""Cases that once went wrong: each is a program that was mis-traced, hung or lost an error."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading

import pytest
from tests_support import run_both
from waiting import BOUND_S

import sgc
from sgc.errors import ArgumentError, SgcError, SgcWarning, TraceError, UsageError
from sgc.interpreter.calls import finished
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.tracing.tracer import trace

TABLE = {"en/low": "Hello", "de/high": "Hallo"}
LABELS = {"spam", "eggs"}


def in_global_set(s, x):
    s += "known" if f"{x}" in LABELS else "new"


def table_of_two(s, lang, level):
    s += TABLE.get(f"{lang}/{level}", "unknown")


def name_from_argument(s, x):
    s += sgc.gen(f"{x}_out")


def key_from_argument(s, x):
    s += x
    return {f"{x}!": 1}


def role_from_argument(s, x):
    s += sgc.role(x, "hi")


def stop_number(s, x):
    s += x + sgc.gen("g", stop=5)


@pytest.mark.full_check
@pytest.mark.parametrize(
    "body",
    [
        key_from_argument,
        role_from_argument,
        stop_number,
        in_global_set,
        table_of_two,
        name_from_argument,
    ],
)
def test_is_refused(body):
    with pytest.raises(SgcError):
        sgc.function(body).compile()


def test_join_gathers_new_names_and_warns_of_others(scripted):
    """What SGLang does silently: a second fork and join of one name keeps the first lists."""

    @sgc.function
    def program(s):
        s["grade"] = "A"
        group = s.fork(3)
        for index, child in enumerate(group):
            child["grade"] = "ABA"[index]
            child["other"] = f"{index}"
            child += sgc.gen("g")
        group.join()
        s += s["grade"] + "".join(s["other"]) + "".join(child["grade"] for child in group)

    with pytest.warns(SgcWarning, match="test_review_cases.py:.*join leaves 'grade' as it is"):
        assert run_both(program, scripted()).text() == "A012ABA"


def test_a_decorator_below_is_part_of_the_program(scripted):
    def prefixed(function):
        @functools.wraps(function)
        def wrapper(s, x):
            s += "PREFIX "
            return function(s, x)

        return wrapper

    @sgc.function
    @prefixed
    def program(s, x):
        s += x

    assert run_both(program, scripted(), x="hi").text() == "PREFIX hi"


def test_streams_of_functions_with_odd_names_keep_apart(scripted):
    @sgc.function
    def f0(s, x):
        s += x + sgc.gen("g", temperature=1.0)

    @sgc.function
    def program(s):
        s += "a"
        group = s.fork(2)
        group += sgc.gen("g", temperature=1.0)
        f0("x")
        f0("y")

    result = run_both(program, scripted())
    assert len({stream.path for stream in result.streams}) == 5
    assert len({request.sampling.seed for request in result.requests if request.sampling}) == 4


def test_runs_without_a_seed_differ_and_say_which(scripted):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g")

    seeds = {finished(program.run(backend=scripted())).seed for _ in range(3)}
    assert len(seeds) == 3
    compiled = program.compile()
    assert compiled.run(backend=scripted()).seed != compiled.run(backend=scripted()).seed


def test_a_fork_without_generations_compiles(scripted):
    @sgc.function
    def program(s, x):
        s += x
        group = s.fork(3)
        group += lambda i: f"{i}"
        group.join("concate_and_append")

    assert run_both(program, scripted(), x="a").text() == "a012"
    assert run_both(program, scripted(), x="a").stats.commits == 1


def test_choices_and_stops_from_arguments_compile(scripted):
    @sgc.function
    def program(s, a, b):
        s += "x" + sgc.gen("g", stop=a) + sgc.select("c", choices=[a, b])

    assert run_both(program, scripted(), a="!", b="?")["c"] == "!"


def test_a_none_default_is_static_and_says_so(scripted):
    @sgc.function
    def program(s, x, context: str = None):  # noqa: RUF013
        s += x + ("" if context is None else context)

    assert run_both(program, scripted(), x="a").text() == "a"
    assert run_both(program, scripted(), bind={"context": "c"}, x="a").text() == "ac"
    with pytest.raises(ArgumentError, match="was fixed when compiling"):
        program.compile().run(x="a", context="c", backend=scripted())


def test_what_a_body_prints_is_printed_once(capsys):
    @sgc.function
    def program(s, x):
        print("hello", x)
        print("plain")
        s += x

    program.compile()
    assert capsys.readouterr().out == "plain\n"


def test_noncharacters_in_a_program_are_text(scripted):
    @sgc.function
    def program(s, x):
        s += "\ufdd00\ufdd1" + x

    with pytest.raises(TraceError, match="another trace"):
        trace(program)


def test_another_run_inside_a_program_is_refused_while_tracing(scripted):
    @sgc.function
    def inner(s, x):
        s += x

    compiled = inner.compile()
    endpoint = scripted()

    @sgc.function
    def program(s, x):
        s += compiled.run(x=x, backend=endpoint).text()

    with pytest.raises(TraceError, match="another run is started"):
        program.compile()


def test_a_nested_call_in_another_thread_is_refused(scripted):
    @sgc.function
    def inner(s, x):
        s += x

    @sgc.function
    def program(s):
        import contextvars

        context = contextvars.copy_context()
        errors = []

        def work():
            try:
                context.run(inner, "x")
            except UsageError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(timeout=BOUND_S)
        raise errors[0]

    with pytest.raises(UsageError, match="another thread"):
        program.run(backend=scripted())


@pytest.mark.parametrize("way", ["compiled", "interpreted"])
def test_a_callback_that_waits_for_a_run_is_told(scripted, way):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g")

    endpoint = scripted()
    compiled = program.compile()

    def callback(node, path, text):
        (compiled if way == "compiled" else program).run(backend=endpoint)

    with pytest.raises(SgcError, match="same thread"):
        compiled.run(backend=endpoint, on_text=callback)


FORKS = """
import os
import sgc
from sgc.runs.endpoints import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend

@sgc.function
def program(s):
    s += "x" + sgc.gen("g")

def run():
    return program.run(backend=Endpoint(ScriptedBackend(lambda p, s: "r"))).text()

assert run() == "xr"
pid = os.fork()
if pid == 0:
    os._exit(0 if run() == "xr" else 1)
assert os.waitpid(pid, 0)[1] == 0
"""


def test_a_forked_child_can_run_programs(tmp_path):
    """In a process of its own: this one has gRPC's threads, which do not outlive a fork."""
    (tmp_path / "forks.py").write_text(FORKS)
    command = [sys.executable, "-P", str(tmp_path / "forks.py")]
    subprocess.run(command, check=True, timeout=BOUND_S)


def test_objects_in_variables_do_not_hang_a_run(scripted):
    @sgc.function
    def program(s):
        s["o"] = object()
        s += "x" + sgc.gen("g")
        return s["o"]

    for _ in range(50):
        assert type(finished(program.run(backend=scripted())).ret_value) is object


def test_compiling_costs_linear_work(scripted):
    """Counted, not timed: nodes of a program with many forks, and of its published names."""

    def nodes(n: int) -> int:
        @sgc.function
        def program(s, x):
            for _ in range(n):
                group = s.fork(2)
                group += x
                for child in group:
                    child["v"] = "w"
                group.join()

        return trace(program).n_nodes

    assert nodes(40) < 2.2 * nodes(20)


def test_compiling_under_a_profiler():
    import cProfile

    @sgc.function
    def program(s, x):
        s += x

    profile = cProfile.Profile()
    profile.enable()
    try:
        graph = program.compile().graph
    finally:
        profile.disable()
    assert parse(to_text(graph)) == graph


def test_a_nested_run_is_a_call_and_takes_no_options(scripted):
    @sgc.function
    def inner(s, x):
        s += x + sgc.gen("g")

    @sgc.function
    def calls_run(s, x):
        s += inner.run(x=x)["g"]

    @sgc.function
    def sets_options(s, x):
        s += inner.run(x=x, temperature=0.0)["g"]

    assert len(run_both(calls_run, scripted(), x="a").streams) == 2
    with pytest.raises(UsageError, match="the whole program is one run"):
        sets_options.run(x="a", backend=scripted())


def test_wrong_kinds_are_refused(scripted):
    @sgc.function
    def typed(s, n: int):
        s += f"{n}"

    with pytest.raises(ArgumentError, match="'n' must be int"):
        typed.run(n="notint", backend=scripted())
    with pytest.raises(ArgumentError, match="'n' must be int"):
        typed.compile(n=1.5)
    with pytest.raises(UsageError, match="is a method"):

        class Holder:
            @sgc.function
            def m(self, s):
                pass

    with pytest.raises(UsageError, match="positional-only"):

        @sgc.function
        def positional(s, x, /):
            pass

    @sgc.function
    def text_choices(s):
        s += sgc.select("c", "yes")

    with pytest.raises(UsageError, match="must be a list of texts"):
        text_choices.run(backend=scripted())
    with pytest.raises(UsageError, match="backend must be"):
        typed.run(n=1, backend="http://x")
    with pytest.raises(AttributeError, match="sgc has no 'audio'"):
        sgc.audio  # noqa: B018
