"""The surprises of SGLang's front end (FRONTEND, part c), 7 to 13: kept, or mended, one by one."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from tests_support import run_both
from waiting import BOUND_S

import sgc
from sgc import errors
from sgc.runtime.executor.backends.scripted import PLAIN_CHAT
from sgc.runtime.executor.interface.backend import TokenRun

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def _chat(**fields):
    from dataclasses import replace

    return replace(PLAIN_CHAT, **fields)


def _breaks(*words):
    """A reply that fails where the prompt ends with one of the words."""

    def reply(text, sampling):
        if text.endswith(words):
            raise RuntimeError("backend broke")
        return "r"

    return reply


# -- 7 -------------------------------------------------------------------------------------


def _here(caught) -> bool:
    return caught.value.where.startswith("test_surprises_7_to_13.py:")


def test_c07_every_read_after_a_failure_raises_the_cause(recorded, within):
    """SGLang gives a KeyError, or the part of the text that there is."""

    @sgc.function
    def program(s):
        s += "fine" + sgc.gen("before")
        s += "bad" + sgc.gen("failed")

    gate = threading.Event()
    endpoint = recorded(_breaks("bad"), gate=gate)
    early = program.run(backend=endpoint)
    gate.set()  # it fails once the body is over
    for state in (
        early,
        program(backend=endpoint),
        program.run_batch([{}], backend=endpoint)[0],
        program.run(backend=endpoint, stream=True),
    ):
        for read in (
            state.text,
            state.sync,
            state.messages,
            lambda state=state: state["failed"],
            lambda state=state: state.get_var("failed"),
            lambda state=state: state.get_meta_info("failed"),
            lambda state=state: list(state.text_iter()),
            lambda state=state: list(state.text_iter("failed")),
            lambda state=state: state.stream_executor.text_,
        ):
            with pytest.raises(errors.ProgramError, match="backend broke") as caught:
                within(read)
            assert _here(caught)
            assert isinstance(caught.value.__cause__, RuntimeError)
        assert "backend broke" in str(within(state.error))


@pytest.mark.parametrize("way", ["run", "call", "batch", "stream"])
def test_c07_a_child_that_failed_is_an_error_of_the_whole_run(recorded, within, way):
    """Whatever fails first ends the run, so every state of it tells of it."""
    gate = threading.Event()
    endpoint = recorded(_breaks("bad"), gate=gate)

    @sgc.function
    def program(s):
        forks = s.fork(2)
        forks += ["bad", "fine"]
        forks += sgc.gen("own")
        s += "the trunk is whole"

    threading.Timer(0.03, gate.set).start()  # it fails once the body is over
    state = {
        "run": lambda: program.run(backend=endpoint),
        "call": lambda: program(backend=endpoint),
        "batch": lambda: program.run_batch([{}], backend=endpoint)[0],
        "stream": lambda: program.run(backend=endpoint, stream=True),
    }[way]()
    gate.wait(BOUND_S)
    time.sleep(0.03)
    assert "backend broke" in str(within(state.error))
    with pytest.raises(errors.ProgramError, match="backend broke"):
        within(state.sync)


def test_c07_run_gives_a_state_whenever_its_generation_fails(recorded):
    """As in SGLang `run` raises only what the body reads or raises, at whatever time it fails."""
    failed = threading.Event()

    def reply(text, sampling):
        failed.set()
        raise RuntimeError("backend broke")

    @sgc.function(jit=False)
    def program(s):
        s += "bad" + sgc.gen("failed")
        failed.wait(BOUND_S)
        time.sleep(0.02)  # the failure has been noted when the body ends

    state = program.run(backend=recorded(reply))
    assert "backend broke" in str(state.error())
    with pytest.raises(errors.ProgramError, match="backend broke"):
        state.text()


def test_c07_a_body_that_appends_after_a_failure_does_not_hang(recorded, within):
    """In SGLang the next `text()` or `sync()` hangs for ever."""
    failed = threading.Event()

    def reply(text, sampling):
        failed.set()
        raise RuntimeError("backend broke")

    @sgc.function(jit=False)
    def program(s):
        s += "bad" + sgc.gen("failed")
        failed.wait(BOUND_S)
        time.sleep(0.02)
        s += "more" + sgc.gen("more")
        s.sync()

    for run in (
        lambda: program.run(backend=recorded(reply)).text(),
        lambda: program(backend=recorded(reply)).text(),
        lambda: program.run_batch([{}], backend=recorded(reply))[0].text(),
        lambda: list(program.run(backend=recorded(reply), stream=True).text_iter()),
    ):
        failed.clear()
        with pytest.raises(errors.ProgramError, match="backend broke") as caught:
            within(run)
        assert _here(caught)


def test_c07_one_failed_row_does_not_end_a_batch(recorded):
    """In SGLang one KeyError aborts the whole batch."""

    @sgc.function
    def program(s, x):
        s += x + sgc.gen("a")
        s += s["a"] + "."

    states = program.run_batch([("fine",), ("bad",), ("fine",)], backend=recorded(_breaks("bad")))
    assert [state.error() is None for state in states] == [True, False, True]
    assert states[2].text() == "finerr."


def test_c07_a_servers_error_reaches_the_reader_with_the_line(served, server, within):
    server.fail_on = (2,)

    @sgc.function
    def program(s):
        s += "one" + sgc.gen("a", max_tokens=2)
        s += "two" + sgc.gen("b", max_tokens=2)

    state = program.run(backend=served())
    error = within(state.error)
    assert isinstance(error, errors.BackendError)
    assert "request 2 was told to fail" in str(error)
    assert error.where.startswith("test_surprises_7_to_13.py:")


# -- 8 -------------------------------------------------------------------------------------


def test_c08_an_exception_in_the_body_of_a_streaming_run_reaches_readers(recorded, within):
    """SGLang prints it in the thread's hook; `text_iter` just ends and `error()` is None."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a")
        s.sync()
        raise LookupError("the body broke")

    state = program.run(backend=recorded("r"), stream=True)
    seen: list[str] = []

    def follow():
        for delta in state.text_iter():
            seen.append(delta)

    with pytest.raises(LookupError, match="the body broke"):
        within(follow)
    assert "".join(seen) == "xr"
    assert isinstance(within(state.error), LookupError)
    for read in (state.text, lambda: list(state.text_iter("b")), lambda: state["b"]):
        with pytest.raises(LookupError, match="the body broke"):
            within(read)

    async def follow_async():
        return [delta async for delta in state.text_async_iter()]

    with pytest.raises(LookupError, match="the body broke"):
        asyncio.run(asyncio.wait_for(follow_async(), BOUND_S))


def test_c08_an_exception_while_a_generation_is_under_way_reaches_readers(recorded, within):
    gate = threading.Event()

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a")
        raise LookupError("the body broke")

    state = program.run(backend=recorded("r", gate=gate), stream=True)
    for read in (lambda: list(state.text_iter()), lambda: list(state.text_iter("a")), state.text):
        with pytest.raises(LookupError, match="the body broke"):
            within(read)
    gate.set()


def test_c08_a_var_scope_can_be_followed_and_read_while_streaming(recorded, within):
    """In SGLang `text_iter` of it hangs, and so does reading it."""

    @sgc.function
    def program(s):
        with s.var_scope("scope"):
            s += "in " + sgc.gen("a")
        s += "out"

    state = program.run(backend=recorded("r", chunk=1), stream=True)
    assert within(lambda: state["scope"]) == "in r"
    assert within(lambda: list(state.text_iter("scope"))) == ["in r"]


def test_c08_reasoning_can_be_read_while_streaming(recorded, within):
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


def test_c08_several_texts_of_one_generation_while_streaming(recorded, within):
    """In SGLang n above 1 is not supported in a stream."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", n=3)
        s += "."

    state = program.run(backend=recorded("r", chunk=1), stream=True)
    assert within(lambda: "".join(state.text_iter())) == "xr."
    assert state["a"] == ["r"] * 3


# -- 9 -------------------------------------------------------------------------------------


def test_c09_of_several_texts_the_first_is_appended(recorded):
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


def test_c09_several_texts_of_a_server(served):
    """SGLang's own endpoint raises: the reply is a list."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", n=3, max_tokens=4)

    state = program.run(backend=served())
    assert len(state["a"]) == 3
    assert state.text() == "x" + state["a"][0]


# -- 10 ------------------------------------------------------------------------------------


def test_c10_select_scores_prompt_and_choice_together_from_two_tokens_before(served, server):
    @sgc.function
    def program(s):
        s += "Is it true? Answer:" + sgc.select("a", ["True", "False", " Perhaps so"])

    state = program.run(backend=served(), temperature=0.9)
    assert state["a"] in ("True", "False", " Perhaps so")
    prefill, scored = server.requests
    assert prefill["sampling_params"]["max_new_tokens"] == 0
    assert prefill["text"] == "Is it true? Answer:"
    assert scored["text"] == ["Is it true? Answer:" + c for c in ("True", "False", " Perhaps so")]
    assert scored["logprob_start_len"] == 4  # of the prompt's six tokens the last two
    assert scored["return_logprob"] is True
    for body in server.requests:
        assert body["sampling_params"]["temperature"] == 0.0  # the run's is for generations


def test_c10_the_choice_is_appended_as_it_is(recorded):
    @sgc.function
    def program(s):
        s += "Answer:" + sgc.select("a", ["True", " False"]) + "."

    assert run_both(program, recorded()).text() == "Answer:True."
    assert run_both(program, recorded(prefer=lambda p, c: 1)).text() == "Answer: False."


def test_c10_a_select_with_a_temperature_draws(recorded):
    """SGLang asserts that it is 0."""

    @sgc.function
    def program(s):
        s += "x" + sgc.select("a", ["y", "z"], temperature=5.0)

    found = {program.run(backend=recorded(), seed=seed)["a"] for seed in range(40)}
    assert found == {"y", "z"}


# -- 11 ------------------------------------------------------------------------------------


def test_c11_a_server_gets_the_whole_text_of_each_prompt(served, server):
    @sgc.function
    def program(s):
        s += "one" + sgc.gen("a", max_tokens=3) + "two" + sgc.gen("b", max_tokens=3)

    state = program.run(backend=served())
    state.sync()
    assert [body["text"] for body in server.requests] == ["one", f"one{state['a']}two"]


def test_c11_an_engine_gets_generated_tokens_as_they_were(recorded):
    """SGLang tokenizes the whole prompt anew for each request."""
    endpoint = recorded("r")

    @sgc.function
    def program(s):
        s += "one" + sgc.gen("a") + "two" + sgc.gen("b")

    program.run(backend=endpoint).sync()
    assert TokenRun((ord("r"),), "r") in endpoint.asked[1].prompt


# -- 12 ------------------------------------------------------------------------------------


def test_c12_an_empty_system_message_replaces_the_templates_own(recorded):
    chat = _chat(default_system="Be good.")

    @sgc.function
    def plain(s):
        s += sgc.user("q")

    @sgc.function
    def empty(s):
        s += sgc.system()
        s += sgc.user("q")

    @sgc.function
    def own(s):
        s += sgc.system("Mine.") + sgc.user("q") + sgc.system("Again.")

    state = plain.run(backend=recorded(chat=chat))
    assert state.text() == "<|system|>Be good.<|end|><|user|>q<|end|>"
    assert state.messages()[0] == {"role": "system", "content": "Be good."}
    assert empty.run(backend=recorded(chat=chat)).text() == "<|system|><|end|><|user|>q<|end|>"
    assert own.run(backend=recorded(chat=chat)).text() == (
        "<|system|>Mine.<|end|><|user|>q<|end|><|system|>Again.<|end|>"
    )


# -- 13 ------------------------------------------------------------------------------------


def test_c13_appending_what_a_role_method_gave_appends_nothing_more(recorded):
    """SGLang appends it twice."""

    @sgc.function
    def program(s):
        s += s.user("hi")

    assert run_both(program, recorded()).text() == "<|user|>hi<|end|>"


def test_c13_a_text_appended_to_a_group_goes_to_every_child(recorded):
    """SGLang raises."""

    @sgc.function
    def program(s):
        forks = s.fork(2)
        forks += "all"
        return [fork.text() for fork in forks]

    assert run_both(program, recorded()).ret_value == ["all", "all"]


def test_c13_nested_roles_are_an_error_at_their_line(recorded):
    """SGLang asserts in its worker thread."""

    @sgc.function
    def program(s):
        with s.user():
            s += sgc.assistant("a")

    with pytest.raises(errors.UsageError, match="roles do not nest") as caught:
        program.run(backend=recorded())
    assert _here(caught)


def test_c13_messages_are_left_stripped_and_text_is_not(recorded):
    @sgc.function
    def program(s):
        s += sgc.user("\n q")

    result = run_both(program, recorded())
    assert result.messages() == [{"role": "user", "content": "q"}]
    assert result.text() == "<|user|>\n q<|end|>"
