"""Every documented value of a field that has a few values is taken, and does what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

HELLO = [{"role": "user", "content": "Hi"}]
PARAMETERS = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}
CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in "fg"
]
RESPONSE_TOOLS = [{"type": "function", "name": name, "parameters": PARAMETERS} for name in "fg"]
NAMED = [{"type": "function", "function": {"name": "g"}}]
BOTH = [*NAMED, {"function": {"name": "f"}}]


def allowed(mode: str, tools: list[Any]) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


# The values of `tool_choice` in a chat, and the tools that may be called; None: none must be.
CHOICES: list[tuple[Any, str | None]] = [
    ("auto", None),
    ("none", ""),
    ("required", "fg"),
    ({"type": "function", "function": {"name": "f"}}, "f"),
    (allowed("auto", NAMED), None),
    (allowed("required", NAMED), "g"),
    (allowed("required", NAMED * 2), "g"),
    (allowed("required", BOTH), "fg"),
    (allowed("auto", BOTH), None),
]


@pytest.mark.parametrize(("choice", "called"), CHOICES, ids=str)
def test_every_tool_choice_of_a_chat(ask: Callable[..., Any], choice: Any, called: Any) -> None:
    body = {"model": "fake", "messages": HELLO, "tools": CHAT_TOOLS, "tool_choice": choice}
    answer = ask("/v1/chat/completions", {**body, "max_tokens": 60, "seed": 1})
    assert answer.status == 200, answer.text
    calls = answer.json["choices"][0]["message"].get("tool_calls") or []
    names = {call["function"]["name"] for call in calls}
    if called is not None:
        assert names <= set(called)
        assert bool(names) == bool(called)


def flat(mode: str, tools: list[Any]) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": tools}


RESPONSE_CHOICES: list[tuple[Any, str | None]] = [
    ("auto", None),
    ("none", ""),
    ("required", "fg"),
    ({"type": "function", "name": "f"}, "f"),
    (flat("auto", [{"type": "function", "name": "g"}]), None),
    (flat("required", [{"type": "function", "name": "g"}] * 2), "g"),
]


@pytest.mark.parametrize(("choice", "called"), RESPONSE_CHOICES, ids=str)
def test_every_tool_choice_of_a_response(ask: Callable[..., Any], choice: Any, called: Any) -> None:
    body = {"model": "fake", "input": "Hi", "tools": RESPONSE_TOOLS, "tool_choice": choice}
    answer = ask("/v1/responses", {**body, "max_output_tokens": 60, "seed": 1})
    assert answer.status == 200, answer.text
    names = {each["name"] for each in answer.json["output"] if each["type"] == "function_call"}
    if called is not None:
        assert names <= set(called)
        assert bool(names) == bool(called)


TIERS = ["auto", "default", "flex", "scale", "priority", "fast"]
SCHEMA = {"name": "a", "schema": {"enum": ["x"]}}
CHATS: list[dict[str, Any]] = [
    *({"response_format": form} for form in (
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": SCHEMA},
        {"type": "json_schema", "json_schema": {**SCHEMA, "strict": True, "description": "d"}},
    )),
    *({"service_tier": tier} for tier in TIERS),
    *({"prompt_cache_retention": each} for each in ("in_memory", "24h")),
    {"modalities": ["text"]},
    {"reasoning_effort": "none"},
    {"verbosity": "medium"},
    {"function_call": "none"},
    {"function_call": "auto"},
    {"parallel_tool_calls": False},
    {"user": "u", "safety_identifier": "s", "prompt_cache_key": "k", "metadata": {"a": "b"}},
    {"store": True},
    {"store": False},
]  # fmt: skip
RESPONSES: list[dict[str, Any]] = [
    *({"text": {"format": form}} for form in (
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", **SCHEMA},
        {"type": "json_schema", **SCHEMA, "strict": False},
    )),
    *({"service_tier": tier} for tier in TIERS),
    {"text": {"verbosity": "medium"}},
    {"truncation": "disabled"},
    {"include": ["reasoning.encrypted_content"]},
    {"include": ["message.output_text.logprobs"], "top_logprobs": 1},
    {"reasoning": {"effort": "none"}},
    {"metadata": {"a": "b"}, "user": "u", "prompt_cache_options": {"mode": "implicit"}},
    {"store": False},
]  # fmt: skip
CASES = [
    *(("/v1/chat/completions", {"messages": HELLO, "max_tokens": 8} | each) for each in CHATS),
    *(("/v1/responses", {"input": "Hi", "max_output_tokens": 8} | each) for each in RESPONSES),
    *(("/v1/embeddings", {"input": "Hi", "encoding_format": f}) for f in ("float", "base64")),
]


@pytest.mark.parametrize(("path", "body"), CASES, ids=lambda value: str(value)[-60:])
def test_every_documented_value_is_taken(ask: Callable[..., Any], path: str, body: Any) -> None:
    answer = ask(path, {"model": "fake", **body})
    assert answer.status == 200, answer.text


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"service_tier": 5}, "service_tier"),
    ({"metadata": 5}, "metadata"),
    ({"metadata": {"a": 1}}, "metadata.a"),
    ({"user": 5}, "user"),
    ({"store": "yes"}, "store"),
    ({"safety_identifier": []}, "safety_identifier"),
    ({"prompt_cache_key": 5}, "prompt_cache_key"),
    ({"prompt_cache_retention": 7}, "prompt_cache_retention"),
    ({"guided_decoding_backend": 1}, "guided_decoding_backend"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
@pytest.mark.parametrize(("asked", "param"), WRONG, ids=str)
def test_a_field_without_effect_has_its_type(
    ask: Callable[..., Any], path: str, asked: Any, param: str
) -> None:
    body = {"prompt": "Hi"} if path == "/v1/completions" else {"messages": HELLO}
    answer = ask(path, {"model": "fake", **body, **asked})
    assert (answer.status, answer.error["param"]) == (400, param)


@pytest.mark.parametrize("name", ["messages", "tools", "add_generation_prompt", "bos_token"])
def test_what_the_engine_gives_a_template_is_not_the_client_s(
    ask: Callable[..., Any], name: str
) -> None:
    body = {"model": "fake", "messages": HELLO, "chat_template_kwargs": {name: []}}
    for path in ("/v1/chat/completions", "/tokenize"):
        answer = ask(path, body)
        assert (answer.status, answer.error["param"]) == (400, f"chat_template_kwargs.{name}")


OUT_OF_RANGE: list[tuple[str, Any]] = [
    *(("temperature", value) for value in (-1, 101, 1e300)),
    *(("top_p", value) for value in (0, 1.5)),
    *(("top_k", value) for value in (0, -2, 2**40)),
    ("min_p", 2),
    ("frequency_penalty", 3),
    ("presence_penalty", -3),
    ("repetition_penalty", 0),
    *(("stop", value) for value in ("", ["a"] * 65, "a" * 5000)),
    ("stop_token_ids", [10**6]),
    ("logit_bias", {"1000000": 1}),
    ("logit_bias", {"5": 1001}),
]


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE, ids=lambda value: str(value)[:20])
def test_a_value_out_of_range_is_refused_by_its_field(
    ask: Callable[..., Any], name: str, value: Any
) -> None:
    chat = {"model": "fake", "messages": HELLO, name: value}
    answer = ask("/v1/chat/completions", chat)
    assert (answer.status, answer.error["param"]) == (400, name)
    answer = ask("/generate", {"text": "a", "sampling_params": {name: value}})
    assert (answer.status, answer.error["param"]) == (400, f"sampling_params.{name}")


def test_too_many_tokens_or_log_probabilities_are_too(ask: Callable[..., Any]) -> None:
    chat = {"model": "fake", "messages": HELLO, "max_tokens": 3}
    for more, param in (
        ({"min_tokens": 4}, "min_tokens"),
        ({"logprobs": True, "top_logprobs": 101}, "top_logprobs"),
    ):
        answer = ask("/v1/chat/completions", chat | more)
        assert (answer.status, answer.error["param"]) == (400, param)
    params = {"min_new_tokens": 4, "max_new_tokens": 3}
    answer = ask("/generate", {"text": "a", "sampling_params": params})
    assert answer.error["param"] == "sampling_params.min_new_tokens"
    answer = ask("/generate", {"text": "a", "return_logprob": True, "top_logprobs_num": 101})
    assert answer.error["param"] == "top_logprobs_num"
