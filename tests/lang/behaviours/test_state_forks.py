"""Forks and groups of states (FRONTEND 1.4)."""

from __future__ import annotations

import threading
import warnings

import pytest
from lang.behaviours.state_programs import simple, tagged
from tests_support import run_both

import sgc
from sgc import errors
from sgc.errors import SgcWarning

# -- forks ---------------------------------------------------------------------------------


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


def test_join_gathers_lists_in_order(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(3)
        forks += ["a", "b", "c"]
        forks += sgc.gen("own")
        forks.join()
        s += "+".join(s["own"])

    result = run_both(program, recorded(tagged))
    assert result["own"] == ["AAAA", "BBBB", "CCCC"]
    assert result.text() == "tAAAA+BBBB+CCCC"


def test_join_concate_and_append_appends_texts_in_order(recorded):
    """SGLang asks its server to concatenate KV, by a route that no server has."""

    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(2)
        forks += ["a", "b"]
        forks += sgc.gen("own")
        forks.join(mode="concate_and_append")
        s += "." + sgc.gen("after")

    result = run_both(program, recorded(tagged))
    assert result.text() == "taAAAAbBBBB....."
    assert "own" not in result.variables


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


def test_join_of_an_unknown_mode(recorded):
    @sgc.function
    def program(s):
        s.fork(2).join("sideways")

    with pytest.raises(errors.UsageError, match="no mode 'sideways'"):
        program.run(backend=recorded())


def test_copy_joins_at_its_end(recorded):
    @sgc.function
    def program(s):
        s += "t"
        with s.copy() as other:
            other += "a" + sgc.gen("own")
        s += s["own"][0]

    result = run_both(program, recorded(tagged))
    assert result["own"] == ["AAAA"]
    assert result.text() == "tAAAA"


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


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_roles_as_methods_append_at_once(recorded, role):
    @sgc.function
    def program(s):
        getattr(s, role)("text " + sgc.gen("a"))
        with getattr(s, role)():
            s += "inside "
            s += sgc.gen("b")

    result = run_both(program, recorded("r"))
    once = f"<|{role}|>text r<|end|>"
    assert result.text() == once + f"<|{role}|>inside r<|end|>"
    assert [message["role"] for message in result.messages()] == [role, role]


def test_role_method_appends_once_even_when_it_is_appended(recorded):
    """In SGLang `s += s.user(x)` appends twice, though a comment says otherwise."""

    @sgc.function
    def program(s):
        s += s.user("hi")
        s += s.assistant(sgc.gen("a"))

    result = run_both(program, recorded("r"))
    assert result.text() == "<|user|>hi<|end|><|assistant|>r<|end|>"


# -- groups --------------------------------------------------------------------------------


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


# -- the rest ------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "call", "batch", "stream"])
def test_stream_executor_has_what_outside_code_reads(recorded, way):
    @sgc.function
    def program(s):
        s += sgc.user("q")
        s += sgc.assistant(sgc.gen("a"))

    endpoint = recorded("r")
    state = {
        "run": lambda: program.run(backend=endpoint),
        "call": lambda: program(backend=endpoint),
        "batch": lambda: program.run_batch([{}], backend=endpoint)[0],
        "stream": lambda: program.run(backend=endpoint, stream=True),
    }[way]()
    executor = state.stream_executor
    executor.sync()
    assert executor.text_ == executor.text() == "<|user|>q<|end|><|assistant|>r<|end|>"
    assert executor.messages_[-1] == {"role": "assistant", "content": "r"}
    assert executor.variables["a"] == executor.get_var("a") == "r"
    assert executor.is_finished
    assert executor.error() is None
    executor.set_var("b", 1)
    assert state["b"] == 1
    executor.end()


@pytest.mark.parametrize("way", ["run", "call"])
def test_stream_executors_get_meta_info_takes_a_timeout(recorded, way):
    """SGLang's executor has one where its state has none."""
    state = {
        "run": lambda: simple.run("x", backend=recorded()),
        "call": lambda: simple("x", backend=recorded()),
    }[way]()
    meta = state.stream_executor.get_meta_info("a", timeout=5)
    assert meta["finish_reason"]["type"] == "stop"


def test_is_finished_before_and_after(recorded):
    gate = threading.Event()
    state = simple.run("x", backend=recorded(gate=gate))
    assert not state.stream_executor.is_finished
    gate.set()
    assert state.text() == "ask xreply."
    state.stream_executor.sync()
    for _ in range(500):
        if state.stream_executor.is_finished:
            break
        threading.Event().wait(0.002)
    assert state.stream_executor.is_finished


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_repr_is_sliced_by_a_public_program(recorded, way):
    state = {
        "run": lambda: simple.run("x", backend=recorded()),
        "call": lambda: simple("x", backend=recorded()),
        "batch": lambda: simple.run_batch([("x",)], backend=recorded())[0],
    }[way]()
    assert repr(state) == "ProgramState(ask xreply.)"


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_notebook_html(recorded, way):
    endpoint = recorded("<b>&")
    state = {
        "run": lambda: simple.run("x<y", backend=endpoint),
        "call": lambda: simple("x<y", backend=endpoint),
        "batch": lambda: simple.run_batch([("x<y",)], backend=endpoint)[0],
    }[way]()
    html = state._repr_html_()
    assert "x&lt;y" in html
    assert "&lt;b&gt;&amp;" in html
    assert "<b>" not in html
    assert 'title="generated"' in html


def test_join_warns_of_names_that_the_trunk_has(recorded):
    @sgc.function
    def program(s):
        s["own"] = "trunk's"
        forks = s.fork(2)
        forks += sgc.gen("own")
        forks.join()

    with pytest.warns(SgcWarning, match=r"test_state_forks.py:\d+.*join leaves 'own' as it is"):
        state = program.run(backend=recorded())
    assert state["own"] == "trunk's"


def test_join_of_new_names_warns_of_nothing(recorded):
    @sgc.function
    def program(s):
        s += sgc.gen() + "t"
        forks = s.fork(2)
        forks += sgc.gen("own")
        forks += sgc.gen()
        forks.join()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program.run(backend=recorded())["own"] == ["reply", "reply"]
