"""Asking a server over SGLang's API: what goes out, what comes back, and what goes wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from sglang_server import ScriptedServer

from sgc.errors import BackendError, ContextExceeded, EngineUnavailable, Overloaded, UsageError
from sgc.runtime.executor import choices as choice_methods
from sgc.runtime.executor import sglang_http
from sgc.runtime.executor.backend import (
    OPTIONAL_SAMPLING,
    FinishReason,
    LogprobsAsked,
    MediaRun,
    Sampling,
    TextRun,
    TokenRun,
    Usage,
)
from sgc.runtime.executor.media import media
from sgc.runtime.executor.sglang_backend import SGLangBackend

GREEDY = Sampling(max_tokens=12, temperature=0.0)
PROMPT = (TextRun("Say a word about Paris: "),)
PNG = media(b"\x89PNG\r\n\x1a\n rest")
VIDEO = media(b"\xff\xd8\xff frames", "video/jpeg-frames", n_frames=3)


@pytest.fixture(scope="module")
def shared_server() -> Iterator[ScriptedServer]:
    with ScriptedServer(model="Qwen/Qwen2.5-7B-Instruct", chunk_tokens=2) as server:
        yield server


@pytest.fixture
def server(shared_server: ScriptedServer) -> ScriptedServer:
    shared_server.reset()
    shared_server.fail_on, shared_server.cut_stream_after = (), None
    shared_server.delay_s, shared_server.pads_first_logprob = 0.0, True
    return shared_server


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch):
    monkeypatch.setattr(sglang_http, "FIRST_BACKOFF_S", 0.001)


def ask(url: str, use: Any, **settings: Any) -> Any:
    """What `use(backend)` gives."""

    async def run() -> Any:
        async with SGLangBackend(url, **settings) as backend:
            return await asyncio.wait_for(use(backend), 5)

    return asyncio.run(run())


# -- a server of canned bytes, for what a real one should not do --

INFO = b'{"model_path": "m"}'
DONE = b"data: [DONE]\n\n"


def http(body: bytes, status: str = "200 OK", head: str = "", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head += f"Connection: close\r\nContent-Length: {size}\r\n"
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def events(*chunks: bytes, ends: bool = True) -> list[bytes]:
    """A chunked reply, each chunk written by itself."""
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head, *[b"%x\r\n%s\r\n" % (len(c), c) for c in chunks], *[b"0\r\n\r\n"] * ends]


def completion(text: str, finish: Any = "stop", **meta: Any) -> dict[str, Any]:
    return {"text": text, "meta_info": {"finish_reason": finish and {"type": finish}, **meta}}


def event(text: str, finish: Any = None) -> bytes:
    return f"data: {json.dumps(completion(text, finish), ensure_ascii=False)}\n\n".encode()


class Canned:
    """Each request to /generate gets the next reply, then the connection ends."""

    def __init__(self, replies: list[Any], info: bytes) -> None:
        self.replies, self.info = replies, info
        self.heads: list[bytes] = []
        self.bodies: list[Any] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            reply: Any = self.info
            if head.startswith(b"POST"):
                self.heads.append(head)
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.bodies.append(json.loads(await reader.readexactly(size) or b"null"))
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            for piece in reply if isinstance(reply, list) else [reply]:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.002)
        finally:
            writer.close()


@asynccontextmanager
async def canned_server(replies: list[Any], info: bytes) -> AsyncIterator[Canned]:
    canned = Canned(replies, info)
    server = await asyncio.start_server(canned.serve, "127.0.0.1", 0)
    canned.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield canned


def ask_canned(*replies: Any, use: Any = None, info: bytes | None = None, **settings: Any) -> Any:
    """What `use(backend)` gives, or the error, and the server."""
    use = use or (lambda backend: backend.generate(PROMPT, GREEDY))

    async def run() -> Any:
        async with (
            canned_server(list(replies), info or http(INFO)) as canned,
            SGLangBackend(canned.url, **settings) as backend,
        ):
            try:
                return await asyncio.wait_for(use(backend), 5), canned
            except BackendError as error:
                return error, canned

    return asyncio.run(run())


def streamed(*chunks: bytes, ends: bool = True, then: Any = (), stop: tuple[str, ...] = ()) -> Any:
    """The deltas of a stream, its result or error, and the server."""
    deltas: list[str] = []
    sampling = replace(GREEDY, stop=stop)
    found, canned = ask_canned(
        events(*chunks, ends=ends),
        *then,
        use=lambda backend: backend.generate(PROMPT, sampling, deltas.append),
    )
    return deltas, found, canned


# -- what it is --


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


# -- select --


@pytest.mark.parametrize("pads", [True, False])
def test_choices_are_scored_as_sglang_does(server, pads):
    server.pads_first_logprob = pads
    prompt, choices = (TextRun("The sky is"),), (" blue", " red wine", "n't")
    scored = ask(server.url, lambda b: b.score(prompt, choices))
    head, batch = server.requests
    assert head["sampling_params"] == {"max_new_tokens": 0, "temperature": 0.0}
    assert batch == {
        "text": ["The sky is blue", "The sky is red wine", "The sky isn't"],
        "sampling_params": {"max_new_tokens": 0, "temperature": 0.0},
        "return_logprob": True,
        "return_text_in_logprobs": True,
        "logprob_start_len": 1,
    }
    # The token before the prompt's last has no log-probability where the server pads.
    extra = () if pads else (" sky",)
    texts = [score.texts for score in scored.choices]
    assert texts[0] == (*extra, " is", " blue")
    assert texts[1] == (*extra, " is", " red", " wine")
    assert texts[2][: len(extra) + 1] == (*extra, " isn")
    for score in scored.choices:
        assert len(score.ids) == len(score.logprobs) == len(score.texts)
        assert all(value < 0 for value in score.logprobs)
    assert scored.usage.prompt_tokens > 3
    assert scored.usage.completion_tokens == 0


def rows_reply(*rows: Any) -> dict[str, Any]:
    return completion("", "length", prompt_tokens=3, input_token_logprobs=[list(r) for r in rows])


def score_canned(*replies: Any, unconditional: bool = False) -> Any:
    head = completion("", "length", prompt_tokens=3, cached_tokens=1)
    bodies = [http(json.dumps(reply).encode()) for reply in (head, *replies)]
    prompt = (TextRun("a b"),)
    return ask_canned(*bodies, use=lambda b: b.score(prompt, ("x",), unconditional))[0]


def test_the_prompts_last_token_is_left_out_where_it_stayed_as_it_was():
    stayed = score_canned(rows_reply((-1.0, 7, " b"), (-2.0, 8, "x")))
    assert stayed.choices[0].ids == (8,)
    grew = score_canned(rows_reply((-1.0, 7, " bx"), (-2.0, 8, "y")))
    assert grew.choices[0].ids == (7, 8)
    padded = score_canned(rows_reply((None, 6, "a"), (-1.0, 7, " b"), (-2.0, 8, "x")))
    assert padded.choices[0].ids == (7, 8)
    alone = score_canned(rows_reply((-1.0, 7, " b")))
    assert alone.choices[0].ids == (7,)
    without_text = score_canned(rows_reply((-1.0, 7, None), (-2.0, 8, None)))
    assert without_text.choices[0].ids == (7, 8)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (rows_reply((None, 6, "a")), "no log-probability"),
        (rows_reply(), "no log-probability"),
        (completion("", "length"), "as input_token_logprobs"),
        (rows_reply((-1.0, "seven", "a")), "as input_token_logprobs"),
        (rows_reply((-1.0, 7)), "as input_token_logprobs"),
    ],
)
def test_scores_that_are_none(reply, words):
    found = score_canned(reply)
    assert type(found) is BackendError
    assert words in str(found)


def test_choices_without_the_prompt(server):
    prompt, choices = (TextRun("The sky is"),), (" blue", " red wine")
    scored = ask(server.url, lambda b: b.score(prompt, choices, unconditional=True))
    third = server.requests[2]
    assert third["input_ids"] == [list(score.ids) for score in scored.choices]
    assert third["return_logprob"]
    for score in scored.choices:
        assert score.unconditional[0] is None
        assert len(score.unconditional) == len(score.logprobs)
        assert all(value < 0 for value in score.unconditional[1:])
    method = "unconditional_likelihood_normalized"
    assert all(map(bool, choice_methods.METHODS[method](scored.choices)))


def test_unconditional_rows_must_fit():
    rows = rows_reply((-1.0, 7, "x"), (-2.0, 8, "y"))
    short = score_canned(rows, rows_reply((-3.0, 8, None)), unconditional=True)
    assert short.choices[0].unconditional == (None, -3.0)
    found = score_canned(rows, rows_reply(*[(-3.0, 8, None)] * 3), unconditional=True)
    assert "3 of a choice's 2 tokens" in str(found)


# -- the rest of what a server does --


def test_prefixes_and_the_cache(server):
    async def use(backend):
        assert await backend.commit_prefix(()) == Usage()
        usage = await backend.commit_prefix(PROMPT, ("a", "b"))
        assert await backend.flush_cache() == 0
        return usage, await backend.server_info()

    usage, info = ask(server.url, use)
    assert usage.prompt_tokens == usage.cached_tokens + usage.computed_tokens > 0
    assert usage.completion_tokens == 0
    assert info["tokenizer_path"]
    params = {"max_new_tokens": 0, "temperature": 0.0}
    assert server.requests == [{"text": PROMPT[0].text, "sampling_params": params}]


def test_the_key_is_sent_and_must_be_a_header():
    _, canned = ask_canned(http(json.dumps(completion("a")).encode()), api_key="secret")
    assert b"Authorization: Bearer secret\r\n" in canned.heads[0]
    with pytest.raises(UsageError, match="ASCII"):
        SGLangBackend("http://h:1", api_key="a\r\nb")


def test_many_at_once_and_no_more_than_are_let():
    running = most = 0

    async def run() -> None:
        async def serve(reader, writer):
            nonlocal running, most
            is_info = (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET")
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            writer.write(http(INFO if is_info else json.dumps(completion("a")).encode()))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, SGLangBackend(url, max_in_flight=4) as backend:
            await asyncio.gather(*[backend.generate(PROMPT, GREEDY) for _ in range(12)])

    asyncio.run(run())
    assert most == 4


def test_connections_are_used_again():
    n_connections = 0
    replies = {b"GET": [http(INFO)], b"POST": [http(json.dumps(completion("a")).encode())]}
    streams = [b"".join(events(event("ab", "stop") + DONE))]

    async def run() -> None:
        async def serve(reader, writer):
            nonlocal n_connections
            n_connections += 1
            try:
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    found = replies[head.split()[0]]
                    if head.startswith(b"POST"):
                        size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                        is_stream = b'"stream":true' in await reader.readexactly(size)
                        found = streams if is_stream else found
                    writer.write(found[0].replace(b"Connection: close\r\n", b""))
            except asyncio.IncompleteReadError:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, SGLangBackend(url) as backend:
            for on_delta in (None, None, str, str, None):
                await backend.generate(PROMPT, GREEDY, on_delta)

    asyncio.run(run())
    assert n_connections == 1


# -- what goes wrong --


def test_a_servers_failure_is_told_in_its_words(server):
    server.fail_on = (1,)
    with pytest.raises(BackendError, match=r"answered 500: .*told to fail"):
        ask(server.url, lambda b: b.generate(PROMPT, GREEDY))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        ("400 Bad Request", b'{"error": {"message": "bad regex"}}', BackendError, "bad regex"),
        ("400 Bad Request", b'{"detail": [{"msg": "x"}]}', BackendError, "x"),
        ("500 Oops", b"boom " + b"z" * 900, BackendError, "boom"),
        ("500 Oops", b"", BackendError, "no message"),
        ("404 Not Found", b"", BackendError, "404"),
        ("401 Unauthorized", b"{}", BackendError, "api_key"),
        (
            "400 Bad Request",
            b'{"error": {"message": "The input (9 tokens) is longer than the model\'s context '
            b'length (8 tokens)."}}',
            ContextExceeded,
            "9 tokens",
        ),
    ],
)
def test_errors_by_status(status, body, kind, words):
    found, canned = ask_canned(http(body, status))
    assert isinstance(found, kind)
    assert not found.retryable
    assert words in str(found)
    assert len(str(found)) < 700
    assert len(canned.bodies) == 1


def test_redirects_are_not_followed():
    found, canned = ask_canned(http(b"", "307 Temporary Redirect", "Location: http://x.test/\r\n"))
    assert type(found) is BackendError
    assert "redirect" in str(found)
    assert len(canned.bodies) == 1


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_a_busy_server_is_asked_again_a_few_times(status):
    busy, good = http(b"queue is full", status), http(json.dumps(completion("a")).encode())
    reply, canned = ask_canned(busy, busy, good)
    assert (reply.text, len(canned.bodies)) == ("a", 3)
    found, canned = ask_canned(busy)
    assert isinstance(found, Overloaded)
    assert len(canned.bodies) == sglang_http.MAX_TRIES


def test_a_dropped_connection_is_asked_for_once_more():
    good = http(json.dumps(completion("a")).encode())
    cut = http(b'{"text": ', length=500)
    for dropped in (b"", cut):
        reply, canned = ask_canned(dropped, good)
        assert (reply.text, len(canned.bodies)) == ("a", 2)
    found, canned = ask_canned(cut)
    assert isinstance(found, EngineUnavailable)
    assert len(canned.bodies) == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{oops", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"3", "no completion"),
        (b'{"text": "a"}', "no completion"),
        (b'{"meta_info": {}}', "without text"),
        (b'{"text": "a", "meta_info": {"prompt_tokens": "9"}}', "counts prompt_tokens"),
        (b'{"text": "a", "meta_info": {"finish_reason": {"type": "abort", "message": "gone"}}}',
         "aborted the request: gone"),
    ],
)  # fmt: skip
def test_replies_that_are_none(body, words):
    found, _ = ask_canned(http(body))
    assert type(found) is BackendError
    assert words in str(found)


def test_what_does_not_speak_http():
    found, _ = ask_canned(b"SSH-2.0-OpenSSH\r\n\r\n")
    assert isinstance(found, BackendError)
    assert "HTTP" in str(found)


def test_a_reply_has_a_largest_size(monkeypatch):
    monkeypatch.setattr(sglang_http, "MAX_REPLY_BYTES", 100)
    for reply in (http(b"x" * 101), events(b"x" * 60, b"x" * 60)):
        assert "over 100 bytes" in str(ask_canned(reply)[0])


def test_nobody_there():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        for use in (lambda b: b.capabilities(), lambda b: b.generate(PROMPT, GREEDY)):
            with pytest.raises(EngineUnavailable, match=r"no server at[\s\S]*launch_server"):
                ask(url, use)


def test_a_reply_that_does_not_come(server):
    server.delay_s = 0.5
    with pytest.raises(EngineUnavailable, match=r"within 0\.1 s"):
        ask(server.url, lambda b: b.generate(PROMPT, GREEDY), timeout_s=0.1)


def test_text_that_is_none_is_refused_before_it_is_sent(server):
    with pytest.raises(BackendError, match="lone surrogate"):
        ask(server.url, lambda b: b.generate((TextRun("a\ud800"),), GREEDY))
    assert server.requests == []


def test_cancelling_a_call_closes_its_connection():
    async def run() -> bool:
        asked, closed = asyncio.Event(), asyncio.Event()

        async def serve(reader, writer):
            if (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET"):
                writer.write(http(INFO))
                writer.close()
                return
            asked.set()
            while await reader.read(1000):
                pass
            closed.set()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, SGLangBackend(f"http://127.0.0.1:{port}") as backend:
            task = asyncio.create_task(backend.generate(PROMPT, GREEDY))
            await asyncio.wait_for(asked.wait(), 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(closed.wait(), 2)
            return closed.is_set()

    assert asyncio.run(run())


def test_closing_fails_what_is_unfinished(server):
    server.delay_s = 0.5

    async def use(backend):
        await backend.capabilities()
        work = [asyncio.create_task(backend.generate(PROMPT, GREEDY)) for _ in range(3)]
        await asyncio.sleep(0.05)
        await backend.close()
        return await asyncio.gather(*work, return_exceptions=True)

    found = ask(server.url, use, max_in_flight=2)
    assert all(isinstance(error, EngineUnavailable) for error in found), found
