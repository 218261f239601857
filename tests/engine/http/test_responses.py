"""OpenAI's Responses API through OpenAI's own client, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from chat_templates import THINKING
from openai import OpenAI
from pydantic import BaseModel, Field
from scripted_turns import templated

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.openai.response_input import messages_of
from sgc.runtime.engine.http.openai.response_items import Response
from sgc.runtime.engine.http.openai.response_requests import response_of
from sgc.runtime.engine.http.token_texts import TokenTexts
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.tokenizer import Tokenizer

TOOL: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 8}},
        "required": ["city"],
    },
}


class Person(BaseModel):
    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)


def create(client: OpenAI, **more: Any) -> Any:
    asked = {"model": "fake", "input": "Hello", "max_output_tokens": 60, "temperature": 0.0, **more}
    return client.responses.create(**asked)


def test_a_text_is_answered(client: OpenAI) -> None:
    found = create(client, instructions="Be brief.", metadata={"a": "b"})
    (message,) = found.output
    assert message.role == "assistant"
    assert found.output_text == message.content[0].text
    assert found.status in ("completed", "incomplete")
    assert (found.instructions, found.metadata, found.store) == ("Be brief.", {"a": "b"}, False)
    usage = found.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    chat = client.chat.completions.create(
        model="fake",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
        max_tokens=60,
        temperature=0.0,
    )
    assert found.output_text == chat.choices[0].message.content


def test_a_reply_that_is_cut_off_is_incomplete(client: OpenAI) -> None:
    found = create(client, max_output_tokens=3, extra_body={"ignore_eos": True})
    assert found.status == "incomplete"
    assert found.incomplete_details.reason == "max_output_tokens"
    assert found.output[0].status == "incomplete"


def test_a_stream_s_events_come_in_order(client: OpenAI) -> None:
    whole = create(client)
    events = list(create(client, stream=True))
    names = [event.type for event in events]
    n_deltas = names.count("response.output_text.delta")
    end = "completed" if whole.status == "completed" else "incomplete"
    assert names == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        *["response.output_text.delta"] * n_deltas,
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        f"response.{end}",
    ]
    assert n_deltas >= 1
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == whole.output_text == events[-1].response.output_text
    assert events[-1].response.usage.output_tokens == whole.usage.output_tokens
    assert events[0].response.status == "in_progress"


def test_events_carry_their_names(ask: Callable[..., Any]) -> None:
    body = {"model": "fake", "input": "x", "max_output_tokens": 4, "stream": True}
    lines = ask("/v1/responses", body).text.rstrip("\n").split("\n\n")
    for line in lines:
        name, data = line.split("\n")
        assert name == "event: " + json.loads(data.removeprefix("data: "))["type"]
    assert lines[-1].startswith(("event: response.completed", "event: response.incomplete"))


def test_calls_are_items_and_go_on_with_their_results(client: OpenAI) -> None:
    asked = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    found = create(client, **asked)
    (call,) = found.output
    assert (call.type, call.name) == ("function_call", "get_weather")
    jsonschema.validate(json.loads(call.arguments), TOOL["parameters"])
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny"}
    next_input = [{"role": "user", "content": "Hello"}, *found.output, result]
    again = create(client, input=next_input, tools=[TOOL], max_output_tokens=5)
    assert again.usage.input_tokens > found.usage.input_tokens
    events = list(create(client, stream=True, **asked))
    names = [event.type for event in events]
    pieces = [e.delta for e in events if e.type == "response.function_call_arguments.delta"]
    assert "".join(pieces) == call.arguments
    (done,) = [e for e in events if e.type == "response.function_call_arguments.done"]
    assert (done.arguments, done.name) == (call.arguments, "get_weather")
    assert names[2] == "response.output_item.added"
    assert names[-2:] == ["response.output_item.done", "response.completed"]
    named = create(client, tools=[TOOL], tool_choice={"type": "function", "name": "get_weather"})
    assert named.output[0].type == "function_call"


def test_structured_output_is_parsed(client: OpenAI) -> None:
    found = client.responses.parse(
        model="fake", input="x", text_format=Person, max_output_tokens=300, temperature=0.0
    )
    assert isinstance(found.output_parsed, Person)
    free = create(client, text={"format": {"type": "json_object"}}, max_output_tokens=300)
    assert free.output_text.startswith("{")


def test_log_probabilities_are_told(client: OpenAI) -> None:
    found = create(client, include=["message.output_text.logprobs"], top_logprobs=2)
    rows = found.output[0].content[0].logprobs
    assert "".join(row.token for row in rows) == found.output_text
    assert all(len(row.top_logprobs) == 2 for row in rows)
    events = list(
        create(client, include=["message.output_text.logprobs"], top_logprobs=2, stream=True)
    )
    (done,) = [event for event in events if event.type == "response.output_text.done"]
    assert [row.token for row in done.logprobs] == [row.token for row in rows]


@pytest.fixture(scope="module")
def thinking(tokenizer: Tokenizer) -> Iterator[EngineFacts]:
    with templated(tokenizer, m=THINKING) as made:
        yield made["m"]


def test_reasoning_is_an_item_of_its_own(thinking: EngineFacts) -> None:
    body = {"model": "m", "input": "Weather?", "stream": True, "temperature": 0}
    response = Response(response_of(body, thinking), "m", TokenTexts(thinking.tokenizer))
    (request,) = response.begin()
    stops = list(request.generate.sampling.stop)
    assert stops == ["</think>"]
    thought = pb.Generated(text="<think>\nHm", matched="</think>", matched_id=-1)
    assert response.follow(pb.Reply(delta=pb.Delta(text="<think>\nHm"))) is None
    assert response.follow(pb.Reply(generated=thought)) is not None
    said = pb.Generated(text="\n\nSunny", matched_id=-1)
    said.usage.completion_tokens = 2
    assert response.follow(pb.Reply(generated=said)) is None
    names = [event["type"].removeprefix("response.") for event in response.events()]
    assert names == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    items = response.whole()["output"]
    assert [item["type"] for item in items] == ["reasoning", "message"]
    assert [item["content"][0]["text"] for item in items] == ["Hm", "Sunny"]


def test_items_become_messages() -> None:
    def call(name: str) -> dict[str, str]:
        return {"type": "function_call", "call_id": f"id_{name}", "name": name, "arguments": "{}"}

    parts = [{"type": "reasoning_text", "text": "t"}]
    thought = {"type": "reasoning", "summary": [], "content": parts}
    answer = {"type": "function_call_output", "call_id": "id_g"}
    items = [
        {"role": "developer", "content": "d"},
        {"role": "user", "content": [{"type": "input_text", "text": "u"}]},
        {**thought, "encrypted_content": None},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        call("f"),
        call("g"),
        {"type": "function_call_output", "call_id": "id_f", "output": "1"},
        {**answer, "output": [{"type": "input_text", "text": "2"}]},
        thought,
        call("h"),
    ]  # fmt: skip
    found, origins = messages_of(items, "i")
    told = [
        {"function": {"name": n, "arguments": "{}"}, "id": f"id_{n}", "type": "function"}
        for n in "fgh"
    ]
    assert found == [
        {"role": "system", "content": "i"},
        {"role": "developer", "content": "d"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "a", "reasoning_content": "t", "tool_calls": told[:2]},
        {"role": "tool", "tool_call_id": "id_f", "content": "1"},
        {"role": "tool", "tool_call_id": "id_g", "content": "2"},
        {"role": "assistant", "content": "", "reasoning_content": "t", "tool_calls": told[2:]},
    ]  # fmt: skip
    assert origins["messages[0]"] == "instructions"
    assert origins["messages[3]"] == "input[3]"
    assert origins["messages[3].tool_calls[1].function"] == "input[5]"


CALL = {"type": "function_call", "call_id": "c", "name": "f"}
BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"store": True}, "store", "nothing is stored"),
    ({"previous_response_id": "resp_1"}, "previous_response_id", "whole conversation"),
    ({"conversation": "c"}, "conversation", "whole conversation"),
    ({"background": True}, "background", "not supported"),
    ({"prompt": {"id": "p"}}, "prompt", "no prompts are stored"),
    ({"max_tool_calls": 3}, "max_tool_calls", "built-in"),
    ({"max_tokens": 3}, "max_tokens", "max_output_tokens"),
    ({"unheard_of": 3}, "unheard_of", "not a parameter"),
    ({"truncation": "auto"}, "truncation", "disabled"),
    ({"reasoning": {"effort": "high"}}, "reasoning.effort", "the model decides"),
    ({"reasoning": 3}, "reasoning", "an object"),
    ({"text": {"verbosity": "low"}}, "text.verbosity", "the model decides"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type", "must be text"),
    ({"text": {"format": {"type": "json_schema", "schema": 1}}}, "text.format.schema", "object"),
    ({"include": ["file_search_call.results"]}, "include[0]", "this engine has only"),
    ({"include": 3}, "include", "a list of texts"),
    ({"max_output_tokens": 0}, "max_output_tokens", "from 1"),
    ({"input": []}, "input", "list of items"),
    ({"input": None}, "input", "list of items"),
    ({"input": [3]}, "input[0]", "an object"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type", "one of message"),
    ({"input": [{"role": "x", "content": "y"}]}, "input[0].role", "must be one of"),
    ({"input": [{"role": "user"}]}, "input[0].content", "missing"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        "input[0].content[0].type",
        "parts of text",
    ),
    (
        {"input": [{"role": "user", "content": "x"}, {**CALL, "arguments": "{"}]},
        "input[1].arguments",
        "JSON object",
    ),
    ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output", "missing"),
    ({"input": [{"type": "function_call_output", "output": ""}]}, "input[0].call_id", "missing"),
    ({"input": [{**CALL, "call_id": "", "arguments": "{}"}]}, "input[0].call_id", "empty"),
    (
        {"input": [
            {**CALL, "arguments": "{}"},
            {"type": "function_call_output", "call_id": "d", "output": "y"},
        ]},
        "input[1].call_id",
        "no item before it is a call 'd'",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
        "input[0].content[0].text",
        "missing",
    ),
    ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema", "missing"),
    ({"metadata": {"a": 1}}, "metadata.a", "a text"),
    ({"prompt_cache_options": 5}, "prompt_cache_options", "an object"),
    ({"tools": 3}, "tools", "list of tools"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type", "no built-in tools"),
    ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name", "letters"),
    (
        {"tools": [{**TOOL, "parameters": {"type": "array"}}]},
        "tools[0].parameters.type",
        "arguments are an object",
    ),
    (
        {"tools": [TOOL], "tool_choice": {"type": "function", "name": "x"}},
        "tool_choice.name",
        "there is no tool",
    ),
    ({"tools": [TOOL], "tool_choice": {"type": "mcp"}}, "tool_choice.type", "function"),
    ({"tool_choice": "required"}, "tool_choice", "there are no tools"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "param", "said"), BAD)
def test_bad_input_is_refused_by_name(
    ask: Callable[..., Any], asked: Any, param: str, said: str
) -> None:
    answer = ask("/v1/responses", {"model": "fake", "input": "x", "max_output_tokens": 4, **asked})
    assert answer.status == 400, answer.text
    assert answer.error["param"] == param
    assert said in answer.error["message"]


def test_a_response_cannot_be_fetched_later(ask: Callable[..., Any]) -> None:
    answer = ask("/v1/responses/resp_1")
    assert (answer.status, answer.error["code"]) == (404, "response_not_found")
    assert ask("/v1/responses", {"model": "gpt", "input": "x"}).status == 404


def test_an_input_that_is_too_long_has_a_status_of_its_own(ask: Callable[..., Any]) -> None:
    body = {"model": "fake", "input": "x " * 9000, "stream": True}
    assert ask("/v1/responses", body).status == 400
