"""What code outside of a program reads of a state: its executor, its form, its end."""

from __future__ import annotations

import threading

import pytest
from lang.behaviours.shared import simple

import sgc


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
