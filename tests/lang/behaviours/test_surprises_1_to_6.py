"""The surprises of SGLang's front end (FRONTEND, part c), 1 to 6: kept, or mended, one by one."""

from __future__ import annotations

import threading

import pytest
from tests_support import run_both

import sgc
from sgc.errors import SgcWarning
from sgc.runtime.executor.backends.scripted import PLAIN_CHAT
from sgc.runtime.executor.interface.backend import MediaRun

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def _chat(**fields):
    from dataclasses import replace

    return replace(PLAIN_CHAT, **fields)


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
