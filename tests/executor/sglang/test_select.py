"""Selects over SGLang's API, the rest of what a server does, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest
from executor.sglang.asking import (
    DONE,
    GREEDY,
    INFO,
    PROMPT,
    ask,
    ask_canned,
    completion,
    event,
    events,
    http,
)
from waiting import BOUND_S

from sgc.errors import BackendError, ContextExceeded, EngineUnavailable, Overloaded, UsageError
from sgc.runtime.executor.backends.sglang import http as sglang_http
from sgc.runtime.executor.backends.sglang.backend import SGLangBackend
from sgc.runtime.executor.interface import choice_methods
from sgc.runtime.executor.interface.backend import (
    TextRun,
    Usage,
)

# -- select --

pytestmark = pytest.mark.usefixtures("short_backoff")


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
        full = asyncio.Event()

        async def serve(reader, writer):
            nonlocal running, most
            is_info = (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET")
            running += 1
            most = max(most, running)
            if not is_info:  # until as many as may be are here, and time for one too many
                await asyncio.wait_for(full.wait(), BOUND_S) if running < 4 else full.set()
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
    assert len(canned.bodies) == sglang_http.RETRIES.max_tries


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
            await asyncio.wait_for(asked.wait(), BOUND_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(closed.wait(), BOUND_S)
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
