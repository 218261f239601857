"""Python that needs a value while tracing that is known only at run time says what to write."""

from __future__ import annotations

import pytest
from tests_support import run_both

import sgc
from sgc.errors import SgcError, TraceError, UsageError
from sgc.tracing.tracer import trace


def evaluates(s, x):
    s += x + sgc.gen("a")
    s += str(calculated(s["a"]))


def calculated(expression: str) -> object:
    return eval(expression)


def evaluates_an_f_string(s, x):
    s += str(eval(f"{x} + 1"))


def executes(s, x):
    exec(x)
    s += x


def compiles(s, x):
    s += str(compile(x, "x", "eval"))


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (evaluates, calculated.__code__.co_firstlineno + 1),
        (evaluates_an_f_string, evaluates_an_f_string.__code__.co_firstlineno + 1),
        (executes, executes.__code__.co_firstlineno + 1),
        (compiles, compiles.__code__.co_firstlineno + 1),
    ],
)
def test_running_a_generated_text_is_refused_with_its_line(body, line):
    with pytest.raises(TraceError, match=r"known only at run time\n.*@sgc\.tool") as caught:
        sgc.function(body).compile()
    assert caught.value.where == f"test_host_code.py:{line}"


def test_opening_a_file_named_by_a_generated_text_is_refused_with_its_line():
    def body(s, x):
        with open(x) as found:
            s += found.read()

    with pytest.raises(TraceError, match=r"named by a value.*\n.*@sgc\.tool") as caught:
        sgc.function(body).compile()
    assert caught.value.where == f"test_host_code.py:{body.__code__.co_firstlineno + 1}"


def test_plain_text_is_evaluated_with_the_names_of_its_caller(scripted):
    @sgc.function
    def program(s, x):
        local = 4
        s += x + str(eval("local + len(LETTERS)")) + str(eval("a + 1", {"a": local}))

    assert run_both(program, scripted(), x="b").text() == "b75"


LETTERS = "abc"


@pytest.mark.parametrize(
    ("size", "hint"),
    [
        (lambda s, n: n, "--bind n=N"),
        (lambda s, n: int(s["k"]), "in one turn of one `for`"),
    ],
)
def test_what_a_fork_of_unknown_size_cannot_do_is_refused_with_its_line(size, hint):
    def body(s, n: int):
        s += sgc.gen_int("k")
        forks = s.fork(size(s, n))
        forks += "x"

    with pytest.raises(TraceError, match="is appended to outside a loop over its fork") as caught:
        sgc.function(body).compile()
    assert caught.value.where == f"test_host_code.py:{body.__code__.co_firstlineno + 3}"
    assert hint in caught.value.hint


def test_a_fork_into_a_text_is_refused_with_its_line():
    def body(s):
        s += sgc.gen("k")
        s.fork("1" + f"{s['k']}")

    with pytest.raises(UsageError, match="fork takes a whole number, found") as caught:
        sgc.function(body).compile()
    assert caught.value.where == f"test_host_code.py:{body.__code__.co_firstlineno + 2}"


def test_frames_of_unknown_number_are_refused_with_their_line():
    def body(s, path, n: int):
        s += sgc.video(path, n)

    with pytest.raises(TraceError, match="a video of a number of frames known only") as caught:
        sgc.function(body).compile()
    assert caught.value.where == f"test_host_code.py:{body.__code__.co_firstlineno + 1}"
    assert "--bind n=N" in caught.value.hint


def names_by_value(s, n):
    s += sgc.gen("t")
    s["no"] = 1
    s[s["t"]] = 1


def test_a_name_that_may_be_empty_is_refused_with_its_line():
    with pytest.raises(TraceError, match="a variable's name is a value known only") as caught:
        sgc.function(names_by_value).compile()
    line = names_by_value.__code__.co_firstlineno + 3
    assert caught.value.where == f"test_host_code.py:{line}"


def test_an_index_known_only_at_run_time_says_how_to_pick():
    def body(s, n):
        s += sgc.gen_int("k")
        forks = s.fork(2)
        forks += sgc.gen("x")
        s += forks[int(s["k"])]["x"]

    with pytest.raises(TraceError, match="to pick a stream, compare") as caught:
        sgc.function(body).compile()
    assert "--bind" not in caught.value.hint, "it is no argument"


@pytest.mark.parametrize("make", [lambda x: [f"{x} b"], lambda x: [x], lambda x: {"k": x}])
def test_messages_show_no_markers(make):
    def body(s, x):
        s += make(x)

    with pytest.raises(UsageError) as caught:
        sgc.function(body).compile()
    assert "{…}" in caught.value.message
    assert not any(mark in caught.value.message for mark in ("\ufdd0", "\ufdd1", "fdd0"))


def role_from_argument(s, x):
    s += sgc.role(x, "hi")


def stop_number(s, x):
    s += x + sgc.gen("g", stop=5)


@pytest.mark.full_check
@pytest.mark.parametrize(
    "body",
    [
        role_from_argument,
        stop_number,
    ],
)
def test_is_refused(body):
    with pytest.raises(SgcError):
        sgc.function(body).compile()


def test_noncharacters_in_a_program_are_text(scripted):
    @sgc.function
    def program(s, x):
        s += "\ufdd00\ufdd1" + x

    with pytest.raises(TraceError, match="another trace"):
        trace(program)
