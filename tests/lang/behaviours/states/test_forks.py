"""Forks and groups of states."""

from __future__ import annotations

import threading

import pytest
from tests_support import run_both

import sgc
from sgc import errors


def test_a_fork_of_one_makes_a_child_and_lists_of_one(recorded):
    endpoint = recorded("r")

    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(1)
        forks += sgc.gen("own")
        forks.join()
        again = s.fork()
        again += "x" + sgc.gen("other")
        again.join()
        return len(forks), len(again)

    result = run_both(program, endpoint)
    assert (result["own"], result["other"]) == (["r"], ["r"])
    assert list(result.ret_value) == [1, 1]
    assert result.text() == "t"
    assert endpoint.backend.commits == []  # nobody to share it with


def test_a_fork_of_several_computes_the_trunk_first(recorded):
    endpoint = recorded("r")

    @sgc.function
    def program(s):
        s += "trunk"
        forks = s.fork(2)
        forks += sgc.gen("own")

    program.run(backend=endpoint).sync()
    assert endpoint.backend.commits == ["trunk"]
    assert endpoint.texts == ["trunk", "trunk"]


def test_a_fork_at_a_server_prefills_with_no_tokens(served, server):
    @sgc.function
    def program(s):
        s += "trunk"
        forks = s.fork(2)
        forks += sgc.gen("own")

    program.run(backend=served()).sync()
    tokens = [body["sampling_params"]["max_new_tokens"] for body in server.requests]
    assert tokens == [0, 128, 128]


def test_a_fork_of_an_empty_stream_computes_nothing(recorded):
    endpoint = recorded("r")

    @sgc.function
    def program(s):
        forks = s.fork(3)
        forks += "x" + sgc.gen("own")
        forks.join()

    assert program.run(backend=endpoint)["own"] == ["r"] * 3
    assert endpoint.backend.commits == []


def test_fork_children_continue_text_and_variables(recorded):
    @sgc.function
    def program(s):
        s += "trunk "
        s += sgc.gen("t")
        forks = s.fork(2)
        forks += lambda i: f" {i}"
        return [fork.text() for fork in forks], forks[1]["t"], "t" in forks[0]

    result = run_both(program, recorded("T"))
    texts, variable, known = result.ret_value
    assert texts == ["trunk T 0", "trunk T 1"]
    assert (variable, known) == ("T", True)
    assert result.text() == "trunk T"


def test_fork_children_are_asked_side_by_side(recorded):
    gate = threading.Event()
    endpoint = recorded(gate=gate)

    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(4)
        forks += sgc.gen("own")
        forks.join()

    state = program.run(backend=endpoint)
    for _ in range(500):
        if len(endpoint.asked) == 4:
            break
        threading.Event().wait(0.005)
    assert len(endpoint.asked) == 4
    gate.set()
    assert state["own"] == ["reply"] * 4


def test_fork_takes_position_ids_offset_and_ignores_it(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(2, position_ids_offset=[0, 1])
        forks += sgc.gen("own")
        forks.join()
        with s.copy(position_ids_offset=[3]) as other:
            other += "x"

    assert run_both(program, recorded())["own"] == ["reply", "reply"]


def test_forks_inside_an_open_role(recorded):
    @sgc.function
    def program(s):
        s += sgc.user_begin() + "q "
        forks = s.fork(2)
        forks += lambda i: str(i) + sgc.user_end()
        forks += sgc.assistant(sgc.gen("own"))
        forks.join()
        return [fork.messages() for fork in forks]

    found = program.run(backend=recorded("r")).ret_value
    answer = {"role": "assistant", "content": "r"}
    assert found == [[{"role": "user", "content": f"q {i}"}, answer] for i in range(2)]


def test_var_scope_names_what_is_appended_inside(recorded):
    @sgc.function
    def program(s):
        s += "x"
        with s.var_scope("scope"):
            s += "in " + sgc.gen("a")
            s += "!"
        s += "y" + s["scope"]

    result = run_both(program, recorded("r"))
    assert (result["scope"], result.text()) == ("in r!", "xin r!yin r!")


def _grouped(part):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(2)
        forks += part
        return [fork.text() for fork in forks]

    return program


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (lambda i: f"<{i}>", ["t<0>", "t<1>"]),
        (sgc.gen("a"), ["tr", "tr"]),
        (["x", "y"], ["tx", "ty"]),
        (("x", "y"), ["tx", "ty"]),
        (lambda i: "n" + sgc.gen(f"v{i}"), ["tnr", "tnr"]),
        ([sgc.gen("a"), "y"], ["tr", "ty"]),
    ],
)
def test_group_append(recorded, part, expected):
    assert run_both(_grouped(part), recorded("r")).ret_value == expected


def test_group_append_of_a_text_goes_to_all(recorded):
    """SGLang raises ValueError."""
    assert run_both(_grouped("all"), recorded()).ret_value == ["tall", "tall"]


def test_group_append_of_a_wrong_number_of_parts(recorded):
    with pytest.raises(errors.UsageError, match="group of 2 takes as many parts, found 3"):
        _grouped(["a", "b", "c"]).run(backend=recorded())


def test_group_items_and_iteration(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(3)
        forks[0] += "a"
        forks[1] += sgc.gen("b")
        forks[-1] += "c"
        for i, fork in enumerate(forks):
            fork += str(i)
        with pytest.raises(IndexError):
            forks[3]
        return len(forks), [fork.text() for fork in forks], forks[1]["b"]

    state = program.run(backend=recorded("r"))
    assert state.ret_value == (3, ["ta0", "tr1", "tc2"], "r")
