"""Joins of forks: which names are gathered, and what is appended."""

from __future__ import annotations

import warnings

import pytest
from lang.behaviours.shared import PNG, tagged
from tests_support import run_both

import sgc
from sgc import errors
from sgc.errors import SgcWarning
from sgc.runtime.executor.interface.backend import MediaRun


def test_join_gathers_only_names_that_the_trunk_does_not_have(recorded):
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


def test_a_second_join_of_the_same_name_keeps_the_first_list(recorded):
    @sgc.function
    def program(s):
        for word in ("a", "b"):
            forks = s.fork(2)
            forks += word + sgc.gen("own")
            forks.join()

    with pytest.warns(SgcWarning):
        state = program.run(backend=recorded(lambda text, sampling: text.upper()))
    assert state["own"] == ["A", "A"]


def test_indices_shift_where_only_some_children_set_a_name(recorded):
    @sgc.function
    def program(s):
        forks = s.fork(3)
        forks += ["a", "b", "c"]
        forks[0] += sgc.gen("own")
        forks[2] += sgc.gen("own")
        forks.join()

    result = run_both(program, recorded(lambda text, sampling: text.upper()))
    assert result["own"] == ["A", "C"]


def test_unnamed_generations_gather_under_none(recorded):
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


def test_children_have_the_trunks_meta_info(recorded):
    """In SGLang they do not inherit it."""

    @sgc.function(jit=False)
    def program(s):
        s += "t" + sgc.gen("a")
        child = s.fork(2)[0]
        return child.get_meta_info("a")["finish_reason"]["type"]

    assert program.run(backend=recorded()).ret_value == "stop"


def test_children_have_the_trunks_images(recorded):
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


def test_nested_joins_make_lists_of_lists(recorded):
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


def test_children_can_be_read_and_extended_after_the_join(recorded):
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


def test_num_api_spec_tokens_do_not_stop_forks(recorded):
    """In SGLang children lose speculation, and a chat model's generations then raise."""

    @sgc.function(num_api_spec_tokens=20)
    def program(s):
        s += sgc.user("q") + sgc.assistant_begin() + "so: "
        forks = s.fork(2)
        forks += sgc.gen("own", stop="\n")
        forks.join()

    assert run_both(program, recorded("r"))["own"] == ["r", "r"]


def test_joined_texts_are_appended_in_the_order_of_the_fork(served, server, within):
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


def test_joined_images_are_sent_with_their_tokens(recorded):
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


def test_marks_of_joined_roles_stay_the_templates(recorded):
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


def test_join_gathers_lists_in_order(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(3)
        forks += ["a", "b", "c"]
        forks += sgc.gen("own")
        forks.join()
        s += "+".join(s["own"])

    result = run_both(program, recorded(tagged))
    assert result["own"] == ["AAAA", "BBBB", "CCCC"]
    assert result.text() == "tAAAA+BBBB+CCCC"


def test_join_concate_and_append_appends_texts_in_order(recorded):
    """SGLang asks its server to concatenate KV, by a route that no server has."""

    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(2)
        forks += ["a", "b"]
        forks += sgc.gen("own")
        forks.join(mode="concate_and_append")
        s += "." + sgc.gen("after")

    result = run_both(program, recorded(tagged))
    assert result.text() == "taAAAAbBBBB....."
    assert "own" not in result.variables


def test_join_of_an_unknown_mode(recorded):
    @sgc.function
    def program(s):
        s.fork(2).join("sideways")

    with pytest.raises(errors.UsageError, match="no mode 'sideways'"):
        program.run(backend=recorded())


def test_copy_joins_at_its_end(recorded):
    @sgc.function
    def program(s):
        s += "t"
        with s.copy() as other:
            other += "a" + sgc.gen("own")
        s += s["own"][0]

    result = run_both(program, recorded(tagged))
    assert result["own"] == ["AAAA"]
    assert result.text() == "tAAAA"


def test_join_of_new_names_warns_of_nothing(recorded):
    @sgc.function
    def program(s):
        s += sgc.gen() + "t"
        forks = s.fork(2)
        forks += sgc.gen("own")
        forks += sgc.gen()
        forks.join()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program.run(backend=recorded())["own"] == ["reply", "reply"]
