"""Texts of states as they come."""

from __future__ import annotations

import asyncio
import threading

import pytest
from lang.behaviours.shared import simple, tagged
from waiting import BOUND_S

import sgc
from sgc import errors

# -- text_iter -----------------------------------------------------------------------------


@sgc.function
def streamed(s):
    s += "a"
    s += sgc.gen("first")
    s += "b"
    s += sgc.gen("second")
    s += "."


def test_text_iter_gives_deltas_that_add_up(recorded):
    state = streamed.run(backend=recorded(tagged, chunk=1), stream=True)
    deltas = list(state.text_iter())
    assert "".join(deltas) == state.text() == "aAAAAbBBBB."
    assert len(deltas) >= 8


def test_text_iter_of_a_variable(recorded):
    state = streamed.run(backend=recorded(tagged, chunk=1), stream=True)
    assert list(state.text_iter("second")) == ["B"] * 4
    assert list(state.text_iter("first")) == ["A"] * 4
    assert list(state.text_iter(var_name="first")) == ["A"] * 4


def test_text_iter_comes_before_the_run_is_over(recorded):
    gate = threading.Event()

    @sgc.function
    def program(s):
        s += "constant"
        s += sgc.gen("a")

    state = program.run(backend=recorded(gate=gate), stream=True)
    deltas = state.text_iter()
    assert next(deltas) == "constant"
    assert not state.is_finished
    gate.set()
    assert "".join(deltas) == "reply"


def test_text_iter_of_a_name_that_is_not_declared_yet_waits(recorded, within):
    """SGLang spins until the name is there."""
    gate = threading.Event()

    @sgc.function
    def program(s):
        gate.wait(BOUND_S)
        s += "x" + sgc.gen("late")

    state = program.run(backend=recorded("r", chunk=1), stream=True)
    deltas = state.text_iter("late")
    threading.Timer(0.02, gate.set).start()
    assert within(lambda: list(deltas)) == ["r"]


def test_text_iter_of_an_unknown_name_is_an_error(recorded, within):
    """SGLang yields one empty text."""
    state = streamed.run(backend=recorded(tagged), stream=True)
    with pytest.raises(KeyError, match="no variable 'nope'"):
        within(lambda: list(state.text_iter("nope")))


@pytest.mark.parametrize("names", [None, "first"])
def test_text_iter_of_a_run_that_does_not_stream_yields_once(recorded, names):
    endpoint = recorded(tagged, chunk=1)
    expected = ["aAAAAbBBBB."] if names is None else ["AAAA"]
    for state in (
        streamed.run(backend=endpoint),
        streamed(backend=endpoint),
        streamed.run_batch([{}], backend=endpoint)[0],
    ):
        assert list(state.text_iter(names)) == expected


def test_text_iter_by_several_readers(recorded):
    state = streamed.run(backend=recorded(tagged, chunk=1), stream=True)
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append("".join(state.text_iter()))) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == ["aAAAAbBBBB."] * 5


def test_text_iter_of_several_variables_istagged(recorded):
    state = streamed.run(backend=recorded(tagged, chunk=2), stream=True)
    pieces = list(state.text_iter(["first", "second"]))
    assert all(isinstance(piece, sgc.StreamedText) for piece in pieces)
    assert [(piece.name, piece.text) for piece in pieces] == [
        ("first", "AA"), ("first", "AA"), ("second", "BB"), ("second", "BB"),
    ]  # fmt: skip


def test_text_iter_of_forks_istagged_with_their_streams(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(3)
        forks += ["a", "b", "c"]
        forks += sgc.gen("own")
        forks.join()
        s += "z" + sgc.gen("last")

    state = program.run(backend=recorded(tagged, chunk=2), stream=True)
    found: dict[tuple[str, str], str] = {}
    for piece in state.text_iter(["own", "last"]):
        key = (piece.stream, piece.name)
        found[key] = found.get(key, "") + piece.text
    assert found == {
        ("program/:0.0", "own"): "AAAA",
        ("program/:0.1", "own"): "BBBB",
        ("program/:0.2", "own"): "CCCC",
        ("program", "last"): "ZZZZ",
    }


def test_text_iter_of_a_fork_alone(recorded):
    states = []

    @sgc.function(jit=False)
    def program(s):
        s += "t"
        forks = s.fork(2)
        states.extend(forks)
        forks += ["a", "b"]
        forks += sgc.gen("own")
        forks.join()

    program.run(backend=recorded(tagged, chunk=1), stream=True).sync()
    assert "".join(states[1].text_iter()) == states[1].text() == "tbBBBB"
    assert list(states[1].text_iter("own")) == ["B"] * 4


def test_text_iter_of_a_var_scope_yields_it_once(recorded, within):
    """In SGLang it hangs for ever."""

    @sgc.function
    def program(s):
        s += "x"
        with s.var_scope("scope"):
            s += "in " + sgc.gen("a")
        s += "y"

    state = program.run(backend=recorded("r", chunk=1), stream=True)
    assert within(lambda: list(state.text_iter("scope"))) == ["in r"]


def test_text_iter_of_a_select(recorded):
    @sgc.function
    def program(s):
        s += "x" + sgc.select("pick", ["one", "two"])

    state = program.run(backend=recorded(prefer=lambda p, c: 1), stream=True)
    assert "".join(state.text_iter("pick")) == "two"


def test_text_iter_keeps_its_tail_at_a_server(served):
    """SGLang's `text_iter(var)` can lose its tail."""
    endpoint = served()
    for _ in range(5):
        state = simple.run("x", backend=endpoint, stream=True)
        assert "".join(state.text_iter("a")) == state["a"]
        assert "".join(state.text_iter()) == state.text()


# -- text_async_iter -----------------------------------------------------------------------


async def _all(iterator):
    return [found async for found in iterator]


def _run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, BOUND_S))


def test_text_async_iter_gives_deltas(recorded):
    state = streamed.run(backend=recorded(tagged, chunk=1), stream=True)
    assert _run(_all(state.text_async_iter("second"))) == ["B"] * 4
    assert "".join(_run(_all(state.text_async_iter()))) == "aAAAAbBBBB."
    assert _run(_all(state.text_async_iter(var_name="first"))) == ["A"] * 4


def test_text_async_iter_with_meta_data(served):
    state = simple.run("x", backend=served(), stream=True, max_new_tokens=5, ignore_eos=True)
    pairs = _run(_all(state.text_async_iter("a", return_meta_data=True)))
    assert "".join(text for text, _ in pairs) == state["a"]
    assert pairs[-1][1]["completion_tokens"] == 5
    assert all(isinstance(meta, dict) for _, meta in pairs)


def test_text_async_iter_gives_meta_data_with_every_piece(served):
    """As in SGLang each pair has what the server said with that piece."""
    state = simple.run("x", backend=served(), stream=True, max_new_tokens=4, ignore_eos=True)
    pairs = _run(_all(state.text_async_iter("a", return_meta_data=True)))
    assert [meta.get("completion_tokens") for _, meta in pairs] == [1, 2, 3, 4]


def test_text_async_iter_with_log_probabilities(served):
    """SGLang 0.5.23 merges lists of log-probabilities: the last meta data has them all."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=4, return_logprob=True, ignore_eos=True)

    state = program.run(backend=served(), stream=True)
    pairs = _run(_all(state.text_async_iter("a", return_meta_data=True)))
    assert len(pairs[-1][1]["output_token_logprobs"]) == 4


@pytest.mark.parametrize("with_meta", [True, False])
def test_text_async_iter_of_a_run_that_does_not_stream_yields_once(recorded, with_meta):
    endpoint = recorded(tagged, chunk=1)
    for state in (streamed.run(backend=endpoint), streamed(backend=endpoint)):
        found = _run(_all(state.text_async_iter("first", with_meta)))
        texts = [text for text, _ in found] if with_meta else found
        assert texts == ["AAAA"]


def test_text_async_iter_of_several_variables_and_forks(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(2)
        forks += ["a", "b"]
        forks += sgc.gen("own")

    state = program.run(backend=recorded(tagged, chunk=2), stream=True)
    pieces = _run(_all(state.text_async_iter(["own"])))
    assert sorted((p.stream, p.name, p.text) for p in pieces) == [
        ("program/:0.0", "own", "AA"), ("program/:0.0", "own", "AA"),
        ("program/:0.1", "own", "BB"), ("program/:0.1", "own", "BB"),
    ]  # fmt: skip


def test_text_async_iter_of_a_var_scope_yields_it_once(recorded):
    @sgc.function
    def program(s):
        with s.var_scope("scope"):
            s += "in " + sgc.gen("a")

    state = program.run(backend=recorded("r", chunk=1), stream=True)
    assert _run(_all(state.text_async_iter("scope"))) == ["in r"]


def test_text_async_iter_raises_what_ended_the_run(recorded):
    def reply(text, sampling):
        raise RuntimeError("backend broke")

    state = streamed.run(backend=recorded(reply), stream=True)
    for names in (None, "first", "second"):
        with pytest.raises(errors.ProgramError, match="backend broke"):
            _run(_all(state.text_async_iter(names)))


def test_a_var_scope_can_be_followed_and_read_while_streaming(recorded, within):
    """In SGLang `text_iter` of it hangs, and so does reading it."""

    @sgc.function
    def program(s):
        with s.var_scope("scope"):
            s += "in " + sgc.gen("a")
        s += "out"

    state = program.run(backend=recorded("r", chunk=1), stream=True)
    assert within(lambda: state["scope"]) == "in r"
    assert within(lambda: list(state.text_iter("scope"))) == ["in r"]


def test_several_texts_of_one_generation_while_streaming(recorded, within):
    """In SGLang n above 1 is not supported in a stream."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", n=3)
        s += "."

    state = program.run(backend=recorded("r", chunk=1), stream=True)
    assert within(lambda: "".join(state.text_iter())) == "xr."
    assert state["a"] == ["r"] * 3
