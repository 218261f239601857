"""What comes back: several texts, log-probabilities, stops, streams, and forks of a run."""

from __future__ import annotations

import pytest
from aiohttp import web
from providers.clocks import JumpingClock

import sgc
from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply
from sgc.runtime.executor.run.options import RunOptions


@sgc.function
def three(s):
    s += "x" + sgc.gen("a", n=3, max_tokens=8, temperature=0.7)


@pytest.mark.parametrize(("model", "n_requests"), [("gpt-4o", 1), ("claude-haiku-4-5", 3)])
def test_several_texts_are_one_request_where_the_api_can(serve, ask, model, n_requests):
    server = serve()
    result = three.run_once({}, RunOptions(seed=2), ask(server, model))
    assert result["a"] == [" reply 1"] * 3
    assert len(server.asks) == n_requests
    told = n_requests * (len("x") // 4 + 1)
    assert result.stats.prompt_tokens == told  # counted once a request
    assert result.stats.requests == 3


@sgc.function
def three_tokens(s):
    s += "x" + sgc.gen("a", max_tokens=3)


@sgc.function
def kept(s):
    s += "x" + sgc.gen("a", max_tokens=8, stop=["END"], keep_stop=True) + "|"


def test_a_stop_is_kept_where_the_server_tells_it(serve, ask):
    server = serve(reply=lambda ask: "oneENDtwo", owned_by="vllm")
    assert kept.run(backend=ask(server, "served")).text() == "xoneEND|"
    assert kept.run(backend=ask(server, "claude-haiku-4-5")).text() == "xoneEND|"


@sgc.function
def likely(s):
    s += "x" + sgc.gen("a", max_tokens=8, return_logprob=True, top_logprobs_num=1)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_log_probabilities_of_chats_are_told(serve, ask, is_streamed):
    row = {"token": "ok", "logprob": -0.5, "bytes": [], "top_logprobs": [
        {"token": "no", "logprob": -1.5, "bytes": []}]}  # fmt: skip
    server = serve(reply=lambda ask: "ok")
    whole = server._answer

    async def answer(request, ask):
        if ask.body.get("stream"):
            chunk = '{"id":"c","choices":[{"index":0,"delta":{"content":"ok"},"logprobs":%s}]}'
            end = '{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
            rows = '{"content": [%s]}' % str(row).replace("'", '"')  # noqa: UP031
            text = f"data: {chunk % rows}\n\ndata: {end}\n\ndata: [DONE]\n\n"
            return web.Response(text=text, content_type="text/event-stream")
        response = await whole(request, ask)
        rows = '"logprobs": {"content": [%s]}, "finish_reason"' % row  # noqa: UP031
        response.text = response.text.replace('"finish_reason"', rows.replace("'", '"'))
        return response

    server._answer = answer
    options = {"stream": "always"} if is_streamed else None
    meta = likely.run(backend=ask(server, "gpt-4o", options=options)).get_meta_info("a")
    assert meta["output_token_logprobs"] == [[-0.5, -1, "ok"]]
    assert meta["output_top_logprobs"] == [[[-1.5, -1, "no"]]]


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5", "gpt-3.5-turbo-instruct"])
def test_streamed_and_whole_replies_are_the_same(serve, ask, model):
    server = serve(reply=lambda ask: "a reply of several pieces: é東京😀")

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=20)

    streamed = program.run(backend=ask(server, model), stream=True)
    pieces = list(streamed.text_iter("a"))
    whole = program.run(backend=ask(server, model))
    assert "".join(pieces) == streamed["a"] == whole["a"]
    assert len(pieces) > 3
    usage = [state.get_meta_info("a")["completion_tokens"] for state in (streamed, whole)]
    assert usage[0] == usage[1]


APIS = ["gpt-4o", "claude-haiku-4-5", "gpt-3.5-turbo-instruct"]


@pytest.mark.parametrize("model", APIS)
def test_halves_of_a_surrogate_pair_are_one_character(serve, ask, model):
    """The server escapes each half, and streams them in two pieces of three characters."""
    server = serve(reply=lambda ask: "xy\ud83d\ude00b")
    whole = three_tokens.run(backend=ask(server, model))
    streamed = three_tokens.run(backend=ask(server, model), stream=True)
    assert list(streamed.text_iter("a")) == ["xy", "😀b"]
    assert whole["a"] == streamed["a"] == "xy😀b"


@pytest.mark.parametrize("said", ["xy\ud83d", "xy\ud83dabc", "a\ude00b"])
@pytest.mark.parametrize("stream", ["auto", "always"])
@pytest.mark.parametrize("model", APIS)
def test_half_of_a_surrogate_pair_is_no_text(serve, ask, model, stream, said):
    options = {"stream": stream} if stream == "always" else None
    endpoint = ask(serve(reply=lambda ask: said), model, options=options)
    endpoint.backend.limits.clock = JumpingClock()
    error = three_tokens.run(backend=endpoint).error()
    assert isinstance(error, MalformedReply)
    assert "half of a surrogate pair" in error.message


def test_half_of_a_surrogate_pair_in_a_structured_reply_is_asked_again(serve, ask):
    said = [r'{"value": "\ud83d"}', '{"value": "😀"}']
    server = serve(reply=lambda ask: said[ask.number])

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", regex=".", max_tokens=8)

    assert program.run(backend=ask(server, "gpt-4o"))["a"] == "😀"
    assert len(server.asks) == 2


def test_children_of_a_fork_have_the_messages_before_it(serve, ask):
    server = serve()

    @sgc.function
    def program(s):
        s += sgc.system("Be brief.") + sgc.user("Hi")
        for number, child in enumerate(s.fork(2)):
            child += sgc.user(f"Child {number}") + sgc.assistant(sgc.gen("a", max_tokens=4))
        s += sgc.assistant(sgc.gen("b", max_tokens=4))

    program.run(backend=ask(server, "claude-haiku-4-5")).sync()
    said = sorted([m["content"] for m in body["messages"]] for body in server.bodies)
    assert said == [["Hi"], ["Hi", "Child 0"], ["Hi", "Child 1"]]
    assert all(body["system"][0]["text"] == "Be brief." for body in server.bodies)
