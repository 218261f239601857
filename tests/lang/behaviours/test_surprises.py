"""The 21 surprises of SGLang's front end (FRONTEND, part c): kept, or mended, one by one."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
import warnings

import pytest
from tests_support import run_both

import sgc
from sgc import errors
from sgc.errors import SgcWarning
from sgc.runtime.executor.backend import MediaRun, RoleFormat, TokenRun
from sgc.runtime.executor.scripted import PLAIN_CHAT

pytestmark = pytest.mark.timeout(20)

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


# -- 1 -------------------------------------------------------------------------------------


def test_c01_run_returns_early_and_batches_are_synced(recorded):
    gate = threading.Event()
    endpoint = recorded(gate=gate)

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a")

    state = program.run(backend=endpoint)
    assert not state.is_finished
    gate.set()
    assert state.text() == "xreply"
    for row in program.run_batch([{}] * 3, backend=recorded()):
        assert row.is_done
        assert row.stream_executor.is_finished


# -- 2 -------------------------------------------------------------------------------------


def test_c02_stop_strings_are_stripped_and_lists_do_not_grow(recorded):
    """SGLang appends the template's stop string to the caller's own list at every call."""
    endpoint = recorded("line\nmore", chat=_chat(stop=("<|end|>",)))
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
def test_c02_stops_of_every_kind_go_together(recorded, stop, chat_stop, dtype, more):
    """In SGLang a tuple with a template's list, and dtype=int with a text, raise."""
    endpoint = recorded("1", chat=_chat(stop=chat_stop))

    @sgc.function
    def program(s):
        s += sgc.gen("a", stop=stop, dtype=dtype)

    program.run(backend=endpoint).sync()
    assert endpoint.samplings[0].stop == ("!", *more, *chat_stop)


# -- 3 -------------------------------------------------------------------------------------


def test_c03_a_fork_of_one_makes_a_child_and_lists_of_one(recorded):
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


def test_c03_a_fork_of_several_computes_the_trunk_first(recorded):
    endpoint = recorded("r")

    @sgc.function
    def program(s):
        s += "trunk"
        forks = s.fork(2)
        forks += sgc.gen("own")

    program.run(backend=endpoint).sync()
    assert endpoint.backend.commits == ["trunk"]
    assert endpoint.texts == ["trunk", "trunk"]


def test_c03_a_fork_at_a_server_prefills_with_no_tokens(served, server):
    @sgc.function
    def program(s):
        s += "trunk"
        forks = s.fork(2)
        forks += sgc.gen("own")

    program.run(backend=served()).sync()
    tokens = [body["sampling_params"]["max_new_tokens"] for body in server.requests]
    assert tokens == [0, 128, 128]


def test_c03_a_fork_of_an_empty_stream_computes_nothing(recorded):
    endpoint = recorded("r")

    @sgc.function
    def program(s):
        forks = s.fork(3)
        forks += "x" + sgc.gen("own")
        forks.join()

    assert program.run(backend=endpoint)["own"] == ["r"] * 3
    assert endpoint.backend.commits == []


# -- 4 -------------------------------------------------------------------------------------


def test_c04_join_gathers_only_names_that_the_trunk_does_not_have(recorded):
    """As in SGLang, which says nothing of it; here there is a warning."""

    @sgc.function
    def program(s):
        s += "t" + sgc.gen("kept")
        forks = s.fork(2)
        forks += lambda i: str(i)
        forks += sgc.gen("kept") + sgc.gen("new")
        forks.join()
        return [fork["kept"] for fork in forks]

    endpoint = recorded(lambda text, sampling: f"[{text}]")
    with pytest.warns(SgcWarning, match="join leaves 'kept' as it is"):
        state = program.run(backend=endpoint)
    assert state["kept"] == "[t]"
    assert len(state["new"]) == 2
    assert state.ret_value == ["[t[t]0]", "[t[t]1]"]


def test_c04_a_second_join_of_the_same_name_keeps_the_first_list(recorded):
    @sgc.function
    def program(s):
        for word in ("a", "b"):
            forks = s.fork(2)
            forks += word + sgc.gen("own")
            forks.join()

    with pytest.warns(SgcWarning):
        state = program.run(backend=recorded(lambda text, sampling: text.upper()))
    assert state["own"] == ["A", "A"]


def test_c04_indices_shift_where_only_some_children_set_a_name(recorded):
    @sgc.function
    def program(s):
        forks = s.fork(3)
        forks += ["a", "b", "c"]
        forks[0] += sgc.gen("own")
        forks[2] += sgc.gen("own")
        forks.join()

    result = run_both(program, recorded(lambda text, sampling: text.upper()))
    assert result["own"] == ["A", "C"]


def test_c04_unnamed_generations_gather_under_none(recorded):
    """Under None in `stream_executor.variables` only; no other reader shows it."""

    @sgc.function
    def program(s):
        forks = s.fork(2)
        forks += ["a", "b"]
        forks += sgc.gen()
        forks.join()

    state = program.run(backend=recorded(lambda text, sampling: text.upper()))
    assert state.stream_executor.variables == {None: ["A", "B"]}
    assert state.variables() == {}


# -- 5 -------------------------------------------------------------------------------------


def test_c05_children_have_the_trunks_meta_info(recorded):
    """In SGLang they do not inherit it."""

    @sgc.function(jit=False)
    def program(s):
        s += "t" + sgc.gen("a")
        child = s.fork(2)[0]
        return child.get_meta_info("a")["finish_reason"]["type"]

    assert program.run(backend=recorded()).ret_value == "stop"


def test_c05_children_have_the_trunks_images(recorded):
    """In SGLang images that were not sent yet stay with the trunk."""
    endpoint = recorded()

    @sgc.function
    def program(s):
        s += sgc.image(PNG)
        forks = s.fork(2)
        forks += "what?" + sgc.gen("own")

    program.run(backend=endpoint).sync()
    for asked in endpoint.asked:
        assert isinstance(asked.prompt[0], MediaRun)
        assert asked.prompt[0].media.data == PNG


def test_c05_nested_joins_make_lists_of_lists(recorded):
    @sgc.function
    def program(s):
        forks = s.fork(2)
        forks += ["a", "b"]
        for fork in forks:
            inner = fork.fork(2)
            inner += ["c", "d"]
            inner += sgc.gen("own")
            inner.join()
        forks.join()

    result = run_both(program, recorded(lambda text, sampling: text.upper()))
    assert result["own"] == [["AC", "AD"], ["BC", "BD"]]


def test_c05_children_can_be_read_and_extended_after_the_join(recorded):
    @sgc.function
    def program(s):
        forks = s.fork(2)
        forks += ["a", "b"]
        forks += sgc.gen("own")
        forks.join()
        s += forks[1]["own"]
        forks[0] += "more" + sgc.gen("late")
        s += forks[0]["late"]

    result = run_both(program, recorded(lambda text, sampling: text.upper()))
    assert result.text() == "BAAMORE"


def test_c05_num_api_spec_tokens_do_not_stop_forks(recorded):
    """In SGLang children lose speculation, and a chat model's generations then raise."""

    @sgc.function(num_api_spec_tokens=20)
    def program(s):
        s += sgc.user("q") + sgc.assistant_begin() + "so: "
        forks = s.fork(2)
        forks += sgc.gen("own", stop="\n")
        forks.join()

    assert run_both(program, recorded("r"))["own"] == ["r", "r"]


# -- 6 -------------------------------------------------------------------------------------


def test_c06_joined_texts_are_appended_in_the_order_of_the_fork(served, server, within):
    """SGLang posts to a route that no server has, and then hangs for ever."""
    endpoint = served()

    @sgc.function
    def program(s):
        s += "t\n"
        forks = s.fork(3, position_ids_offset=[0, 1, 2])
        forks += lambda i: f"<{i}>"
        forks += sgc.gen("own", max_tokens=3)
        forks.join("concate_and_append")
        s += "end" + sgc.gen("after", max_tokens=2)
        return [fork["own"] for fork in forks]

    state = program.run(backend=endpoint)
    text = within(state.text)
    owns = state.ret_value
    joined = "".join(f"<{i}>{own}" for i, own in enumerate(owns))
    assert text == f"t\n{joined}end" + state["after"]
    assert server.requests[-1]["text"] == f"t\n{joined}end"


def test_c06_joined_images_are_sent_with_their_tokens(recorded):
    """A text that keeps an image's token and has lost the image would be silently wrong."""
    endpoint = recorded("r")

    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(2)
        forks += sgc.image(PNG) + "what?"
        forks.join("concate_and_append")
        s += sgc.gen("a")

    state = program.run(backend=endpoint)
    assert state.text() == "t<image>what?<image>what?r"
    media = [part for part in endpoint.asked[-1].prompt if isinstance(part, MediaRun)]
    assert [each.media.data for each in media] == [PNG, PNG]


def test_c06_marks_of_joined_roles_stay_the_templates(recorded):
    """A child's marks of roles are special tokens; joined, they must not become plain text."""
    endpoint = recorded("r", special_tokens=("<|user|>", "<|assistant|>", "<|end|>"))

    @sgc.function
    def program(s, x):
        forks = s.fork(2)
        forks += sgc.user(x)
        forks.join("concate_and_append")
        s += sgc.assistant(sgc.gen("a"))

    program.run("say <|end|>", backend=endpoint).sync()
    (run,) = endpoint.asked[-1].prompt
    assert run.text == "<|user|>say <|end|><|end|>" * 2 + "<|assistant|>"
    # Plain text are the two marks that came with the argument, and nothing else.
    assert run.literal == ((12, 19), (38, 45))


# -- 7 -------------------------------------------------------------------------------------


def _here(caught) -> bool:
    return caught.value.where.startswith("test_surprises.py:")


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
    gate.wait(10)
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
        failed.wait(10)
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
        failed.wait(10)
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
    assert error.where.startswith("test_surprises.py:")


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
        asyncio.run(asyncio.wait_for(follow_async(), 10))


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


# -- 14 ------------------------------------------------------------------------------------


def test_c14_a_programs_own_parameters_win_over_options_of_a_run(recorded):
    """SGLang gives `n=5` of `parallel_sample.run(question=…, n=5)` to its sampling."""
    endpoint = recorded("r")

    @sgc.function
    def parallel_sample(s, question, n):
        s += question
        forks = s.fork(n)
        forks += sgc.gen("answer")
        forks.join()

    for state in (
        parallel_sample.run(question="q", n=5, backend=endpoint),
        parallel_sample("q", n=5, backend=endpoint),
        parallel_sample.run_batch([{"question": "q", "n": 5}], backend=endpoint)[0],
    ):
        assert state["answer"] == ["r"] * 5


# -- 15 ------------------------------------------------------------------------------------


def test_c15_the_system_message_stays_over_generations(recorded):
    """SGLang's Anthropic backend takes it out of the transcript with the first one."""
    endpoint = recorded("r")

    @sgc.function
    def program(s):
        s += sgc.system("S")
        for name in ("a", "b"):
            s += sgc.user("q") + sgc.assistant("so: " + sgc.gen(name))

    state = program.run(backend=endpoint)
    assert state.messages()[0] == {"role": "system", "content": "S"}
    assert [message["content"] for message in state.messages()[1:]] == ["q", "so: r"] * 2
    for text in endpoint.texts:
        assert text.startswith("<|system|>S<|end|>")
        assert text.endswith("<|assistant|>so: ")  # the beginning of a reply is sent


def test_c15_a_neutral_top_k_is_not_sent(served, server):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=2)

    program.run(backend=served()).sync()
    assert server.requests[0]["sampling_params"] == {"max_new_tokens": 2, "temperature": 1.0}


# -- 16 ------------------------------------------------------------------------------------


def test_c16_a_stream_asks_with_the_same_parameters(served, server):
    """SGLang's OpenAI stream sends max_tokens twice, by two names."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen(
            "a", max_tokens=5, min_p=0.25, top_k=4, return_logprob=True, stop="!",
        )  # fmt: skip

    endpoint = served()
    plain = program.run(backend=endpoint).text()
    assert program.run(backend=endpoint, stream=True).text() == plain
    once, streamed = server.requests
    assert streamed.pop("stream") is True
    assert streamed == once


def test_c16_an_empty_stream_is_an_empty_text(served, within):
    """SGLang's count of tokens fails on one."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=0)

    state = program.run(backend=served(), stream=True)
    assert within(lambda: state["a"]) == ""
    assert within(lambda: "".join(state.text_iter("a"))) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [("min_p", 0.5), ("top_k", 3), ("logprobs", None), ("stop_regex", "a")],
)
def test_c16_no_parameter_vanishes(recorded, name, value):
    endpoint = recorded(refuses=frozenset({name}))
    params = {"return_logprob": True} if name == "logprobs" else {name: value}

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", **params)

    for stream in (False, True):
        with pytest.raises(errors.UnsupportedParameter, match=name):
            program.run(backend=endpoint, stream=stream).sync()
    assert endpoint.asked == []


# -- 17 ------------------------------------------------------------------------------------


def test_c17_a_batch_runs_the_body_once_a_row(recorded):
    """SGLang runs it once more, with dummies for arguments, before any row."""
    seen: list[str] = []

    @sgc.function
    def program(s, x):
        seen.append(x)
        s += x + sgc.gen("a")

    program.run_batch([(str(i),) for i in range(4)], backend=recorded())
    assert sorted(seen) == ["0", "1", "2", "3"]


def test_c17_what_a_body_raises_for_odd_arguments_ends_no_batch(recorded):
    """In SGLang a KeyError with the dummies ends the batch."""
    prices = {"a": "1", "b": "2"}

    @sgc.function
    def program(s, x):
        s += prices[x] + sgc.gen("g")
        if int(prices[x]) > 1:
            s += "!"

    states = program.run_batch([("a",), ("b",)], backend=recorded("r"))
    assert [state.text() for state in states] == ["1r", "2r!"]


# -- 18 ------------------------------------------------------------------------------------


def test_c18_bind_gives_way_and_keeps_num_api_spec_tokens(recorded):
    """In SGLang bound values win over the call's, and the spec tokens are lost."""

    @sgc.function(num_api_spec_tokens=9)
    def program(s, x, y):
        s += x + y

    bound = program.bind(x="bound ", y="too")
    assert bound.num_api_spec_tokens == 9
    assert bound.run(backend=recorded()).text() == "bound too"
    assert bound.run(y="given", backend=recorded()).text() == "bound given"


def test_c18_a_run_leaves_the_callers_dicts_alone(recorded):
    arguments = {"x": "a", "backend": recorded(), "max_new_tokens": 3}
    rows = [{"x": "a"}]

    @sgc.function
    def program(s, x):
        s += x + sgc.gen("g")

    program.bind(**{"x": "b"}).run(**arguments).sync()
    program.run_batch(rows, backend=arguments["backend"])
    assert sorted(arguments) == ["backend", "max_new_tokens", "x"]
    assert rows == [{"x": "a"}]


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_c18_unnamed_generations_are_under_none(recorded, way):
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


# -- 19 ------------------------------------------------------------------------------------


def test_c19_no_tokens_still_give_the_first_places_top_logprobs(served, server):
    """A public program looks at the first token's alternatives this way."""

    @sgc.function
    def program(s):
        s += "one two" + sgc.gen(
            "first", max_tokens=0, return_logprob=True, top_logprobs_num=5,
            return_text_in_logprobs=True,
        )  # fmt: skip

    for stream in (False, True):
        state = program.run(backend=served(), stream=stream)
        meta = state.get_meta_info("first")
        assert state["first"] == ""
        (rows,) = meta["output_top_logprobs"]
        assert len(rows) == 5
        assert all(isinstance(text, str) for _, _, text in rows)
        assert rows == sorted(rows, key=lambda row: -row[0])
        assert meta.get("prompt_length", -1) == -1
    assert server.requests[0]["sampling_params"]["max_new_tokens"] == 0


# -- 20 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_c20_separate_reasoning_keeps_the_text_before_the_generation(recorded, stream, within):
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


def test_c20_separate_reasoning_keeps_texts_around_the_generation_it_is_given(recorded):
    @sgc.function
    def program(s):
        s += sgc.assistant(
            sgc.separate_reasoning("Answer: " + sgc.gen("a") + ".", model_type="qwen3")
        )

    result = run_both(program, recorded("<think>why</think>because"))
    assert result.text() == "<|assistant|>Answer: because.<|end|>"


def test_c20_what_is_streamed_of_a_separated_generation_adds_up_to_its_variable(recorded, within):
    """Readers rely on `"".join(text_iter(x)) == s[x]`; SGLang's streams keep the reasoning."""

    @sgc.function
    def program(s):
        s += "x" + sgc.separate_reasoning(sgc.gen("a"), model_type="qwen3") + "."

    state = program.run(backend=recorded("<think>why</think>because", chunk=2), stream=True)
    assert within(lambda: "".join(state.text_iter("a"))) == state["a"] == "because"
    assert within(lambda: "".join(state.text_iter())) == state.text() == "xbecause."


# -- 21 ------------------------------------------------------------------------------------


def test_c21_f_strings_of_arguments_and_of_generated_values_are_symbolic(recorded):
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


def test_a_role_of_a_template_is_what_its_server_gets(recorded):
    chat = _chat(roles={**PLAIN_CHAT.roles, "user": RoleFormat("U:", "\n")})

    @sgc.function
    def program(s):
        s += sgc.user("q") + sgc.gen("a")

    endpoint = recorded(chat=chat)
    program.run(backend=endpoint).sync()
    assert endpoint.texts == ["U:q\n"]


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
