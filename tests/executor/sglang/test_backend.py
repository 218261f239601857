"""Asking a server over SGLang's API: what goes out, what comes back, and what goes wrong."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from executor.sglang.asking import (
    DONE,
    GREEDY,
    INFO,
    PNG,
    PROMPT,
    VIDEO,
    Canned,
    ask,
    ask_canned,
    completion,
    event,
    events,
    http,
    streamed,
)

from sgc.errors import BackendError, EngineUnavailable, UsageError
from sgc.runtime.executor.backends.sglang import http as sglang_http
from sgc.runtime.executor.backends.sglang.backend import SGLangBackend
from sgc.runtime.executor.interface.backend import (
    FinishReason,
    LogprobsAsked,
    MediaRun,
    Sampling,
    TextRun,
    TokenRun,
)
from sgc.runtime.executor.interface.capabilities import OPTIONAL_SAMPLING

# -- what it is --

pytestmark = pytest.mark.usefixtures("short_backoff")


def test_capabilities_follow_the_servers_model(server):
    async def use(backend):
        assert backend.model_info == {}
        found = await backend.capabilities()
        return found, backend.model_info["model_path"]

    found, path = ask(server.url, use)
    assert found.model == path == "Qwen/Qwen2.5-7B-Instruct"
    assert found.chat.default_system == "You are a helpful assistant."
    assert found.unconditional
    assert found.images
    assert found.refuses == {"seed", "heal"} < OPTIONAL_SAMPLING
    assert found.special_tokens == ()


def test_a_template_can_be_named(server):
    found = ask(server.url, lambda b: b.capabilities(), chat_template="llama-2-chat")
    assert found.chat.system_in_user
    with pytest.raises(UsageError, match="no chat template"):
        SGLangBackend(server.url, chat_template="nope")


def test_newer_servers_have_another_path():
    class Newer(Canned):
        async def serve(self, reader, writer):
            head = await reader.readuntil(b"\r\n\r\n")
            is_known = head.startswith(b"GET /model_info ")
            writer.write(http(INFO) if is_known else http(b"", "404 Not Found"))
            writer.close()

    async def run() -> Any:
        server = await asyncio.start_server(Newer([], b"").serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, SGLangBackend(f"http://127.0.0.1:{port}/") as backend:
            return (await backend.capabilities()).model

    assert asyncio.run(run()) == "m"


@pytest.mark.parametrize(
    "info", [http(b"{}"), http(b"[1]"), http(b"", "404 Not Found"), http(b"<html>")]
)
def test_what_is_no_sglang_server_is_told_so(info):
    found, _ = ask_canned(http(b""), info=info)
    assert type(found) is BackendError
    assert "no SGLang server" in str(found) or "not JSON" in str(found)


def test_a_server_that_sees_no_images_says_so():
    info = http(b'{"model_path": "m", "has_image_understanding": false}')
    found, _ = ask_canned(http(b""), info=info, use=lambda b: b.capabilities())
    assert not found.images


@pytest.mark.parametrize(
    "url",
    [
        "localhost:30000",
        "ftp://h:1",
        "http://",
        "http://h:99999",
        "http://h:1/?q=1",
        "http://u@h:1",
    ],
)
def test_addresses_that_cannot_be(url):
    with pytest.raises(UsageError, match="cannot use"):
        SGLangBackend(url)


def test_certificates_to_trust(tmp_path):
    paths = [tmp_path / "missing.pem", tmp_path / "empty.pem"]
    paths[1].write_text("no certificate")
    for path in paths:
        with pytest.raises(UsageError, match="cannot read certificates"):
            SGLangBackend("https://h:1", verify=str(path))


def test_many_first_requests_ask_for_the_model_once():
    n_asked = 0

    async def run() -> None:
        async def serve(reader, writer):
            nonlocal n_asked
            n_asked += (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET")
            writer.write(http(INFO))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, SGLangBackend(f"http://127.0.0.1:{port}") as backend:
            await asyncio.gather(*[backend.capabilities() for _ in range(20)])

    asyncio.run(run())
    assert n_asked == 1


# -- generate --


def test_a_generation_and_what_is_sent_for_it(server):
    prompt = (*PROMPT, TokenRun((1, 2), "gen"), TextRun(" é"))
    reply = ask(server.url, lambda b: b.generate(prompt, GREEDY))
    assert server.requests == [
        {
            "text": "Say a word about Paris: gen é",
            "sampling_params": {"max_new_tokens": 12, "temperature": 0.0},
        }
    ]
    assert reply.text
    assert reply.tail == reply.text
    assert (reply.ids, reply.kept_ids, reply.logprobs) == ((), (), None)
    usage = reply.usage
    assert usage.prompt_tokens == usage.cached_tokens + usage.computed_tokens > 0
    assert reply.extra["completion_tokens"] == usage.completion_tokens > 0
    assert reply.extra["finish_reason"]["type"] == reply.finish_reason.value


def test_every_parameter_has_its_name(server):
    sampling = Sampling(
        max_tokens=9, min_tokens=2, temperature=0.5, top_p=0.9, top_k=7, min_p=0.1,
        frequency_penalty=0.2, presence_penalty=0.3, repetition_penalty=1.1, seed=5,
        stop=("X", "Y"), stop_token_ids=(3,), ignore_eos=True, stop_regex=("a+",),
        json_schema='{"type": "null"}', logit_bias=((5, 1.5),),
        logprobs=LogprobsAsked(start=1, top=2, text=True),
    )  # fmt: skip
    reply = ask(server.url, lambda b: b.generate(PROMPT, sampling))
    (body,) = server.requests
    assert body.pop("sampling_params") == {
        "max_new_tokens": 9, "min_new_tokens": 2, "temperature": 0.5, "top_p": 0.9, "top_k": 7,
        "min_p": 0.1, "frequency_penalty": 0.2, "presence_penalty": 0.3,
        "repetition_penalty": 1.1, "stop": ["X", "Y"], "stop_token_ids": [3], "ignore_eos": True,
        "stop_regex": ["a+"], "json_schema": '{"type": "null"}', "logit_bias": {"5": 1.5},
    }  # fmt: skip
    assert body.pop("text") == PROMPT[0].text
    assert body == {
        "return_logprob": True,
        "logprob_start_len": 1,
        "top_logprobs_num": 2,
        "return_text_in_logprobs": True,
    }
    assert reply.text == "null"
    assert len(reply.extra["output_top_logprobs"]) == len(reply.extra["output_token_logprobs"])


def test_patterns_and_grammars_go_as_they_are(server):
    reply = ask(server.url, lambda b: b.generate(PROMPT, Sampling(9, regex="[0-9]{3}")))
    assert reply.text.isdigit()
    ask(server.url, lambda b: b.generate(PROMPT, Sampling(9, ebnf='root ::= "a"')))
    assert [r["sampling_params"].get("ebnf") for r in server.requests] == [None, 'root ::= "a"']


def test_a_server_with_own_defaults_gets_neutral_values_too():
    info = http(b'{"model_path": "m", "preferred_sampling_params": "{\\"top_p\\": 0.5}"}')
    _, canned = ask_canned(http(json.dumps(completion("a")).encode()), info=info)
    params = canned.bodies[0]["sampling_params"]
    assert params["top_p"] == 1.0
    assert params["stop"] == []
    assert params["regex"] is params["logit_bias"] is None
    assert not {"seed", "logprobs", "n"} & set(params)


def test_why_a_generation_ended(server):
    long = ask(server.url, lambda b: b.generate(PROMPT, Sampling(2, temperature=0.0)))
    assert (long.finish_reason, long.matched) == (FinishReason.LENGTH, None)
    whole = Sampling(60, temperature=0.0)
    ended = ask(server.url, lambda b: b.generate(PROMPT, whole))
    assert ended.finish_reason is FinishReason.STOP
    assert isinstance(ended.matched, int)
    stop = ended.text[5:9]
    cut = ask(server.url, lambda b: b.generate(PROMPT, Sampling(60, temperature=0.0, stop=(stop,))))
    assert (cut.finish_reason, cut.matched) == (FinishReason.STOP, stop)
    assert cut.text == ended.text[: ended.text.index(stop)]


def test_what_a_stop_regex_matched_stays_in_the_text():
    body = completion("one 2")
    body["meta_info"]["finish_reason"]["matched"] = "[0-9]"
    sampling = Sampling(9, stop_regex=("[0-9]",))
    reply, _ = ask_canned(
        http(json.dumps(body).encode()), use=lambda b: b.generate(PROMPT, sampling)
    )
    assert (reply.text, reply.matched) == ("one 2", None)
    assert reply.extra["finish_reason"]["matched"] == "[0-9]"


def test_several_generations_are_one_request(server):
    samplings = [Sampling(8, seed=i) for i in range(3)]
    replies = ask(server.url, lambda b: b.generate_n(PROMPT, samplings))
    assert [r["sampling_params"]["n"] for r in server.requests] == [3]
    assert len({reply.text for reply in replies}) == 3
    (one,) = ask(server.url, lambda b: b.generate_n(PROMPT, samplings[:1]))
    assert one.text == replies[0].text
    assert ask(server.url, lambda b: b.generate_n(PROMPT, [])) == ()


def test_a_list_of_one_is_taken_and_a_wrong_count_is_not():
    reply, _ = ask_canned(http(json.dumps([completion("a")]).encode()))
    assert reply.text == "a"
    two = http(json.dumps([completion("a")] * 2).encode())
    found, _ = ask_canned(two)
    assert "2 completions, not the 1" in str(found)


def test_images_and_videos(server):
    image = base64.b64encode(PNG.data).decode()
    video = "video:" + base64.b64encode(VIDEO.data).decode()
    one = (TextRun("See "), MediaRun(PNG, "<image>"), TextRun(" now"))
    two = (*one, MediaRun(VIDEO, "<image>"))

    async def use(backend):
        await backend.generate(one, GREEDY)
        await backend.generate(two, GREEDY)
        await backend.generate_n(two, [GREEDY, GREEDY])
        await backend.commit_prefix(one)
        await backend.score(one, ("a", "b"), True)
        await backend.score(two, ("a", "b"))

    ask(server.url, use)
    sent = [r.get("image_data") for r in server.requests]
    assert sent[:4] == [image, [image, video], [[image, video]], image]
    assert sent[4:] == [image, image, None, [image, video], [[image, video]] * 2]
    assert server.requests[0]["text"] == "See <image> now"
    assert server.requests[2]["text"] == ["See <image> now<image>"]


# -- streams --


def test_a_stream_grows_to_the_same_text(server):
    deltas: list[str] = []
    sampling = Sampling(40, temperature=0.0)
    plain = ask(server.url, lambda b: b.generate(PROMPT, sampling))
    reply = ask(server.url, lambda b: b.generate(PROMPT, sampling, deltas.append))
    assert server.requests[1] == {**server.requests[0], "stream": True}
    assert "".join(deltas) == reply.text == plain.text
    assert len(deltas) > 2
    assert reply.usage == plain.usage


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_chunks_may_end_anywhere(size):
    whole = event("é") + b": a comment\r\n\r\n" + event("é東") + event("é東😀!", "stop") + DONE
    pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
    deltas, reply, _ = streamed(*pieces)
    assert deltas == ["é", "東", "😀!"]
    assert (reply.text, reply.finish_reason) == ("é東😀!", FinishReason.STOP)


@pytest.mark.parametrize(
    ("texts", "deltas"),
    [
        (["ab", "ab ST", "ab "], ["ab", " "]),  # the stop string, cut off at the end
        (["ab", "ab STOP", "ab "], ["ab", " "]),  # as above, once it was all there
        (["S", "SX", "SXSXS"], ["SX", "SX", "S"]),  # no stop string after all, then at the end
        (["caf\ufffd", "café", "café!"], ["caf", "é", "!"]),  # a character in two pieces
        (["x\ufffd", "x\ufffd"], ["x", "\ufffd"]),  # one that stays broken
        (["aS\ufffd", "aSé"], ["a", "Sé"]),
    ],
)
def test_what_may_be_taken_back_is_not_shown_before_it_is_settled(texts, deltas):
    whole = [*map(event, texts), event(texts[-1], "stop"), DONE]
    found, reply, _ = streamed(*whole, stop=("STOP", " STOP!"))
    assert found == deltas
    assert "".join(found) == reply.text == texts[-1]


def test_a_text_that_is_not_what_was_shown_is_an_error():
    deltas, error, _ = streamed(event("aX"), event("ab"), event("abc", "stop"), DONE)
    assert deltas == ["aX"]
    assert type(error) is BackendError
    assert "took back text" in str(error)
    deltas, error, _ = streamed(event("abc"), event("ab", "stop"), DONE)
    assert (deltas, type(error)) == (["abc"], BackendError)


def test_a_stream_may_end_without_its_mark_but_not_too_early():
    assert streamed(event("a"), event("ab", "length"))[1].finish_reason is FinishReason.LENGTH
    assert streamed(event("ab", "stop"), ends=False)[1].text == "ab"
    for ends in (True, False):
        deltas, error, canned = streamed(event("a"), event("ab"), ends=ends)
        assert type(error).__mro__[1] is EngineUnavailable
        assert deltas == ["a", "b"]
        assert len(canned.bodies) == 1  # what was shown is not asked for again


def test_a_stream_dropped_before_it_showed_anything_is_asked_for_again():
    again = [events(event("ab", "stop"), DONE)]
    deltas, reply, canned = streamed(event(""), ends=False, then=again)
    assert (deltas, reply.text, len(canned.bodies)) == (["ab"], "ab", 2)


def test_a_stream_that_stays_open_after_its_mark_is_done():
    deltas, reply, _ = streamed(event("ab", "stop"), DONE, ends=False)
    assert (deltas, reply.text) == (["ab"], "ab")


def test_errors_inside_a_stream():
    failed = b'data: {"error": {"message": "no such grammar"}}\n\n'
    _, error, _ = streamed(event("a"), failed, DONE)
    assert type(error) is BackendError
    assert "no such grammar" in str(error)
    assert "not JSON" in str(streamed(b"data: {oops\n\n", DONE)[1])
    assert "no completion" in str(streamed(b"data: 3\n\n", DONE)[1])


def test_a_real_servers_dropped_stream(server):
    server.cut_stream_after = 2
    deltas: list[str] = []
    with pytest.raises(EngineUnavailable):
        ask(server.url, lambda b: b.generate(PROMPT, Sampling(40), deltas.append))
    assert deltas
    assert len(server.requests) == 1


def test_an_event_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(sglang_http, "MAX_REPLY_BYTES", 100)
    _, error, _ = streamed(b"data: " + b"x" * 60, b"x" * 60)
    assert "over 100 bytes" in str(error)
