"""`gen` and `select`: what each appends, asks for and names."""

from __future__ import annotations

import base64
import warnings

import pytest
from lang.behaviours.shared import PNG
from tests_support import run_both

import sgc
from sgc import errors
from sgc.lang import words
from sgc.runtime.executor.interface.backend import TokenRun


def test_of_several_texts_the_first_is_appended(recorded):
    endpoint = recorded(lambda text, sampling: f"<{sampling.seed}>")

    @sgc.function
    def program(s):
        s += sgc.user("q")
        s += sgc.assistant(sgc.gen("a", n=3))

    result = run_both(program, endpoint)
    texts = result["a"]
    assert isinstance(texts, list)
    assert len(set(texts)) == 3
    assert result.text().endswith(f"<|assistant|>{texts[0]}<|end|>")
    assert result.messages()[-1]["content"] == texts[0]


def test_several_texts_of_a_server(served):
    """SGLang's own endpoint raises: the reply is a list."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", n=3, max_tokens=4)

    state = program.run(backend=served())
    assert len(state["a"]) == 3
    assert state.text() == "x" + state["a"][0]


def test_a_server_gets_the_whole_text_of_each_prompt(served, server):
    @sgc.function
    def program(s):
        s += "one" + sgc.gen("a", max_tokens=3) + "two" + sgc.gen("b", max_tokens=3)

    state = program.run(backend=served())
    state.sync()
    assert [body["text"] for body in server.requests] == ["one", f"one{state['a']}two"]


def test_an_engine_gets_generated_tokens_as_they_were(recorded):
    """SGLang tokenizes the whole prompt anew for each request."""
    endpoint = recorded("r")

    @sgc.function
    def program(s):
        s += "one" + sgc.gen("a") + "two" + sgc.gen("b")

    program.run(backend=endpoint).sync()
    assert TokenRun((ord("r"),), "r") in endpoint.asked[1].prompt


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_unnamed_generations_are_under_none(recorded, way):
    @sgc.function
    def program(s):
        s += "a" + sgc.gen()
        s += "b" + sgc.gen()
        s += "c" + sgc.select(choices=["y", "z"])

    endpoint = recorded(lambda text, sampling: text.upper())
    state = {
        "run": lambda: program.run(backend=endpoint),
        "call": lambda: program(backend=endpoint),
        "batch": lambda: program.run_batch([{}], backend=endpoint)[0],
    }[way]()
    assert state.text() == "aAbAABcy"
    assert state.variables() == {}
    assert state.stream_executor.variables == {None: "y"}


def test_f_strings_of_arguments_and_of_generated_values_are_symbolic(recorded):
    """SGLang raises for arguments, and puts a repr of generated ones into the prompt."""

    @sgc.function
    def program(s, x: str, n: int):
        s += f"{x}-{n:03d}: " + sgc.gen("a")
        s += f" [{s['a']}] {s['a']!s:>4}"

    endpoint = recorded("r")
    result = run_both(program, endpoint, x="ex", n=7)
    assert result.text() == "ex-007: r [r]    r"
    compiled = program.compile()
    assert compiled.run("other", 8, backend=endpoint).text() == "other-008: r [r]    r"


def test_no_warning_where_nothing_is_amiss(recorded):
    @sgc.function
    def program(s):
        s += "t" + sgc.gen("a", n=2)
        forks = s.fork(2)
        forks += sgc.image(base64.b64decode(base64.b64encode(PNG))) + sgc.gen("own")
        forks.join()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.run(backend=recorded()).sync()


def test_gen_appends_and_names_its_text(recorded):
    @sgc.function
    def program(s):
        s += "a" + sgc.gen("g") + "b"

    result = run_both(program, recorded("G"))
    assert (result["g"], result.text()) == ("G", "aGb")


def test_gen_with_choices_is_a_select(recorded):
    """All other parameters are left out of account, as in SGLang."""
    endpoint = recorded(prefer=lambda p, c: 1)

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g", 9, stop="!", top_p=0.5, choices=["a", "b"])

    state = program.run(backend=endpoint)
    assert (state["g"], state.text()) == ("b", "xb")
    assert endpoint.asked == []
    assert endpoint.backend.scored == [("x", ("a", "b"), False)]
    assert isinstance(sgc.gen(choices=["a"]), words.Select)


def test_gen_choices_take_the_default_method_and_no_temperature():
    expr = sgc.gen("g", choices=["a"])
    assert (expr.method, dict(expr.params)) == ("token_length_normalized", {})


def test_gen_with_no_choices_is_a_generation():
    """Only what is truthy makes a select, as in SGLang."""
    assert isinstance(sgc.gen(choices=[]), words.Gen)
    assert isinstance(sgc.gen(choices=None), words.Gen)


def test_gen_int_is_a_gen_of_dtype_int():
    assert sgc.gen_int("n", 3, stop="!") == sgc.gen("n", 3, stop="!", dtype=int)


def test_gen_string_is_a_gen_of_dtype_str():
    assert sgc.gen_string("n", 3, stop="!") == sgc.gen("n", 3, stop="!", dtype=str)


def test_gen_regex_is_checked_at_once(recorded):
    """SGLang compiles it when `gen` is called; here it is checked when it is appended."""

    @sgc.function
    def program(s):
        s += sgc.gen("g", regex="(")

    with pytest.raises(errors.UsageError, match="regex is no valid pattern"):
        program.run(backend=recorded())


def test_select_appends_the_choice_taken(recorded):
    @sgc.function
    def program(s):
        s += "x:" + sgc.select("pick", ["one", "two"]) + "."

    result = run_both(program, recorded(prefer=lambda p, c: 1))
    assert (result["pick"], result.text()) == ("two", "x:two.")


def test_select_positional_order():
    expr = sgc.select("n", ["a", "b"], 0.5, sgc.greedy_token_selection)
    assert (expr.name, expr.choices) == ("n", ("a", "b"))
    assert (expr.method, dict(expr.params)) == ("greedy_token_selection", {"temperature": 0.5})
