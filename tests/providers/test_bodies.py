"""Bodies that no provider sends: marked, compressed, too deep, pages, control characters.
Each ends in a typed error whose message may be shown."""

from __future__ import annotations

import asyncio
import gzip
import json
from unicodedata import category

import httpx2
import pytest
from aiohttp import web
from providers.clocks import JumpingClock
from providers.conftest import KEY
from providers.provider_server import Fault, _completion_events, _message_events

import sgc
from sgc.errors import BackendError
from sgc.runtime.executor.backends.providers.batches.contract import Key
from sgc.runtime.executor.backends.providers.models.models import Choices, facts_for
from sgc.runtime.executor.backends.providers.openai.api import OpenAIApi
from sgc.runtime.executor.backends.providers.openai.batches import OpenAIBatches
from sgc.runtime.executor.backends.providers.wire.errors import (
    MalformedReply,
    ProviderUnavailable,
    WrongServer,
)
from sgc.runtime.executor.backends.providers.wire.http import _Bounded
from sgc.runtime.executor.backends.providers.wire.retry import RETRIES
from sgc.runtime.executor.backends.providers.wire.settings import SdkSettings

MODELS = ["gpt-4o", "claude-haiku-4-5"]
STREAM = "text/event-stream"
DEEP = b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
DIGITS = b'{"usage": {"prompt_tokens": ' + b"9" * 5000 + b"}}"


@sgc.function
def program(s):
    s += "x" + sgc.gen("a", max_tokens=20)


@pytest.fixture
def fails(serve, ask):
    """The error of a program whose server sends this body, and how often the server was asked."""

    def run(model, body, kind="application/json", status=200, stream="auto", **headers):
        server = serve()

        async def answer(request, asked):
            head = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(body=body, content_type=kind, status=status, headers=head)

        server._answer = answer
        options = {"stream": stream} if stream == "always" else None
        endpoint = ask(server, model, options=options)
        endpoint.backend.limits.clock = JumpingClock()
        return program.run(backend=endpoint).error(), len(server.asks)

    return run


class Chunks(httpx2.AsyncByteStream):
    def __init__(self, chunks):
        self.chunks = chunks

    async def __aiter__(self):
        for chunk in self.chunks:
            yield chunk


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([b"\xef\xbb\xbfdata"], b"data"),
        ([b"\xef", b"\xbb", b"", b"\xbf", b"da", b"\xef\xbb\xbfta"], b"da\xef\xbb\xbfta"),
        ([b"da", b"ta"], b"data"),
        ([b"\xef", b"\xbbdata"], b"\xef\xbbdata"),
        ([b"\xef", b"\xbb"], b"\xef\xbb"),
        ([b"\xef\xbb\xbf"], b""),
        ([], b""),
    ],
)
def test_a_byte_order_mark_is_no_part_of_a_reply(chunks, text):
    async def read():
        return b"".join([chunk async for chunk in _Bounded(Chunks(chunks), 100)])

    assert asyncio.run(read()) == text


@pytest.mark.parametrize("model", MODELS)
def test_a_stream_with_a_byte_order_mark_is_whole(serve, ask, model):
    server = serve()

    async def answer(request, asked):
        events = _message_events if asked.kind == "messages" else _completion_events
        made = events(asked, ("hello there", None), server._usage(asked, []))
        return web.Response(body=b"\xef\xbb\xbf" + b"".join(made), content_type=STREAM)

    server._answer = answer
    state = program.run(backend=ask(server, model), stream=True)
    assert "".join(state.text_iter("a")) == "hello there"


@pytest.mark.parametrize("kind", ["application/json", STREAM])
@pytest.mark.parametrize("model", MODELS)
def test_a_compressed_reply_is_refused_before_it_is_unpacked(fails, model, kind):
    bomb = gzip.compress(b" " * 1_000_000)
    stream = "always" if kind == STREAM else "auto"
    error, n_asks = fails(model, bomb, kind, stream=stream, Content_Encoding="gzip")
    assert isinstance(error, WrongServer)
    assert "compresses its replies ('gzip')" in error.message
    assert n_asks == 1


@pytest.mark.parametrize("model", MODELS)
def test_a_compressed_failure_is_told_by_its_status(fails, model):
    page = gzip.compress(b"<html>busy</html>")
    error, n_asks = fails(model, page, status=503, Content_Encoding="gzip")
    assert isinstance(error, ProviderUnavailable)
    assert "503" in error.message
    assert n_asks == RETRIES.max_tries


@pytest.mark.parametrize("model", MODELS)
def test_a_reply_has_so_many_bytes_at_most(fails, model, monkeypatch):
    http = "sgc.runtime.executor.backends.providers.wire.http.MAX_REPLY_BYTES"
    monkeypatch.setattr(http, 1000)
    error, _ = fails(model, b" " * 1001)
    assert isinstance(error, MalformedReply)
    assert error.message == "the reply has over 1,000 bytes"


@pytest.mark.parametrize("body", [DEEP, DIGITS], ids=["deep", "digits"])
@pytest.mark.parametrize("stream", ["auto", "always"])
@pytest.mark.parametrize("model", MODELS)
def test_json_that_python_cannot_read_is_malformed(fails, model, stream, body):
    kind = "application/json" if stream == "auto" else STREAM
    sent = body if stream == "auto" else b"event: message_start\ndata: " + body + b"\n\n"
    error, n_asks = fails(model, sent, kind, stream=stream)
    assert isinstance(error, MalformedReply)
    assert n_asks == RETRIES.max_tries


@pytest.mark.parametrize("depth", [100, 400, 900])
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("model", MODELS)
def test_json_that_python_hardly_reads_ends_in_a_typed_error(fails, model, status, depth):
    nested = b"[" * depth + b"]" * depth
    body = b'{"error": %s, "choices": %s, "content": %s}' % (nested, nested, nested)
    error, _ = fails(model, body, status=status)
    assert isinstance(error, BackendError)


ODD_LOGPROBS = ["odd", 10**400, [1]]


@pytest.mark.parametrize("value", ODD_LOGPROBS, ids=["word", "huge", "list"])
def test_log_probabilities_are_numbers(fails, value):
    rows = {"content": [{"token": "a", "logprob": value, "top_logprobs": []}]}
    choice = {"message": {"content": "a"}, "finish_reason": "stop", "logprobs": rows}
    error, _ = fails("gpt-4o", json.dumps({"choices": [choice]}).encode())
    assert isinstance(error, MalformedReply)
    assert "odd logprobs" in error.message


@pytest.mark.parametrize("stream", ["auto", "always"])
@pytest.mark.parametrize("model", MODELS)
def test_a_page_is_no_reply(fails, model, stream):
    page = b"<html><title>Welcome</title></html>"
    error, n_asks = fails(model, page, "text/html", stream=stream)
    assert isinstance(error, WrongServer)
    assert "sent a page in HTML" in error.message
    assert "is the address right?" in error.hint
    assert n_asks == 1


@pytest.mark.parametrize("model", MODELS)
def test_a_server_that_does_not_stream_is_told_of(fails, model):
    error, _ = fails(model, b'{"choices": [], "content": []}', stream="always")
    assert isinstance(error, MalformedReply)
    assert "asked for a stream of events, and sent application/json" in error.message
    assert "run without a stream" in error.hint


@pytest.mark.parametrize(("body", "shown"), [("hi", "'hi'"), ([1], "'[1]'"), (7, "'7'")])
@pytest.mark.parametrize("model", MODELS)
def test_what_is_no_object_is_no_reply(fails, model, body, shown):
    error, _ = fails(model, json.dumps(body).encode())
    assert isinstance(error, MalformedReply)
    assert error.message == f"the server sent no object but {shown}"


WILD = f"\x1b[31mred\r\nsgc: done\u2028\u202e\ud800 {KEY}"
SHOWN = r"\x1b[31mred\r\nsgc: done\u2028\u202e\ud800 ***"
SAYING = [
    (400, {"error": {"message": WILD}}),
    (429, {"error": {"message": WILD}}),
    (200, {"choices": [{"message": {"content": "a"}, "finish_reason": [WILD]}]}),
    (200, {"choices": [{"message": {"refusal": WILD}, "finish_reason": "stop"}]}),
    (200, {"choices": [{"message": {"content": [WILD]}, "finish_reason": "stop"}]}),
    (200, {"content": WILD, "stop_reason": "end_turn"}),
    (200, {"content": [], "stop_reason": WILD}),
    (200, {"content": [], "stop_reason": "refusal", "stop_details": {"why": WILD}}),
    (200, WILD),
]


def assert_shown(error):
    assert KEY not in str(error)
    shown = error.message + error.hint
    assert not [each for each in shown if category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize(("status", "body"), SAYING, ids=lambda value: ascii(value)[:40])
@pytest.mark.parametrize("model", MODELS)
def test_what_a_server_says_cannot_write_to_the_terminal(fails, model, status, body):
    error, _ = fails(model, json.dumps(body).encode(), status=status)
    assert isinstance(error, BackendError)
    assert_shown(error)
    if status == 400:
        assert error.message == f"the provider said 400: {SHOWN}"


@pytest.mark.parametrize("model", MODELS)
def test_an_error_in_a_stream_cannot_write_to_the_terminal(fails, model):
    said = json.dumps({"type": "error", "error": {"message": WILD, "type": "odd"}}).encode()
    error, _ = fails(model, b"event: error\ndata: " + said + b"\n\n", STREAM, stream="always")
    assert isinstance(error, ProviderUnavailable)
    assert SHOWN in error.message
    assert_shown(error)


@pytest.mark.parametrize("kind", [ValueError, TypeError])
@pytest.mark.parametrize("model", MODELS)
def test_a_readers_error_is_not_the_servers(serve, ask, model, kind):
    def read(node, path, text):
        if text != "x":
            raise kind("the reader's own")

    server = serve()
    error = program.run(backend=ask(server, model), on_text=read).error()
    assert "the reader's own" in str(error)
    assert "the server's reply" not in str(error)
    assert len(server.asks) == 1


@pytest.mark.parametrize("model", MODELS)
def test_a_prompt_with_half_a_surrogate_pair_is_the_users_mistake(serve, ask, model):
    @sgc.function
    def odd(s):
        s += "x\ud83d" + sgc.gen("a", max_tokens=4)

    server = serve(fault=lambda ask: Fault("status", 500))
    error = odd.run(backend=ask(server, model)).error()
    assert type(error) is BackendError
    assert r"the request holds '\ud83d'" in error.message
    assert server.asks == []


PAGE = httpx2.MockTransport(lambda asked: httpx2.Response(200, html="<html><title>Hi</title>"))


@pytest.mark.parametrize("call", ["upload", "start", "look"])
def test_a_page_is_no_batch(call):
    async def run():
        sdk = SdkSettings(client={"http_client": httpx2.AsyncClient(transport=PAGE)})
        api = OpenAIApi("http://127.0.0.1/v1", KEY, 60, 1, is_own=False, sdk=sdk)
        batches = OpenAIBatches(api, facts_for("openai", "gpt-4o", Choices()))
        key = Key("job", 1, 0.0, 1)
        given = {"upload": (key, []), "start": (key, "file", []), "look": ("batch",)}
        await getattr(batches, call)(*given[call])

    with pytest.raises(WrongServer, match="a page in HTML, 'Hi', and no reply"):
        asyncio.run(run())
