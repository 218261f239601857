"""Stop strings: where they come from, and what is left of them."""

from __future__ import annotations

import pytest
from lang.behaviours.shared import chat_with, one_gen

import sgc


def test_stop_strings_are_stripped_and_lists_do_not_grow(recorded):
    """SGLang appends the template's stop string to the caller's own list at every call."""
    endpoint = recorded("line\nmore", chat=chat_with(stop=("<|end|>",)))
    stops = ["\n"]

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", stop=stops) + "\n"
        s += sgc.gen("b", stop=stops) + "\n"

    state = program.run(backend=endpoint)
    assert (state.text(), state["a"]) == ("xline\nline\n", "line")
    program.run(backend=endpoint, stop=stops).sync()
    program.run_batch([{}] * 2, backend=endpoint, stop=stops)
    assert stops == ["\n"]
    assert {sampling.stop for sampling in endpoint.samplings} == {("\n", "<|end|>")}


@pytest.mark.parametrize("stop", ["!", ("!",), ["!"]])
@pytest.mark.parametrize("chat_stop", [(), ("<|end|>",), ("<|end|>", "</s>")])
@pytest.mark.parametrize(("dtype", "more"), [(None, ()), (int, (" ", "\n")), (str, ())])
def test_stops_of_every_kind_go_together(recorded, stop, chat_stop, dtype, more):
    """In SGLang a tuple with a template's list, and dtype=int with a text, raise."""
    endpoint = recorded("1", chat=chat_with(stop=chat_stop))

    @sgc.function
    def program(s):
        s += sgc.gen("a", stop=stop, dtype=dtype)

    program.run(backend=endpoint).sync()
    assert endpoint.samplings[0].stop == ("!", *more, *chat_stop)


def test_keep_stop_keeps_the_stop_string(recorded):
    assert one_gen(stop="!", keep_stop=True).run(backend=recorded("a!b"))["g"] == "a!"
    assert one_gen(stop="!").run(backend=recorded("a!b"))["g"] == "a"
