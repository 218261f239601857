"""States: what is appended to them, set in them and read from them."""

from __future__ import annotations

import threading

import pytest
from lang.behaviours.shared import simple
from tests_support import run_both

import sgc
from sgc import errors


def _by_length(text, sampling):
    return f"<{len(text)}>"


# -- appending -----------------------------------------------------------------------------


def test_append_of_texts_and_expressions(recorded):
    @sgc.function
    def program(s):
        s += "a"
        s += sgc.gen("g")
        s += "b" + sgc.gen("h") + "c"
        s += sgc.gen("i") + "d"

    assert run_both(program, recorded(_by_length)).text() == "a<1>b<5>c<9>d"


@pytest.mark.parametrize("value", [None, 5, 1.5, ["a"], object()])
def test_append_of_anything_else_is_an_error_at_its_line(recorded, value):
    """SGLang raises for None only; other kinds fail in its worker thread."""

    @sgc.function
    def program(s):
        s += value

    with pytest.raises(errors.UsageError, match="only text and expressions") as caught:
        program.run(backend=recorded())
    assert caught.value.where.startswith("test_state.py:")


# -- variables -----------------------------------------------------------------------------


def test_reading_a_variable_waits_for_it(recorded, within):
    gate = threading.Event()
    state = simple.run("x", backend=recorded("r", gate=gate))
    reader = threading.Thread(target=lambda: found.append(state["a"]), daemon=True)
    found: list[str] = []
    reader.start()
    reader.join(0.05)
    assert reader.is_alive()
    gate.set()
    reader.join(10)
    assert found == ["r"]


def test_reading_an_unknown_variable_is_a_key_error_at_once(recorded):
    gate = threading.Event()
    state = simple.run("x", backend=recorded(gate=gate))
    with pytest.raises(KeyError, match="no variable 'nope'"):
        state["nope"]
    with pytest.raises(KeyError, match="nope"):
        state.get_var("nope")
    gate.set()


def test_setting_a_variable(recorded):
    @sgc.function
    def program(s):
        s += sgc.gen("a")
        s["b"] = s["a"] + "!"
        s.set_var("c", s.get_var("b") + "?")
        s += s["c"]

    result = run_both(program, recorded("r"))
    assert (result["b"], result["c"], result.text()) == ("r!", "r!?", "rr!?")


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_setting_a_variable_after_the_run(recorded, way):
    """Programs do `state["x"] = int(state["x"])`."""
    state = {
        "run": lambda: simple.run("x", backend=recorded("42")),
        "call": lambda: simple("x", backend=recorded("42")),
        "batch": lambda: simple.run_batch([("x",)], backend=recorded("42"))[0],
    }[way]()
    state["a"] = int(state["a"])
    assert state["a"] == state.get_var("a") == 42
    state.set_var("new", [1])
    assert state["new"] == [1]
    assert "new" in state


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_in_tells_whether_a_variable_is_set(recorded, way):
    state = {
        "run": lambda: simple.run("x", backend=recorded()),
        "call": lambda: simple("x", backend=recorded()),
        "batch": lambda: simple.run_batch([("x",)], backend=recorded())[0],
    }[way]()
    state.sync()
    assert "a" in state
    assert "b" not in state


def test_in_inside_a_program(recorded):
    @sgc.function
    def program(s):
        s += "no" if "a" in s else "yes"
        s += sgc.gen("a")
        s += "yes" if "a" in s else "no"

    assert run_both(program, recorded("r")).text() == "yesryes"


def test_in_does_not_wait(recorded):
    gate = threading.Event()
    state = simple.run("x", backend=recorded(gate=gate))
    assert "a" in state
    assert "b" not in state
    gate.set()


# -- text, messages, sync, error -----------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_text_messages_sync_error_and_ret_value(recorded, way):
    @sgc.function
    def program(s):
        s += sgc.user("q")
        s += sgc.assistant(sgc.gen("a"))
        return {"answer": s["a"]}

    endpoint = recorded("r")
    state = {
        "run": lambda: program.run(backend=endpoint),
        "call": lambda: program(backend=endpoint),
        "batch": lambda: program.run_batch([{}], backend=endpoint)[0],
    }[way]()
    assert state.sync() is None
    assert state.error() is None
    assert state.text() == "<|user|>q<|end|><|assistant|>r<|end|>"
    expected = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]
    assert state.messages() == expected
    assert state.ret_value == {"answer": "r"}


def test_text_inside_a_program_waits(recorded):
    @sgc.function
    def program(s):
        s += "a" + sgc.gen("g")
        s += f"[{s.text()}]"

    assert run_both(program, recorded("r")).text() == "ar[ar]"


def test_messages_inside_a_program(recorded):
    @sgc.function(jit=False)
    def program(s):
        s += sgc.user("q")
        return s.messages()

    state = program.run(backend=recorded())
    assert state.ret_value == [{"role": "user", "content": "q"}]


def test_messages_leave_out_what_has_not_ended(recorded):
    """SGLang adds a message when its role ends."""

    @sgc.function
    def program(s):
        s += "outside" + sgc.user("q")
        s += sgc.assistant_begin() + "not over"

    result = run_both(program, recorded())
    assert result.messages() == [{"role": "user", "content": "q"}]
    assert result.text().endswith("not over")


def test_messages_contents_are_left_stripped_and_the_text_is_not(recorded):
    @sgc.function
    def program(s):
        s += sgc.user("  \n q \n")

    result = run_both(program, recorded())
    assert result.messages() == [{"role": "user", "content": "q \n"}]
    assert result.text() == "<|user|>  \n q \n<|end|>"


def test_sync_inside_a_program_waits_for_what_was_appended(recorded):
    endpoint = recorded("r")
    asked = []

    @sgc.function(jit=False)
    def program(s):
        s += "a" + sgc.gen("g")
        s.sync()
        asked.append(len(endpoint.asked))

    program.run(backend=endpoint).sync()
    assert asked == [1]


def test_error_gives_what_ended_the_run(recorded):
    def reply(text, sampling):
        raise RuntimeError("backend broke")

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a")

    gate = threading.Event()
    early = program.run(backend=recorded(reply, gate=gate))
    gate.set()  # it fails once the body is over
    for state in (
        early,
        program(backend=recorded(reply)),
        program.run_batch([{}], backend=recorded(reply))[0],
    ):
        error = state.error()
        assert isinstance(error, errors.ProgramError)
        assert "backend broke" in str(error)
        assert error.where.startswith("test_state.py:")


# -- meta info -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_get_meta_info(served, way):
    endpoint = served()
    state = {
        "run": lambda: simple.run("x", backend=endpoint, max_new_tokens=3),
        "call": lambda: simple("x", backend=endpoint, max_new_tokens=3),
        "batch": lambda: simple.run_batch([("x",)], backend=endpoint, max_new_tokens=3)[0],
    }[way]()
    meta = state.get_meta_info("a")
    assert meta["finish_reason"]["type"] in ("length", "stop")
    assert 1 <= meta["completion_tokens"] <= 3
    assert meta["prompt_tokens"] == 2
    assert "cached_tokens" in meta
    assert state.get_meta_info("nope") is None


def test_get_meta_info_waits_and_is_none_for_what_was_not_generated(recorded):
    gate = threading.Event()

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", stop="!")
        s["own"] = "value"
        with s.var_scope("scope"):
            s += "y"

    state = program.run(backend=recorded("r!r", gate=gate))
    assert state.get_meta_info("own") is None
    assert state.get_meta_info("scope") is None
    assert state.get_meta_info("nope") is None
    threading.Timer(0.02, gate.set).start()
    assert state.get_meta_info("a")["finish_reason"] == {"type": "stop", "matched": "!"}


def test_get_meta_info_has_logprob_rows(served):
    @sgc.function
    def program(s):
        s += "one two three"
        s += sgc.gen(
            "a", max_tokens=3, return_logprob=True, logprob_start_len=0, top_logprobs_num=2,
            return_text_in_logprobs=True, ignore_eos=True,
        )  # fmt: skip

    meta = program.run(backend=served()).get_meta_info("a")
    assert [row[2] for row in meta["input_token_logprobs"]] == ["one", " two", " three"]
    assert meta["input_token_logprobs"][0][0] is None
    assert len(meta["output_token_logprobs"]) == 3
    for rows in meta["output_top_logprobs"]:
        assert len(rows) == 2
    logprob, token, text = meta["output_token_logprobs"][0]
    assert logprob < 0
    assert isinstance(token, int)
    assert isinstance(text, str)
    assert len(meta["input_top_logprobs"]) == 3


def test_get_meta_info_of_several_texts_is_a_list(recorded):
    @sgc.function
    def program(s):
        s += sgc.gen("a", n=3)

    assert len(program.run(backend=recorded()).get_meta_info("a")) == 3


def test_get_meta_info_in_a_body_whose_calls_are_interpreted(recorded):
    """What cannot be compiled is interpreted: `messages()` and meta info inside a program."""

    @sgc.function
    def program(s):
        s += sgc.user("q") + sgc.gen("a")
        s["n"] = len(s.messages())
        s["why"] = s.get_meta_info("a")["finish_reason"]["type"]

    for state in (program.run(backend=recorded()), program(backend=recorded())):
        assert (state["n"], state["why"]) == (1, "stop")


def test_get_meta_info_of_a_select(recorded):
    @sgc.function
    def program(s):
        s += "x" + sgc.select("a", ["y", "z"])

    meta = program.run(backend=recorded(prefer=lambda p, c: 1)).get_meta_info("a")
    assert len(meta["input_token_logprobs"]) == 2
    assert len(meta["output_token_logprobs"]) == 2
    first, second = meta["normalized_prompt_logprobs"]
    assert second > first
