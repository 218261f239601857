"""Reasoning is split off a reply, and what follows it is constrained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from chat_templates import QWEN, THINKING
from scripted_turns import ASKED, TOOLS, asked, end_of, play, templated

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.tokenizer import Tokenizer

THOUGHT = "<think>\nHm <tool_call> no.\n</think>\n\n"
SCHEMA = {"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "object"}}}
CALL = '{"name": "get", "arguments": {}}'


@pytest.fixture(scope="module")
def models(tokenizer: Tokenizer) -> Iterator[dict[str, EngineFacts]]:
    opening = "    {{- '<|im_start|>assistant\\n' }}\n"
    begun = THINKING.replace(opening, opening.replace("\\n'", "\\n<think>\\n'"))
    assert begun != THINKING
    with templated(tokenizer, hybrid=THINKING, begun=begun, none=QWEN) as made:
        yield made


@pytest.mark.parametrize("piece", [0, 1, 5])
def test_reasoning_is_told_apart(models: dict[str, EngineFacts], piece: int) -> None:
    message, turn, requests = play(models["hybrid"], [THOUGHT + "It is \n sunny. "], piece)
    assert message["reasoning_content"] == "Hm <tool_call> no."
    assert message["content"] == "It is \n sunny. "
    assert (turn.finish, turn.n_reasoning, turn.usage.completion_tokens) == ("stop", 1, 2)
    assert end_of(requests[1]).endswith("Hm <tool_call> no.\n</think>")


@pytest.mark.parametrize("piece", [0, 1])
def test_a_reply_without_reasoning_is_content(models: dict[str, EngineFacts], piece: int) -> None:
    for text in ("<thin", "Plain </think> text", ""):
        message, turn, _ = play(models["hybrid"], [text], piece)
        assert message["content"] == text
        assert "reasoning_content" not in message
        assert turn.finish == "stop"


def test_reasoning_that_the_prompt_begins_goes_on(models: dict[str, EngineFacts]) -> None:
    message, _, requests = play(models["begun"], ["So.\n</think>Sunny"])
    assert (message["reasoning_content"], message["content"]) == ("So.", "Sunny")
    assert len(requests) == 2
    message, turn, _ = play(models["begun"], ["So it goes"])
    assert (message["reasoning_content"], message["content"]) == ("So it goes", "")
    assert turn.finish == "stop"


def test_a_constraint_holds_from_the_reasoning_s_end(models: dict[str, EngineFacts]) -> None:
    script = ["Hm\n</think>", '{"a": 1}']
    message, _, requests = play(models["hybrid"], script, response_format=SCHEMA)
    assert (message["reasoning_content"], message["content"]) == ("Hm", '{"a": 1}')
    assert end_of(requests[0]).endswith("assistant\n<think>\n")
    assert not requests[0].generate.sampling.json_schema
    assert requests[1].generate.sampling.json_schema == '{"type": "object"}'


def test_reasoning_without_an_end_gives_way_to_what_must_follow(
    models: dict[str, EngineFacts],
) -> None:
    message, turn, requests = play(models["hybrid"], ["Hm", "{}"], response_format=SCHEMA)
    assert (message["reasoning_content"], message["content"]) == ("Hm", "{}")
    assert end_of(requests[1]).endswith("<think>\nHm</think>")
    assert turn.finish == "stop"
    must = play(models["hybrid"], ["Hm", CALL], tools=TOOLS, tool_choice="required")
    assert must[1].finish == "tool_calls"
    message, turn, _ = play(models["hybrid"], ["<think>Hm"])
    assert (message["reasoning_content"], message["content"]) == ("Hm", "")
    assert turn.finish == "stop"


def test_calls_come_after_reasoning(models: dict[str, EngineFacts]) -> None:
    message, turn, _ = play(
        models["hybrid"], ["<think>a <tool_call> b</think>", "<tool_call>", CALL], 3, tools=TOOLS
    )
    assert message["reasoning_content"] == "a <tool_call> b"
    assert message["tool_calls"][0]["function"]["name"] == "get"
    assert turn.finish == "tool_calls"
    must = play(models["hybrid"], ["a</think>", CALL], tools=TOOLS, tool_choice="required")
    assert must[0]["tool_calls"][0]["function"]["name"] == "get"
    assert end_of(must[2][1]).endswith("a</think>\n\n<tool_call>\n")


def test_a_switch_of_the_template_turns_it_off(models: dict[str, EngineFacts]) -> None:
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    message, _, requests = play(models["hybrid"], ["Sunny"], **off)
    assert end_of(requests[0]).endswith("<think>\n\n</think>\n\n")
    assert message == {"role": "assistant", "content": "Sunny", "refusal": None}
    found = asked(models["hybrid"], response_format=SCHEMA, **off)
    assert found.requests[0].generate.sampling.json_schema


def test_history_is_without_reasoning(models: dict[str, EngineFacts]) -> None:
    said = {"role": "assistant", "content": "Sunny", "reasoning_content": "Hm"}
    found = asked(models["hybrid"], messages=[*ASKED, said, *ASKED])
    text = found.requests[0].prompt.segments[0].text.text
    assert "assistant\nSunny<|im_end|>" in text
    assert "Hm" not in text


def test_a_model_that_does_not_reason_is_left_alone(models: dict[str, EngineFacts]) -> None:
    message, _, requests = play(models["none"], [THOUGHT])
    assert message["content"] == THOUGHT
    assert list(requests[0].generate.sampling.stop) == []


@pytest.mark.slow
def test_an_option_names_the_tag(http_engine: Any) -> None:
    arguments = ["--http", "0", "--reasoning-format", "think"]
    with EmbeddedEngine("fake", arguments) as engine:
        ask = type(http_engine)(engine).ask
        body = {"model": "fake", "messages": ASKED, "max_tokens": 9, "response_format": SCHEMA}
        body |= {"ignore_eos": True}
        found = ask("/v1/chat/completions", body).json
        (choice,) = found["choices"]
        assert choice["message"]["reasoning_content"]
        assert choice["message"]["content"] == ""
        assert choice["finish_reason"] == "length"
        assert found["usage"]["completion_tokens_details"] == {"reasoning_tokens": 9}
        events = ask("/v1/chat/completions", {**body, "stream": True, "seed": 1}).events
        deltas = [event["choices"][0]["delta"] for event in events]
        assert "".join(delta.get("reasoning_content", "") for delta in deltas)
        assert json.dumps(deltas[0]) == '{"role": "assistant", "content": ""}'
