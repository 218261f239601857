"""Roles: their marks, the messages they make, the system message."""

from __future__ import annotations

import pytest
from lang.behaviours.shared import chat_with
from tests_support import run_both

import sgc
from sgc import errors
from sgc.runtime.executor.backends.scripted import PLAIN_CHAT
from sgc.runtime.executor.interface.capabilities import RoleFormat


def test_an_empty_system_message_replaces_the_templates_own(recorded):
    chat = chat_with(default_system="Be good.")

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


def test_nested_roles_are_an_error_at_their_line(recorded):
    """SGLang asserts in its worker thread."""

    @sgc.function
    def program(s):
        with s.user():
            s += sgc.assistant("a")

    with pytest.raises(errors.UsageError, match="roles do not nest") as caught:
        program.run(backend=recorded())
    assert caught.value.where.startswith("test_roles.py:")


def test_the_system_message_stays_over_generations(recorded):
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


def test_a_role_of_a_template_is_what_its_server_gets(recorded):
    chat = chat_with(roles={**PLAIN_CHAT.roles, "user": RoleFormat("U:", "\n")})

    @sgc.function
    def program(s):
        s += sgc.user("q") + sgc.gen("a")

    endpoint = recorded(chat=chat)
    program.run(backend=endpoint).sync()
    assert endpoint.texts == ["U:q\n"]


@pytest.mark.parametrize("name", ["system", "user", "assistant"])
def test_role_puts_the_templates_marks_around(recorded, name):
    @sgc.function
    def program(s):
        s += getattr(sgc, name)("text")

    result = run_both(program, recorded())
    assert result.text() == f"<|{name}|>text<|end|>"
    assert result.messages() == [{"role": name, "content": "text"}]


@pytest.mark.parametrize("name", ["system", "user", "assistant"])
def test_role_without_content_is_an_empty_message(recorded, name):
    @sgc.function
    def program(s):
        s += getattr(sgc, name)()

    result = run_both(program, recorded())
    assert result.text() == f"<|{name}|><|end|>"
    assert result.messages() == [{"role": name, "content": ""}]


@pytest.mark.parametrize("name", ["system", "user", "assistant"])
def test_begin_and_end_of_a_role(recorded, name):
    @sgc.function
    def program(s):
        s += getattr(sgc, f"{name}_begin")()
        s += "a"
        s += "b" + getattr(sgc, f"{name}_end")()

    result = run_both(program, recorded())
    assert result.text() == f"<|{name}|>ab<|end|>"
    assert result.messages() == [{"role": name, "content": "ab"}]


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_roles_as_methods_append_at_once(recorded, role):
    @sgc.function
    def program(s):
        getattr(s, role)("text " + sgc.gen("a"))
        with getattr(s, role)():
            s += "inside "
            s += sgc.gen("b")

    result = run_both(program, recorded("r"))
    once = f"<|{role}|>text r<|end|>"
    assert result.text() == once + f"<|{role}|>inside r<|end|>"
    assert [message["role"] for message in result.messages()] == [role, role]


def test_role_method_appends_once_even_when_it_is_appended(recorded):
    """In SGLang `s += s.user(x)` appends twice, though a comment says otherwise."""

    @sgc.function
    def program(s):
        s += s.user("hi")
        s += s.assistant(sgc.gen("a"))

    result = run_both(program, recorded("r"))
    assert result.text() == "<|user|>hi<|end|><|assistant|>r<|end|>"
