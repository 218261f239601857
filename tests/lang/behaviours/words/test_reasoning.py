"""`separate_reasoning`: what a reply thinks is kept apart from what it says."""

from __future__ import annotations

import pytest
from tests_support import run_both

import sgc
from sgc import errors


def test_reasoning_can_be_read_while_streaming(recorded, within):
    """In SGLang reading `<x>_reasoning_content` while streaming hangs."""

    @sgc.function
    def program(s):
        s += "x" + sgc.separate_reasoning(sgc.gen("a"), "qwen3")
        s += "."

    state = program.run(backend=recorded("<think>why</think>because", chunk=2), stream=True)
    assert within(lambda: state["a_reasoning_content"]) == "why"
    assert within(lambda: state["a"]) == "because"
    assert within(state.text) == "xbecause."
    assert within(lambda: list(state.text_iter("a_reasoning_content"))) == ["why"]


@pytest.mark.parametrize("stream", [False, True])
def test_separate_reasoning_keeps_the_text_before_the_generation(recorded, stream, within):
    """SGLang cuts the text back to where the role began."""

    @sgc.function
    def program(s):
        s += sgc.user("q") + sgc.assistant_begin() + "Answer: "
        s += sgc.separate_reasoning(sgc.gen("a"), model_type="qwen3")
        s += "." + sgc.assistant_end()

    reply = "<think>why</think>because"
    state = program.run(backend=recorded(reply, chunk=1), stream=stream)
    assert within(state.text) == "<|user|>q<|end|><|assistant|>Answer: because.<|end|>"
    assert (state["a"], state["a_reasoning_content"]) == ("because", "why")
    assert state.messages()[-1]["content"] == "Answer: because."


def test_separate_reasoning_keeps_texts_around_the_generation_it_is_given(recorded):
    @sgc.function
    def program(s):
        s += sgc.assistant(
            sgc.separate_reasoning("Answer: " + sgc.gen("a") + ".", model_type="qwen3")
        )

    result = run_both(program, recorded("<think>why</think>because"))
    assert result.text() == "<|assistant|>Answer: because.<|end|>"


def test_what_is_streamed_of_a_separated_generation_adds_up_to_its_variable(recorded, within):
    """Readers rely on `"".join(text_iter(x)) == s[x]`; SGLang's streams keep the reasoning."""

    @sgc.function
    def program(s):
        s += "x" + sgc.separate_reasoning(sgc.gen("a"), model_type="qwen3") + "."

    state = program.run(backend=recorded("<think>why</think>because", chunk=2), stream=True)
    assert within(lambda: "".join(state.text_iter("a"))) == state["a"] == "because"
    assert within(lambda: "".join(state.text_iter())) == state.text() == "xbecause."


def test_separate_reasoning_splits_variable_and_text(recorded):
    @sgc.function
    def program(s):
        s += sgc.user("q")
        s += sgc.assistant(sgc.separate_reasoning(sgc.gen("a"), model_type="qwen3"))
        return s["a"], s["a_reasoning_content"]

    result = run_both(program, recorded("<think>why</think>\n\nbecause"))
    assert tuple(result.ret_value) == ("because", "why")
    assert result["a_reasoning_content"] == "why"
    assert result.text() == "<|user|>q<|end|><|assistant|>because<|end|>"
    assert result.messages()[-1] == {"role": "assistant", "content": "because"}


def test_separate_reasoning_of_a_reply_without_reasoning(recorded):
    @sgc.function
    def program(s):
        s += "x" + sgc.separate_reasoning(sgc.gen("a"), "qwen3")

    result = run_both(program, recorded("plain"))
    assert (result["a"], result["a_reasoning_content"]) == ("plain", "")


def test_separate_reasoning_of_deepseek_may_begin_unopened(recorded):
    @sgc.function
    def program(s):
        s += "x" + sgc.separate_reasoning(sgc.gen("a"), "deepseek-r1")

    result = run_both(program, recorded("why</think>because"))
    assert (result["a"], result["a_reasoning_content"]) == ("because", "why")


def test_separate_reasoning_needs_a_model_type_it_knows(recorded):
    @sgc.function
    def program(s):
        s += sgc.separate_reasoning(sgc.gen("a"))

    with pytest.raises(errors.UsageError, match="no model_type None") as caught:
        program.run(backend=recorded())
    assert caught.value.where.startswith("test_reasoning.py:")
