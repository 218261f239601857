"""OpenAI's face through OpenAI's own client, unmodified."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, Field
from waiting import until

from sgc.runtime.engine.text.tokenizer import Tokenizer
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Prompt, Sampling, TextRun

HELLO = [{"role": "user", "content": "Hello, how are you today?"}]
GREEDY = {"model": "fake", "temperature": 0.0}


class Person(BaseModel):
    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)


def chat(client: OpenAI, **more: Any) -> Any:
    return client.chat.completions.create(
        **{**GREEDY, "messages": HELLO, "max_tokens": 12, **more}  # type: ignore[arg-type]
    )


def complete(client: OpenAI, prompt: Any = "Once upon a time", **more: Any) -> Any:
    return client.completions.create(**{**GREEDY, "prompt": prompt, "max_tokens": 12, **more})


def test_the_model_is_listed_and_found(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["fake"]
    assert client.models.retrieve("fake").owned_by == "sgc"


def test_a_chat_is_answered_with_its_usage(client: OpenAI) -> None:
    found = chat(client)
    (choice,) = found.choices
    assert choice.message.role == "assistant"
    assert choice.message.content
    assert choice.finish_reason in ("stop", "length")
    usage = found.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 < usage.completion_tokens <= 12


def test_a_message_that_has_begun_is_gone_on_with(client: OpenAI) -> None:
    """Its prompt ends with what has begun: the suffix and the next beginning are left out."""
    messages = [*HELLO, {"role": "assistant", "content": "Sure:"}]
    more = {"continue_final_message": True, "add_generation_prompt": False}
    anew = chat(client, messages=messages)
    going_on = chat(client, messages=messages, extra_body=more)
    assert 0 < going_on.usage.prompt_tokens < anew.usage.prompt_tokens
    assert going_on.choices[0].message.content != anew.choices[0].message.content


def test_a_second_call_finds_its_prompt_cached(client: OpenAI) -> None:
    messages = [{"role": "user", "content": "A question that nobody else has asked before"}]
    first = chat(client, messages=messages).usage
    second = chat(client, messages=messages).usage
    assert first.prompt_tokens_details.cached_tokens < first.prompt_tokens - 1
    assert second.prompt_tokens_details.cached_tokens == second.prompt_tokens - 1


def test_salts_keep_prompts_apart(client: OpenAI) -> None:
    prompt = "A prompt that is asked under two salts, one after the other"
    cached = [
        complete(client, prompt, extra_body={"cache_salt": salt}).usage
        for salt in ("one", "two", "one")
    ]
    assert [u.prompt_tokens_details.cached_tokens > 0 for u in cached] == [False, False, True]


def test_greedy_text_is_that_of_grpc(client: OpenAI, http_engine: Any) -> None:
    text = "The quick brown fox jumps over"

    async def over_grpc() -> str:
        prompt: Prompt = (TextRun(text),)
        backend = EngineBackend(http_engine.uri)
        try:
            found = await backend.generate(prompt, Sampling(max_tokens=30, temperature=0.0))
            return str(found.text)
        finally:
            await backend.close()

    assert complete(client, text, max_tokens=30).choices[0].text == asyncio.run(over_grpc())


def test_streamed_chunks_make_the_whole_text(client: OpenAI) -> None:
    whole = chat(client, max_tokens=40)
    chunks = list(chat(client, max_tokens=40, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    told = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert "".join(c.delta.content or "" for c in told) == whole.choices[0].message.content
    assert [c.finish_reason for c in told if c.finish_reason] == [whole.choices[0].finish_reason]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert {chunk.id for chunk in chunks} == {chunks[0].id}


def test_a_streamed_completion_with_n_keeps_its_draws_apart(client: OpenAI) -> None:
    asked = {"temperature": 1.0, "seed": 5, "n": 3, "max_tokens": 20}
    whole = [choice.text for choice in complete(client, **asked).choices]
    texts = ["", "", ""]
    for chunk in complete(client, stream=True, **asked):
        texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == whole
    assert len(set(whole)) == 3


def test_a_seed_repeats_a_draw_and_none_does_not(client: OpenAI) -> None:
    def drawn(**more: Any) -> str:
        return str(complete(client, temperature=1.5, max_tokens=24, **more).choices[0].text)

    assert drawn(seed=-3) == drawn(seed=-3)
    assert drawn() != drawn()


def test_stops_cut_the_text(client: OpenAI) -> None:
    asked = {"max_tokens": 40, "extra_body": {"ignore_eos": True}}
    whole = complete(client, **asked).choices[0].text
    stop = whole[len(whole) // 2 :][:2]
    cut = complete(client, stop=["no such text", stop], **asked).choices[0]
    assert cut.text == whole[: whole.index(stop)]
    assert cut.finish_reason == "stop"


def test_a_bias_decides(client: OpenAI, tokenizer: Tokenizer) -> None:
    (token,) = tokenizer.encode_continuation("Z")
    found = complete(client, max_tokens=3, logit_bias={str(token): 100.0})
    assert found.choices[0].text == "ZZZ"


def test_replies_parse_into_a_pydantic_model(client: OpenAI) -> None:
    found = client.chat.completions.parse(
        model="fake",
        messages=HELLO,  # type: ignore[arg-type]
        response_format=Person,
        max_completion_tokens=400,
        seed=1,
    )
    message = found.choices[0].message
    assert found.choices[0].finish_reason == "stop"
    assert isinstance(message.parsed, Person)
    assert json.loads(message.content or "") == message.parsed.model_dump()


def test_a_json_object_is_one(client: OpenAI) -> None:
    form = {"type": "json_object"}
    found = chat(client, response_format=form, max_tokens=300, temperature=1.0, seed=4)
    if found.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(found.choices[0].message.content), dict)
    else:
        assert found.choices[0].message.content.startswith("{")


def test_log_probabilities_of_a_chat(client: OpenAI) -> None:
    found = chat(client, logprobs=True, top_logprobs=3, max_tokens=8).choices[0]
    entries = found.logprobs.content
    assert "".join(entry.token for entry in entries) == found.message.content
    for entry in entries:
        assert entry.logprob == entry.top_logprobs[0].logprob  # greedy
        assert bytes(entry.bytes).decode(errors="replace") == entry.token
        assert len(entry.top_logprobs) == 3


def test_streamed_log_probabilities_are_all_told(client: OpenAI) -> None:
    whole = chat(client, logprobs=True).choices[0].logprobs.content
    chunks = chat(client, logprobs=True, stream=True)
    told = [c.choices[0].logprobs.content for c in chunks if c.choices[0].logprobs]
    assert [e.token for each in told for e in each] == [entry.token for entry in whole]


def test_an_echoed_prompt_is_scored(client: OpenAI) -> None:
    prompt = "The quick brown fox"
    found = complete(client, prompt, max_tokens=0, echo=True, logprobs=1)
    (choice,) = found.choices
    assert choice.text == prompt
    assert "".join(choice.logprobs.tokens) == prompt
    assert choice.logprobs.token_logprobs[0] is None
    assert all(value < 0 for value in choice.logprobs.token_logprobs[1:])
    offsets = choice.logprobs.text_offset
    assert [prompt[a:b] for a, b in zip(offsets, [*offsets[1:], None], strict=True)] == list(
        choice.logprobs.tokens
    )
    assert found.usage.completion_tokens == 0


def test_prompts_may_be_lists_and_token_ids(client: OpenAI, tokenizer: Tokenizer) -> None:
    texts = ["One prompt", "and another prompt"]
    ids = [tokenizer.backend.encode(text, add_special_tokens=False).ids for text in texts]
    by_text = complete(client, texts)
    by_ids = complete(client, ids)
    alone = [complete(client, each).choices[0].text for each in ids]
    assert [c.text for c in by_text.choices] == [c.text for c in by_ids.choices] == alone
    assert by_text.usage.prompt_tokens == sum(map(len, ids))


def test_special_tokens_in_a_message_are_text(client: OpenAI) -> None:
    def n_prompt(content: str) -> int:
        messages = [{"role": "user", "content": content}]
        return int(chat(client, messages=messages, max_tokens=1).usage.prompt_tokens)

    assert n_prompt("<|im_end|>") > n_prompt("x") + 1


@pytest.mark.parametrize(
    ("asked", "error", "param"),
    [
        ({"model": "gpt-4"}, openai.NotFoundError, "model"),
        ({"temperature": 101}, openai.BadRequestError, "temperature"),
        ({"max_tokens": 0}, openai.BadRequestError, "max_tokens"),
        ({"messages": [{"role": "user", "content": "x " * 9000}]}, openai.BadRequestError, None),
        ({"tools": [{"type": "function"}]}, openai.BadRequestError, "tools[0].function"),
        ({"extra_body": {"colour": 1}}, openai.BadRequestError, "colour"),
        ({"stop": ""}, openai.BadRequestError, "stop"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_typed(
    client: OpenAI, asked: Any, error: Any, param: str | None, stream: bool
) -> None:
    with pytest.raises(error) as caught:
        chat(client, stream=stream, **asked)
    assert caught.value.param == param
    assert caught.value.body["message"]


def test_a_stream_can_be_left_and_frees_its_memory(client: OpenAI, ask: Callable[..., Any]) -> None:
    asked = {"max_tokens": 3900, "extra_body": {"ignore_eos": True}}
    create: Any = client.completions.with_streaming_response.create
    with create(**GREEDY, prompt="Endless", stream=True, **asked) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("data: ")
        assert ask("/server_info").json["num_running_reqs"] == 1
    assert_idle(ask)


def test_a_call_that_is_given_up_frees_its_memory(
    http_engine: Any, ask: Callable[..., Any]
) -> None:
    with http_engine.client(timeout=0.3) as hasty, pytest.raises(openai.APITimeoutError):
        complete(hasty, "Endless too", max_tokens=3900, extra_body={"ignore_eos": True})
    assert_idle(ask)


def assert_idle(ask: Callable[..., Any]) -> None:
    until(lambda: ask("/server_info").json["num_running_reqs"] == 0)
    info = ask("/server_info").json
    ask("/flush_cache", method="POST")
    flushed = ask("/server_info").json
    assert flushed["num_free_tokens"] == info["max_total_num_tokens"]


def test_twenty_async_clients_get_what_each_asked(http_engine: Any) -> None:
    async def main() -> None:
        base = http_engine.url + "/v1"
        async with AsyncOpenAI(base_url=base, api_key="none", max_retries=0) as client:

            async def one(i: int, stream: bool) -> str:
                asked: Any = {**GREEDY, "prompt": f"Number {i}", "max_tokens": 16}
                if not stream:
                    return str((await client.completions.create(**asked)).choices[0].text)
                chunks = await client.completions.create(**asked, stream=True)
                return "".join([chunk.choices[0].text async for chunk in chunks])

            whole = await asyncio.gather(*(one(i, False) for i in range(20)))
            streamed = await asyncio.gather(*(one(i, True) for i in range(20)))
            assert whole == streamed
            assert len(set(whole)) > 15

    asyncio.run(main())
