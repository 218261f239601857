"""Runs on a backend that a program's author wrote: streams, forks, batches, errors."""

from __future__ import annotations

import threading

import pytest
from compat.own import made

from sgc.errors import BackendError, ProgramError, UnsupportedParameter


def test_streams_come_in_its_pieces(stand_in):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a")

    state = program.run(backend=own, stream=True)
    assert list(state.text_iter("a")) == ["a", "b", "c"]
    assert state.text() == "xabc"
    assert state.get_meta_info("a") == {"index": 3}
    assert [hook for hook, _ in own.calls][:1] == ["generate_stream"]


def test_forks_commit_first_and_have_streams_of_their_own(stand_in):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s):
        s += "trunk"
        forks = s.fork(2)
        forks += lambda i: f" {i}" + sgl.gen("a")
        forks.join()
        s += "|" + sgl.gen("b")

    state = program.run(backend=own)
    assert state["a"] == [" reply 7", " reply 7"]
    state.sync()
    assert own.calls[0] == ("commit", "trunk")
    assert sorted(text for hook, text in own.calls if hook == "generate") == [
        "trunk 0", "trunk 1", "trunk|",
    ]  # fmt: skip


def test_a_batch_is_asked_row_by_row(stand_in):
    """At temperature 0 too: whether two equal requests are one is not ours to say."""
    sgl, own = stand_in, made(stand_in)
    body_runs = []

    @sgl.function
    def program(s, x):
        body_runs.append(x)
        s += "x" * 70 + sgl.gen("a", temperature=0)

    states = program.run_batch([{"x": 1}] * 5, backend=own, num_threads=3)
    assert [state["a"] for state in states] == [" reply 70"] * 5
    assert sum(hook == "generate" for hook, _ in own.calls) == 5


def test_a_batchs_common_beginning_is_kept(stand_in):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s, x: str):
        s += "y" * 70 + x + sgl.gen("a")

    program.run_batch([{"x": "1"}, {"x": "2"}], backend=own)
    assert own.calls[0] == ("cache_prefix", "y" * 70)
    own.calls.clear()
    program.cache(own)
    assert own.calls == [("cache_prefix", "y" * 70)]
    own.calls.clear()
    sgl.global_config.enable_precache_with_tracing = False
    try:
        program.run_batch([("1",), ("2",)], backend=own)
    finally:
        sgl.global_config.enable_precache_with_tracing = True
    assert "cache_prefix" not in [hook for hook, _ in own.calls]


def test_calls_go_on_side_by_side(stand_in):
    """Each waits for all: on fewer threads it would not end."""
    barrier = threading.Barrier(40)

    def generate(self, s, sampling_params):
        barrier.wait(10)
        return "ok", {}

    sgl, own = stand_in, made(stand_in, generate=generate)

    @sgl.function
    def program(s):
        forks = s.fork(40)
        forks += sgl.gen("a")
        forks.join()

    assert program.run(backend=own)["a"] == ["ok"] * 40


def test_its_errors_are_the_runs(stand_in):
    def generate(self, s, sampling_params):
        raise KeyError("nothing there")

    sgl, own = stand_in, made(stand_in, generate=generate)

    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a")

    state = program.run(backend=own)
    with pytest.raises(ProgramError, match="KeyError: 'nothing there'") as caught:
        state["a"]
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.where.startswith("test_own_backends_runs.py:")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ("text", "must give a pair of a text and its meta info"),
        ((3, {}), "must give a text, and meta info"),
        ((["a", "b"], {}), "must give a text, and meta info"),
    ],
)
def test_what_is_no_reply_is_told(stand_in, found, words):
    sgl, own = stand_in, made(stand_in, generate=lambda self, s, sampling_params: found)

    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a")

    with pytest.raises(BackendError, match=words):
        program.run(backend=own).text()


def test_what_sglang_has_no_parameter_for_is_refused(stand_in):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a", repetition_penalty=1.5)

    with pytest.raises(UnsupportedParameter, match="cannot honour repetition_penalty"):
        program.run(backend=own).text()


def test_speculation_where_it_says_that_it_completes_text(stand_in):
    def generate(self, s, sampling_params):
        self.params.append(sampling_params)
        return " Ada\nAge: 36\nJob: baker\n", {"completion_tokens": 12}

    sgl, own = stand_in, made(stand_in, generate=generate, is_chat_model=False)

    @sgl.function(num_api_spec_tokens=64)
    def program(s):
        s += "Name:" + sgl.gen("a", stop="\n") + "\nAge:" + sgl.gen("b", stop="\n")

    state = program.run(backend=own)
    assert (state["a"], state["b"]) == (" Ada", " 36")
    assert [(params.max_new_tokens, params.stop) for params in own.params] == [(128, [])]
