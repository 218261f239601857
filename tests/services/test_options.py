"""What a client may set for a served program's generations is checked before the program begins."""

from __future__ import annotations

from typing import Any

import pytest
from services.conftest import serving

import sgc
from sgc.services.replies import OPTIONS, OptionError, options_of

GOOD: list[dict[str, Any]] = [
    {"top_p": 1, "top_k": -1, "min_p": 0, "temperature": 0},
    {"top_p": 1e-3, "top_k": 1, "min_p": 1, "temperature": 100},
    {"frequency_penalty": -2, "presence_penalty": 2, "repetition_penalty": 1e-3},
    {"stop": ["a"] * 64, "min_tokens": 300, "max_tokens": 301, "seed": -5},
    {"stop": "a", "top_p": None},
]
BAD: list[tuple[str, Any]] = [
    ("temperature", -1), ("temperature", 1e300), ("temperature", "1"),
    ("top_p", 0), ("top_p", 2), ("top_p", -1),
    ("min_p", 2), ("min_p", -1),
    ("top_k", 0), ("top_k", -5), ("top_k", 2**40), ("top_k", 1.5),
    ("presence_penalty", 9), ("frequency_penalty", -9), ("repetition_penalty", 0),
    ("min_tokens", -1), ("max_tokens", 2**40), ("max_tokens", "x"), ("seed", 1.5),
    ("stop", ["a"] * 65), ("stop", ["x" * 5000]), ("stop", [""]), ("stop", 5),
]  # fmt: skip


@pytest.mark.parametrize("given", GOOD, ids=str)
def test_what_the_engine_takes_is_taken(given: dict[str, Any]) -> None:
    options = options_of(given)
    assert all(getattr(options, name) is not None for name in given)


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda value: str(value)[:20])
def test_what_it_does_not_take_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(OptionError) as caught:
        options_of({name: value})
    assert caught.value.name == name


def test_every_option_has_a_bad_value() -> None:
    assert {name for name, _ in BAD} == set(OPTIONS)


@pytest.mark.parametrize(("name", "value"), [BAD[4], BAD[9], BAD[12], BAD[-4]], ids=str)
def test_a_client_is_told_which_field_it_got_wrong(server, name: str, value: Any) -> None:
    chat = {"model": "program/tip", "messages": [{"role": "user", "content": "tea"}]}
    for path, body in (
        ("/v1/programs/tip", {"arguments": {"topic": "tea"}, name: value}),
        ("/v1/chat/completions", {**chat, name: value}),
        ("/v1/chat/completions", {**chat, name: value, "stream": True}),
    ):
        answer = server.ask(path, body)
        assert (answer.status, answer.error["param"]) == (400, name), answer.text
    answer = server.ask("/v1/chat/completions", {**chat, "max_completion_tokens": -1})
    assert (answer.status, answer.error["param"]) == (400, "max_completion_tokens")


@sgc.function
def by_pattern(s, pattern: str):
    s += "a" + sgc.gen("x", regex=pattern, max_tokens=4)


def test_what_the_engine_refuses_of_an_argument_is_the_client_s_mistake(
    server, files, tmp_path_factory
) -> None:
    by_pattern.compile(opt_level=1).save(files / "by_pattern.sgir")
    with serving(tmp_path_factory.mktemp("own"), f"--program={files / 'by_pattern.sgir'}") as own:
        body = {"arguments": {"pattern": "(?=a)b"}}
        answer = own.ask("/v1/programs/by_pattern", body)
        assert answer.status == 400, answer.text
        assert "looks ahead" in answer.error["message"]
