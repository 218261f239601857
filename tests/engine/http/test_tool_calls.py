"""Tool calls through OpenAI's own client: every call can be parsed, whatever the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any

import jsonschema
import pytest
from openai import AsyncOpenAI, OpenAI
from property_tests import IS_WHOLE
from waiting import until

from sgc.runtime.engine.text.tokenizer import Tokenizer

HELLO = [{"role": "user", "content": "What is the weather in Paris?"}]
CITY = {"type": "string", "maxLength": 8}
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": CITY, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
            "required": ["city", "days"],
        },
    },
}
PLAIN: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "stop-it.now",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    },
}


def chat(client: OpenAI, **more: Any) -> Any:
    asked = {"model": "fake", "temperature": 1.0, "messages": HELLO, "max_tokens": 600, **more}
    return client.chat.completions.create(**asked)


def random_schema(random: Random, depth: int = 0) -> dict[str, Any]:
    kinds = ["string", "integer", "boolean", "enum", "number"]
    kind = random.choice(kinds if depth > 2 else [*kinds, "object", "object", "array", "ref"])
    if kind == "string":
        return {"type": "string", "maxLength": random.randint(0, 9), "description": "x"}
    if kind in ("integer", "number"):
        return {"type": kind, "minimum": random.randint(-50, 0), "maximum": random.randint(1, 99)}
    if kind == "enum":
        return {"enum": random.sample(["a", "b\n", '"', 3, None, True, "é{"], 3)}
    if kind == "array":
        return {"type": "array", "items": random_schema(random, depth + 1), "maxItems": 3}
    if kind == "ref":
        return {"$ref": "#/$defs/Shared"}
    if kind == "boolean":
        return {"type": kind}
    names = random.sample(["a", "b c", "title", "description", "é", "type"], random.randint(0, 4))
    properties = {name: random_schema(random, depth + 1) for name in names}
    required = [name for name in names if random.random() < 0.7]
    return {"type": "object", "properties": properties, "required": required}


def random_tool(random: Random, name: str) -> dict[str, Any]:
    names = random.sample(["x", "y", "default", "examples"], random.randint(1, 3))
    schema = {
        "type": "object",
        "properties": {each: random_schema(random) for each in names},
        "required": names,
        "$defs": {"Shared": {"type": "integer", "minimum": 0, "maximum": 7, "title": "Shared"}},
    }
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def assert_calls_follow(message: Any, tools: list[Any]) -> None:
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    assert message.tool_calls
    for call in message.tool_calls:
        arguments = json.loads(call.function.arguments)
        jsonschema.validate(arguments, schemas[call.function.name])
        assert call.type == "function"
    assert len({call.id for call in message.tool_calls}) == len(message.tool_calls)


def test_calls_of_random_tools_follow_their_schemas(client: OpenAI) -> None:
    for seed in range(200 if IS_WHOLE else 20):
        random = Random(seed)
        tools = [random_tool(random, name) for name in ("f", "g_2", "h-3")[: random.randint(1, 3)]]
        choice: Any = "required"
        if random.random() < 0.5:
            choice = {"type": "function", "function": {"name": tools[0]["function"]["name"]}}
        asked = {"tools": tools, "tool_choice": choice, "parallel_tool_calls": False, "seed": seed}
        found = chat(client, **asked).choices[0]
        assert found.finish_reason == "tool_calls"
        assert found.message.content is None
        assert len(found.message.tool_calls) == 1
        assert_calls_follow(found.message, tools)
        if choice != "required":
            assert found.message.tool_calls[0].function.name == choice["function"]["name"]


def test_several_calls_come_in_one_reply(client: OpenAI) -> None:
    counts = set()
    for seed in range(8):
        found = chat(client, tools=[WEATHER, PLAIN], tool_choice="required", seed=seed).choices[0]
        assert_calls_follow(found.message, [WEATHER, PLAIN])
        assert found.finish_reason == "tool_calls"
        counts.add(len(found.message.tool_calls))
    assert max(counts) > 1
    assert max(counts) <= 16


def test_a_function_that_is_named_is_called_once(client: OpenAI) -> None:
    named = {"type": "function", "function": {"name": "get_weather"}}
    for seed in range(4):
        found = chat(client, tools=[WEATHER, PLAIN], tool_choice=named, seed=seed).choices[0]
        assert len(found.message.tool_calls) == 1
        assert found.finish_reason == "tool_calls"


def test_a_stream_tells_a_name_once_and_arguments_in_pieces(client: OpenAI) -> None:
    asked = {"tools": [WEATHER, PLAIN], "tool_choice": "required", "temperature": 0.0}
    whole = chat(client, **asked).choices[0]
    calls: list[dict[str, Any]] = []
    chunks = list(chat(client, stream=True, **asked))
    n_pieces = 0
    for chunk in chunks:
        for call in chunk.choices[0].delta.tool_calls or ():
            if call.id is not None:
                assert call.index == len(calls)
                calls.append({"name": call.function.name, "arguments": ""})
            else:
                assert call.function.name is None
                n_pieces += 1
            calls[call.index]["arguments"] += call.function.arguments
    assert calls == [
        {"name": each.function.name, "arguments": each.function.arguments}
        for each in whole.message.tool_calls
    ]
    assert n_pieces >= len(calls)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert not any(chunk.choices[0].delta.content for chunk in chunks)


def test_n_replies_are_calls_of_their_own(client: OpenAI) -> None:
    asked = {"tools": [WEATHER], "tool_choice": "required", "n": 3, "seed": 3}
    found = chat(client, parallel_tool_calls=False, **asked)
    for choice in found.choices:
        assert_calls_follow(choice.message, [WEATHER])
    made = [choice.message.tool_calls[0].function.arguments for choice in found.choices]
    assert len(set(made)) == 3
    assert found.usage.completion_tokens > 3 * 5
    streamed = chat(client, parallel_tool_calls=False, stream=True, **asked)
    told = ["", "", ""]
    for chunk in streamed:
        for call in chunk.choices[0].delta.tool_calls or ():
            told[chunk.choices[0].index] += call.function.arguments
    assert told == made


def test_auto_is_text_until_a_call_is_begun(client: OpenAI, tokenizer: Tokenizer) -> None:
    """Under a schema, a reply is JSON or a call; a bias decides which."""
    form = {
        "type": "json_schema",
        "json_schema": {"name": "r", "schema": {"type": "object", "properties": {"ok": CITY}}},
    }
    asked = {"tools": [WEATHER], "response_format": form, "parallel_tool_calls": False}
    asked["logprobs"] = True
    (mark, *_), (brace, *_) = map(tokenizer.encode_continuation, ("<", "{"))
    for stream in (False, True):
        called = said(chat(client, logit_bias={str(mark): 100}, stream=stream, **asked), stream)
        assert called["content"] == ""
        assert called["logprobs"] == []  # the mark of a call is no text
        assert called["finish"] == "tool_calls"
        jsonschema.validate(json.loads(called["arguments"]), WEATHER["function"]["parameters"])
        text = said(chat(client, logit_bias={str(brace): 50}, stream=stream, **asked), stream)
        assert text["finish"] == "stop"
        assert "ok" in json.loads(text["content"]) or json.loads(text["content"]) == {}


def said(reply: Any, is_stream: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"content": "", "arguments": "", "finish": None, "logprobs": []}
    chunks = reply if is_stream else [reply]
    for chunk in chunks:
        choice = chunk.choices[0]
        part = choice.delta if is_stream else choice.message
        found["content"] += part.content or ""
        found["logprobs"] += choice.logprobs.content if choice.logprobs else []
        for call in part.tool_calls or ():
            found["arguments"] += call.function.arguments
        found["finish"] = choice.finish_reason or found["finish"]
    return found


def test_history_with_calls_and_results_is_read(client: OpenAI) -> None:
    call = {"id": "call_1", "type": "function"}
    function = {"name": "get_weather", "arguments": '{"city": "Paris", "days": 1}'}
    messages = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [{**call, "function": function}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny"},
    ]
    found = chat(client, messages=messages, tools=[WEATHER], max_tokens=8)
    assert found.choices[0].message.content
    longer = found.usage.prompt_tokens
    assert longer > chat(client, tools=[WEATHER], max_tokens=8).usage.prompt_tokens
    assert longer > chat(client, messages=messages, max_tokens=8).usage.prompt_tokens


def test_a_schema_that_no_keyword_holds_is_for_strict_tools_alone(client: OpenAI) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
    function = {"name": "f", "parameters": schema}
    loose = {"type": "function", "function": function}
    asked = {"tools": [loose], "tool_choice": "required", "parallel_tool_calls": False}
    found = chat(client, max_tokens=40, **asked).choices[0].message
    assert found.tool_calls[0].function.arguments.startswith("{")
    strict = {"type": "function", "function": {**function, "strict": True}}
    with pytest.raises(Exception, match="uniqueItems"):
        chat(client, **{**asked, "tools": [strict]})


@pytest.mark.slow  # it waits until the engine gives up
def test_a_schema_that_the_engine_gives_up_on_is_a_fault_of_tools(ask: Callable[..., Any]) -> None:
    slow = {"type": "string", "pattern": "[^1]{1,20}\\w" * 200}
    tools = tool(parameters={"type": "object", "properties": {"x": slow}, "required": ["x"]})
    body = {"model": "fake", "messages": HELLO, "tools": tools, "tool_choice": "required"}
    answer = ask("/v1/chat/completions", {**body, "max_tokens": 60})
    assert (answer.status, answer.error["param"]) == (400, "tools")


def deep(n: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object"}
    for _ in range(n):
        found = {"type": "object", "properties": {"x": found}}
    return found


def wide(n: int) -> dict[str, Any]:
    return {"properties": {"x": {"enum": [f"{n}" * 20_000]}}}


def patterns(n: int) -> dict[str, Any]:
    slow = {"type": "string", "pattern": f"[^{n}]{{1,20}}\\w" * 30}
    return {"type": "object", "properties": {f"x{i}": slow for i in range(10)}}


def tool(**function: Any) -> list[Any]:
    return [{"type": "function", "function": {"name": "f", **function}}]


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"tools": {}}, "tools", "list of tools"),
    ({"tools": ["x"]}, "tools[0]", "must be an object"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type", "type function"),
    ({"tools": [{"type": "function"}]}, "tools[0].function", "missing"),
    ({"tools": [{**WEATHER, "x": 1}]}, "tools[0].x", "not a parameter"),
    ({"tools": tool(name="a b")}, "tools[0].function.name", "letters"),
    ({"tools": tool(name="x" * 200)}, "tools[0].function.name", "1 to 128"),
    ({"tools": tool() + tool()}, "tools[1].function.name", "another tool"),
    ({"tools": tool(description=3)}, "tools[0].function.description", "a text"),
    ({"tools": tool(strict="yes")}, "tools[0].function.strict", "true or false"),
    ({"tools": tool(parameters=[])}, "tools[0].function.parameters", "an object"),
    ({"tools": tool(parameters={"type": "string"})}, "tools[0].function.parameters.type", "object"),
    (
        {"tools": tool(parameters={"properties": {"x": {"maximum": 1e300}}})},
        "tools[0].function.parameters",
        "beyond the range",
    ),
    (
        {"tools": tool(parameters={"properties": {"x": {"enum": ["y" * 70_000]}}})},
        "tools[0].function.parameters",
        "of at most 65536",
    ),
    (
        {"tools": [t for i in range(9) for t in tool(name=f"f{i}", parameters=wide(i))]},
        "tools",
        "of at most 131072",
    ),
    (
        {"tools": [t for i in range(3) for t in tool(name=f"f{i}", parameters=patterns(i))]},
        "tools",
        "over 8192 characters of patterns",
    ),
    ({"tools": tool(parameters=deep(40))}, "", "nested more than 64 levels"),
    (
        {"tools": tool(strict=True, parameters={"not": {}})},
        "tools[0].function.parameters",
        "not",
    ),
    ({"tools": [t for i in range(129) for t in tool(name=f"f{i}")]}, "tools", "at most 128"),
    ({"tool_choice": "required"}, "tool_choice", "there are no tools"),
    ({"tools": [WEATHER], "tool_choice": "always"}, "tool_choice", "none, auto, required"),
    ({"tools": [WEATHER], "tool_choice": {"type": "mcp"}}, "tool_choice.type", "function"),
    (
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "nope"}}},
        "tool_choice.function.name",
        "there is no tool 'nope'; the tools are get_weather",
    ),
    (
        {"tools": [WEATHER], "tool_choice": {"type": "allowed_tools", "allowed_tools": {}}},
        "tool_choice.allowed_tools.tools",
        "list of tools",
    ),
    ({"tools": [WEATHER], "parallel_tool_calls": 1}, "parallel_tool_calls", "true or false"),
    ({"tools": [WEATHER], "regex": "a"}, "tools", "regex cannot be combined"),
    ({"tools": [WEATHER], "stop_regex": "a"}, "stop_regex", "calls end"),
    ({"functions": [{"name": "x"}]}, "functions", "send tools"),
    ({"chat_template_kwargs": 3}, "chat_template_kwargs", "an object"),
]
MESSAGES: list[tuple[dict[str, Any], str, str]] = [
    ({"role": "user", "tool_calls": [1]}, "tool_calls", "only an assistant"),
    ({"role": "user", "tool_call_id": "x"}, "tool_call_id", "only a tool"),
    ({"role": "assistant", "tool_calls": 1}, "tool_calls", "list of calls"),
    ({"role": "assistant", "tool_calls": [1]}, "tool_calls[0]", "an object"),
    ({"role": "assistant", "tool_calls": [{"type": "x"}]}, "tool_calls[0].type", "function"),
    ({"role": "assistant", "tool_calls": [{}]}, "tool_calls[0].function.name", "missing"),
    (
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]},
        "tool_calls[0].function.arguments",
        "JSON object",
    ),
    (
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[]"}}]},
        "tool_calls[0].function.arguments",
        "JSON object",
    ),
    ({"role": "assistant", "content": "", "reasoning_content": 1}, "reasoning_content", "a text"),
    ({"role": "tool", "tool_call_id": 3, "content": ""}, "tool_call_id", "a text"),
    ({"role": "tool", "tool_call_id": "x"}, "content", "missing"),
    ({"role": "tool", "content": "a"}, "tool_call_id", "missing"),
    ({"role": "tool", "tool_call_id": "", "content": "a"}, "tool_call_id", "empty"),
    ({"role": "tool", "tool_call_id": "x", "content": "a"}, "tool_call_id", "has a call 'x'"),
    ({"role": "user", "content": [{"type": "text"}]}, "content[0].text", "missing"),
]


@pytest.mark.parametrize(("asked", "param", "said"), BAD)
@pytest.mark.parametrize("stream", [False, True])
def test_bad_input_is_refused_by_name(
    ask: Callable[..., Any], asked: Any, param: str, said: str, stream: bool
) -> None:
    body = {"model": "fake", "messages": HELLO, "max_tokens": 8, "stream": stream, **asked}
    answer = ask("/v1/chat/completions", body)
    assert answer.status == 400, answer.text
    assert (answer.error["param"] or "") == param
    assert said in answer.error["message"]


@pytest.mark.parametrize(("message", "param", "said"), MESSAGES)
def test_a_bad_message_is_refused_by_name(
    ask: Callable[..., Any], message: Any, param: str, said: str
) -> None:
    body = {"model": "fake", "messages": [*HELLO, message], "max_tokens": 8}
    answer = ask("/v1/chat/completions", body)
    assert answer.status == 400, answer.text
    assert answer.error["param"] == f"messages[1].{param}"
    assert said in answer.error["message"]


def test_a_client_that_leaves_in_a_call_frees_its_memory(http_engine: Any, ask: Any) -> None:
    long = {"type": "object", "properties": {"x": {"type": "string", "minLength": 9000}}}
    named = tool(parameters={**long, "required": ["x"]})
    body = {"model": "fake", "messages": HELLO, "tools": named, "tool_choice": "required"}
    asked: Any = {**body, "max_tokens": 3000, "stream": True}
    create: Any = http_engine.client().chat.completions.with_streaming_response.create
    with create(**asked) as response:
        lines = response.iter_lines()
        while "arguments" not in next(lines):
            pass
        assert ask("/server_info").json["num_running_reqs"] == 1
    until(lambda: ask("/server_info").json["num_running_reqs"] == 0)
    ask("/flush_cache", method="POST")
    info = ask("/server_info").json
    assert info["num_free_tokens"] == info["max_total_num_tokens"]


def test_thirty_agents_at_once_each_get_their_calls(http_engine: Any) -> None:
    async def main() -> None:
        base = http_engine.url + "/v1"
        async with AsyncOpenAI(base_url=base, api_key="none", max_retries=0) as client:

            async def one(i: int) -> None:
                names = [f"f{i}", f"g{i}"]
                tools = [{**WEATHER, "function": {**WEATHER["function"], "name": n}} for n in names]
                create: Any = client.chat.completions.create
                found = await create(
                    model="fake", messages=HELLO, tools=tools, tool_choice="required", seed=i,
                    max_tokens=600,
                )  # fmt: skip
                assert_calls_follow(found.choices[0].message, tools)

            await asyncio.gather(*map(one, range(30)))

    asyncio.run(main())
