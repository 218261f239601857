"""OpenAI's endpoints: models, chat completions, completions."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from aiohttp import web

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.beside import Beside
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.calls.guard import CALLER
from sgc.runtime.engine.http.errors import Json
from sgc.runtime.engine.http.openai import requests as asked_of
from sgc.runtime.engine.http.openai.chat_lanes import ChatLanes
from sgc.runtime.engine.http.openai.replies import Replies
from sgc.runtime.engine.http.render import dumps, json_text, rendered
from sgc.runtime.engine.http.running import Runs
from sgc.runtime.engine.http.sse import respond
from sgc.runtime.engine.http.token_texts import TokenTexts
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.server import EngineFacts


class OpenAIApi:
    def __init__(
        self, facts: EngineFacts, runs: Runs, bodies: BodyReader, beside: Beside | None = None
    ) -> None:
        """beside: another part of the system, with models of its own."""
        self._facts, self._beside = facts, beside
        self._runs = runs
        self._bodies = bodies
        self._texts = TokenTexts(facts.tokenizer)
        self._started = int(time.time())
        self._lanes = ChatLanes()

    @property
    def _others(self) -> Sequence[str]:
        return () if self._beside is None else self._beside.models

    def routes(self) -> list[Any]:
        return [
            web.get("/v1/models", self._models),
            web.get("/v1/models/{name:.+}", self._model),
            web.post("/v1/chat/completions", self._chat),
            web.post("/v1/completions", self._complete),
        ]

    async def _models(self, request: web.Request) -> web.Response:
        own = [self._description(name) for name in self._facts.models]
        others = [self._named(name) for name in sorted(self._others)]
        return web.json_response({"object": "list", "data": [*own, *others]})

    async def _model(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name in self._others:
            return web.json_response(self._named(name))
        asked_of.check_name(name, self._facts)
        return web.json_response(self._description(name))

    def _named(self, name: str) -> Json:
        return {"id": name, "object": "model", "created": self._started, "owned_by": "sgc"}

    def _description(self, name: str) -> Json:
        """parent: for an adapter, the model that it changes, as in vLLM."""
        return {
            **self._named(name),
            "parent": None if name == self._facts.model else self._facts.model,
            "max_model_len": self._facts.limits.max_positions,
            "pooling": self._facts.limits.pooling.name or None,
            "embedding_size": self._facts.ready.hidden_size,
        }

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await self._bodies.read(request)
        model = body.get("model")
        if self._beside is not None and str(model).startswith(self._beside.prefix):
            return await self._beside.chat(request, body)
        asked = await self._lanes.run(
            body, request.protocol, lambda: asked_of.chat_completions(body, self._facts)
        )
        return await self._answer(request, asked)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await self._bodies.read(request)
        return await self._answer(request, asked_of.text_completions(body, self._facts))

    async def _answer(
        self, request: web.Request, asked: asked_of.Completions
    ) -> web.StreamResponse:
        replies = Replies(asked, asked.adapter or self._facts.model, self._texts)
        has_rows = asked.logprobs is not None
        if asked.stream:
            async with aclosing(self._chunks(asked, replies, request[CALLER])) as chunks:
                return await respond(request, chunks)
        async with aclosing(self._replies(replies, request[CALLER])) as found:
            async for _ in found:
                pass
        return json_text(await rendered(lambda: dumps(replies.whole()), has_rows))

    def _replies(self, writer: Replies, caller: Caller) -> AsyncGenerator[pb.Reply]:
        return self._runs.replies(writer.begin(), caller, writer.follow, writer.blame)

    async def _chunks(
        self, asked: asked_of.Completions, writer: Replies, caller: Caller
    ) -> AsyncGenerator[str]:
        async with aclosing(self._replies(writer, caller)) as replies:
            async for reply in replies:
                has_rows = asked.logprobs is not None and reply.HasField("generated")
                chunks = partial(_dumped, writer, reply)
                for chunk in await rendered(chunks, has_rows):
                    yield chunk
        if asked.include_usage:
            yield dumps(writer.usage_chunk())


def _dumped(writer: Replies, reply: pb.Reply) -> list[str]:
    return [dumps(chunk) for chunk in writer.chunks(reply)]
