"""A scripted provider over HTTP: OpenAI's chat and text completions, and Anthropic's messages.

There is no model in it: a reply is a function of the request. What was asked is kept as it came.
Faults are scripted by the number of the request.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]
PATHS = {"/v1/chat/completions": "chat", "/v1/completions": "text", "/v1/messages": "messages"}


@dataclass(frozen=True)
class Ask:
    """One request. headers: by small names; text: all that was said, as one text."""

    number: int
    kind: str
    raw: bytes
    headers: dict[str, str]
    query: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> Json:
        return json.loads(self.raw)

    @property
    def text(self) -> str:
        body = self.body
        if self.kind == "text":
            return str(body["prompt"])
        said = [*([{"content": body["system"]}] if "system" in body else []), *body["messages"]]
        return "".join(_text(message["content"]) for message in said)

    @property
    def schema(self) -> Json | None:
        body = self.body
        if self.kind == "messages":
            found = body.get("output_config", {}).get("format")
        else:
            found = body.get("response_format", {}).get("json_schema")
        return found["schema"] if found else None

    @property
    def stops(self) -> list[str]:
        return self.body.get("stop_sequences" if self.kind == "messages" else "stop") or []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "<image>") for part in content)


@dataclass
class Fault:
    """What happens instead of a reply. kind: status, timeout, cut, double or garbage."""

    kind: str
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None


def echo(ask: Ask) -> str:
    return f" reply {len(ask.text)}"


def first_choice(ask: Ask, choices: list[str]) -> str:
    return choices[0]


class ProviderServer:
    """Serves until `close`, on a thread of its own. asks: those that came, faulty ones too."""

    def __init__(
        self,
        reply: Callable[[Ask], str] = echo,
        prefer: Callable[[Ask, list[str]], str] = first_choice,
        fault: Callable[[Ask], Fault | None] = lambda ask: None,
        owned_by: str = "",
        usage: Json | None = None,
    ) -> None:
        self.reply, self.prefer, self.fault, self.owned_by = reply, prefer, fault, owned_by
        self.usage = usage
        self.asks: list[Ask] = []
        self.answered: list[Ask] = []
        self.n_now = self.n_most = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port: int = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[Json]:
        return [ask.body for ask in self.asks]

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _start(self) -> int:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        for path in PATHS:
            app.router.add_post(path, self._post)
        app.router.add_get("/v1/models", self._models)
        self.add_routes(app)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]

    def add_routes(self, app: web.Application) -> None:
        """Routes of a subclass."""

    async def _models(self, request: web.Request) -> web.Response:
        row = {"id": "served", "object": "model", "created": 0, "owned_by": self.owned_by}
        return web.json_response({"object": "list", "data": [row]})

    async def _post(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        ask = Ask(len(self.asks), PATHS[request.path], raw, headers, dict(request.query))
        self.asks.append(ask)
        self.n_now += 1
        self.n_most = max(self.n_most, self.n_now)
        try:
            return await self._answer(request, ask)
        finally:
            self.n_now -= 1

    async def _answer(self, request: web.Request, ask: Ask) -> web.StreamResponse:
        fault = self.fault(ask)
        kind = fault.kind if fault is not None else ""
        if fault is not None and kind == "status":
            body = fault.body or {"error": {"message": "scripted", "type": "scripted"}}
            return web.json_response(body, status=fault.status, headers=fault.headers)
        if kind == "timeout":
            await asyncio.sleep(30)
        if kind == "garbage":
            return web.Response(text="{not json", content_type="application/json")
        texts = [self._completion(ask) for _ in range(ask.body.get("n", 1))]
        if ask.body.get("stream"):
            return await self._stream(request, ask, texts[0], kind)
        if kind == "cut":
            return await self._cut(request)
        if not kind:
            self.answered.append(ask)
        whole = _whole_message if ask.kind == "messages" else _whole_completion
        return web.json_response(whole(ask, texts, self._usage(ask, texts)))

    async def _cut(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = 1000
        await response.prepare(request)
        await response.write(b'{"id": "x", ')
        assert request.transport is not None
        request.transport.close()
        return response

    async def _stream(
        self, request: web.Request, ask: Ask, made: tuple[str, str | None], kind: str
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        events = _message_events if ask.kind == "messages" else _completion_events
        lines = list(events(ask, made, self._usage(ask, [made])))
        if kind == "cut":
            lines = lines[: len(lines) // 2]
        if kind == "double":
            lines = lines[:-1] + lines
        for line in lines:
            await response.write(line)
        if kind == "cut":
            assert request.transport is not None
            request.transport.close()
            return response
        if not kind:
            self.answered.append(ask)
        await response.write_eof()
        return response

    def _completion(self, ask: Ask) -> tuple[str, str | None]:
        """The text, and the stop that ended it."""
        schema = ask.schema
        values = (schema or {}).get("properties", {}).get("value", {})
        if "enum" in values:
            return json.dumps({"value": self.prefer(ask, values["enum"])}), None
        chosen = ask.body.get("structured_outputs", {}).get("choice")
        if chosen:
            return self.prefer(ask, chosen), None
        text = self.reply(ask)
        found = [(text.index(stop), stop) for stop in ask.stops if stop in text]
        if not found:
            return text, None
        at, stop = min(found)
        return text[:at], stop

    def _usage(self, ask: Ask, made: list[tuple[str, str | None]]) -> Json:
        if self.usage is not None:
            return self.usage
        n_in, n_out = len(ask.text) // 4 + 1, sum(len(text) // 4 + 1 for text, _ in made)
        if ask.kind == "messages":
            return {"input_tokens": n_in, "output_tokens": n_out}
        return {"prompt_tokens": n_in, "completion_tokens": n_out, "total_tokens": n_in + n_out}


def _whole_completion(ask: Ask, made: list[tuple[str, str | None]], usage: Json) -> Json:
    choices = []
    for index, (text, stop) in enumerate(made):
        content = {"text": text}
        if ask.kind == "chat":
            content = {"message": {"role": "assistant", "content": text}}  # type: ignore[dict-item]
        choices.append({"index": index, **content, "finish_reason": "stop", "stop_reason": stop})
    return {"id": f"c{ask.number}", "object": "chat.completion", "created": 0,
            "model": ask.body["model"], "choices": choices, "usage": usage}  # fmt: skip


def _whole_message(ask: Ask, made: list[tuple[str, str | None]], usage: Json) -> Json:
    text, stop = made[0]
    return {"id": f"m{ask.number}", "type": "message", "role": "assistant",
            "model": ask.body["model"], "content": [{"type": "text", "text": text}],
            "stop_reason": "stop_sequence" if stop else "end_turn", "stop_sequence": stop,
            "usage": usage}  # fmt: skip


def _pieces(text: str) -> list[str]:
    return [text[i : i + 3] for i in range(0, len(text), 3)]


def _completion_events(ask: Ask, made: tuple[str, str | None], usage: Json) -> Iterator[bytes]:
    head = {"id": f"c{ask.number}", "object": "chunk", "created": 0, "model": ask.body["model"]}
    for piece in _pieces(made[0]):
        content: Json = {"text": piece} if ask.kind == "text" else {"delta": {"content": piece}}
        yield _data({**head, "choices": [{"index": 0, **content, "finish_reason": None}]})
    end: Json = {"text": ""} if ask.kind == "text" else {"delta": {}}
    yield _data({**head, "choices": [{"index": 0, **end, "finish_reason": "stop"}]})
    if ask.body.get("stream_options", {}).get("include_usage"):
        yield _data({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _message_events(ask: Ask, made: tuple[str, str | None], usage: Json) -> Iterator[bytes]:
    text, stop = made
    start = {"id": f"m{ask.number}", "type": "message", "role": "assistant", "content": [],
             "model": ask.body["model"], "stop_reason": None, "stop_sequence": None,
             "usage": {**usage, "output_tokens": 1}}  # fmt: skip
    yield _event({"type": "message_start", "message": start})
    block = {"type": "text", "text": ""}
    yield _event({"type": "content_block_start", "index": 0, "content_block": block})
    yield _event({"type": "ping"})
    for piece in _pieces(text):
        delta = {"type": "text_delta", "text": piece}
        yield _event({"type": "content_block_delta", "index": 0, "delta": delta})
    yield _event({"type": "content_block_stop", "index": 0})
    end = {"stop_reason": "stop_sequence" if stop else "end_turn", "stop_sequence": stop}
    yield _event({"type": "message_delta", "delta": end,
                  "usage": {"output_tokens": usage["output_tokens"]}})  # fmt: skip
    yield _event({"type": "message_stop"})


def _data(value: Json) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _event(value: Json) -> bytes:
    return f"event: {value['type']}\n".encode() + _data(value)
