"""`num_api_spec_tokens` as SGLang's own programs use it, by what a provider is asked."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import pytest

from sgc.errors import SgcError, SgcWarning, UnsupportedParameter

FORM = "Name: Ada Moor.\nBirthday: March 3, 1961.\nJob: baker.\n"
VALUES = {"Name:": " Lin Rao.", "Birthday:": " May 9, 1984.", "Job:": " pilot."}
FOLLOWED = "Name: Lin Rao.\nBirthday: May 9, 1984.\nJob: pilot.\n\nName: Another.\n"


def form(ask: Any) -> str:
    """Goes on with the form, at whatever label the prompt ends."""
    label = ask.text[ask.text.rindex("\n") + 1 :]
    return FOLLOWED[FOLLOWED.index(label) + len(label) :]


def whole(ask: Any) -> str:
    return FOLLOWED


def completion(sgl: ModuleType, n_tokens: int | None, **params: Any) -> Any:
    def character(s):
        s += "Make up a person in this form:\n" + FORM + "\nThe next one:\n"
        s += "Name:" + sgl.gen("name", stop="\n", **params)
        s += "\nBirthday:" + sgl.gen("birthday", stop="\n", **params)
        s += "\nJob:" + sgl.gen("job", stop="\n", **params) + "\n"

    return sgl.function(num_api_spec_tokens=n_tokens)(character)


def chat(sgl: ModuleType, n_tokens: int | None, first: str = "Name:", **params: Any) -> Any:
    def character(s):
        s += sgl.system("You make up people.")
        s += sgl.user("In this form:\n" + FORM)
        s += sgl.assistant(
            first
            + sgl.gen("name", stop="\n", **params)
            + "\nBirthday:"
            + sgl.gen("birthday", stop="\n", **params)
            + "\nJob:"
            + sgl.gen("job", stop="\n", **params)
        )

    return sgl.function(num_api_spec_tokens=n_tokens)(character)


def values(state: Any) -> list[str]:
    return [state[name] for name in ("name", "birthday", "job")]


def told(call: Any) -> tuple[Any, list[str]]:
    """What a call gives, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    return found, [str(each.message) for each in caught if each.category is SgcWarning]


# -- models that complete text ------------------------------------------------------------------


@pytest.mark.parametrize("n_tokens", [16, 64, 128, 1000])
def test_a_form_is_one_request(stand_in, provider, n_tokens):
    """Whatever N is: SGLang asks for the larger one of it and `max_tokens`, 128 by default."""
    server, backend = provider("gpt-3.5-turbo-instruct", form)
    plain = completion(stand_in, None).run(backend=backend)
    assert values(plain) == list(VALUES.values())
    spent = backend.token_usage.prompt_tokens
    assert len(server.asks) == 3
    server.asks.clear()
    backend.token_usage.reset()
    state, warned = told(lambda: completion(stand_in, n_tokens).run(backend=backend).text())
    assert state == plain.text()
    assert len(server.asks) == 1
    assert not warned
    assert server.bodies[0]["max_tokens"] == max(n_tokens, 128)
    assert not server.bodies[0].get("stop")
    assert backend.token_usage.prompt_tokens * 3 < spent


def test_rows_side_by_side_are_a_request_each(stand_in, provider):
    """SGLang keeps what was said with the backend, so that it cannot do this."""
    server, backend = provider("gpt-3.5-turbo-instruct", form)
    states = completion(stand_in, 64).run_batch([{}] * 8, backend=backend, num_threads=4)
    assert [values(state) for state in states] == [list(VALUES.values())] * 8
    assert len(server.asks) <= 8


def test_a_reply_that_does_not_follow_changes_no_text(stand_in, provider):
    def strays(ask: Any) -> str:
        return form(ask).replace("\nBirthday", "\nBorn on")

    server, backend = provider("gpt-3.5-turbo-instruct", strays)
    state = completion(stand_in, 64).run(backend=backend)
    assert values(state) == list(VALUES.values())
    assert len(server.asks) == 2  # the second one says the rest


# -- chat models --------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["Name:", "\nName:"])
def test_a_chat_model_writes_the_whole_message(stand_in, provider, first):
    """It cannot continue a begun message: without speculation that is refused."""
    server, backend = provider("gpt-4-turbo", whole)
    with pytest.raises(UnsupportedParameter, match=r"cannot continue a begun assistant message"):
        chat(stand_in, None, first).run(backend=backend).text()
    assert not server.asks
    (state, warned) = told(lambda: chat(stand_in, 256, first).run(backend=backend))
    assert values(state) == list(VALUES.values())
    assert [message["role"] for message in server.bodies[0]["messages"]] == ["system", "user"]
    assert (len(server.asks), warned) == (1, [])
    assert state.messages()[-1]["content"] == FOLLOWED.partition("\n\n")[0]


def test_an_example_and_a_label_that_ends_with_a_space(stand_in, provider):
    """Any border counts where a message cannot be asked for from there."""
    sgl = stand_in

    @sgl.function(num_api_spec_tokens=1024)
    def questions(s, first, second):
        s += sgl.user("Question 1: Which city?\nQuestion 2: How large?\n")
        s += sgl.assistant("Answer 1: Paris.\nAnswer 2: Two million.\n")
        s += sgl.user("Question 1: " + first + "\nQuestion 2: " + second)
        s += sgl.assistant(
            "Answer 1: " + sgl.gen("one", stop="\n") + "\nAnswer 2: " + sgl.gen("two", stop="\n")
        )

    server, backend = provider("gpt-4o", lambda ask: "Answer 1: Lima.\nAnswer 2: Ten million.")
    state = questions.run("Which?", "And?", backend=backend)
    assert (state["one"], state["two"]) == ("Lima.", "Ten million.")
    assert len(server.asks) == 1


def test_a_chat_model_that_goes_on_with_messages_is_asked_once(stand_in, provider):
    server, backend = provider("claude-haiku-4-5", form)
    assert values(chat(stand_in, 256).run(backend=backend)) == list(VALUES.values())
    assert len(server.asks) == 1


def test_a_generation_that_begins_the_message_is_one_request_too(stand_in, provider):
    server, backend = provider("gpt-4o", lambda ask: FOLLOWED[len("Name:") :].lstrip())
    state = chat(stand_in, 256, "").run(backend=backend)
    assert values(state) == ["Lin Rao.", *list(VALUES.values())[1:]]
    assert len(server.asks) == 1


def test_a_message_that_does_not_begin_as_it_must_is_asked_for_anew(stand_in, provider):
    server, backend = provider(
        "gpt-4o", lambda ask: "Sure!\n" + FOLLOWED if ask.number < 2 else FOLLOWED
    )
    state = chat(stand_in, 256).run(backend=backend)
    assert values(state) == list(VALUES.values())
    assert len(server.asks) == 3


@pytest.mark.parametrize("wrong", ["Sure! Here you are.", FOLLOWED.replace("Birthday", "Born")])
def test_a_message_that_never_follows_is_an_error_at_its_line(stand_in, provider, wrong):
    """SGLang gives empty texts, and no error."""
    server, backend = provider("gpt-4o", lambda ask: wrong)
    with pytest.raises(SgcError, match="none of 3 whole messages began with") as caught:
        values(chat(stand_in, 256).run(backend=backend))
    assert caught.value.where.startswith("test_speculative_programs.py:")
    assert len(server.asks) == (3 if "Sure" in wrong else 4)


# -- what is asked for by itself ----------------------------------------------------------------


def spaced(sgl: ModuleType) -> Any:
    @sgl.function(num_api_spec_tokens=64)
    def program(s):
        s += "A form.\nName:" + sgl.gen("a", stop="\n")
        s += "\nBirthday: " + sgl.gen("b", stop="\n")

    return program


def mixed(**more: Any) -> Any:
    def make(sgl: ModuleType) -> Any:
        @sgl.function(num_api_spec_tokens=64)
        def program(s):
            s += "A form.\nName:" + sgl.gen("a", stop="\n")
            s += "\nBirthday:" + sgl.gen("b", stop="\n", **more)

        return program

    return make


def short(sgl: ModuleType) -> Any:
    @sgl.function(num_api_spec_tokens=64)
    def program(s):
        s += "A form.\nName:" + sgl.gen("a", stop="\n", max_tokens=4) + "\n"

    return program


def no_roles(sgl: ModuleType) -> Any:
    @sgl.function(num_api_spec_tokens=64)
    def program(s):
        s += "A form.\nName:" + sgl.gen("a", stop="\n")

    return program


@pytest.mark.parametrize(
    ("model", "make", "why"),
    [
        ("gpt-3.5-turbo-instruct", spaced, "the text before it ends inside"),
        ("gpt-3.5-turbo-instruct", mixed(temperature=0.3), "its temperature is not that"),
        ("gpt-3.5-turbo-instruct", mixed(regex=" May 9, 1984."), "its regex is checked here"),
        ("gpt-3.5-turbo-instruct", short, "does not tell how many tokens"),
        ("gpt-4o", no_roles, "to a chat model a text without roles is a message"),
    ],
)
def test_one_warning_names_the_line_and_why(stand_in, provider, model, make, why):
    server, backend = provider(model, form)  # told so many tokens, a text may be of any length
    server.usage = {"prompt_tokens": 9, "completion_tokens": 90, "total_tokens": 99}
    program = make(stand_in)
    _, warned = told(lambda: program.run(backend=backend).text())
    assert [why in each for each in warned] == [True], warned
    assert warned[0].startswith("test_speculative_programs.py:")
