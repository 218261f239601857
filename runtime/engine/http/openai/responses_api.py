"""OpenAI's Responses API: replies as items, without stored state and built-in tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from aiohttp import web

from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.calls.guard import CALLER
from sgc.runtime.engine.http.errors import HttpError, Json
from sgc.runtime.engine.http.openai.chat_lanes import ChatLanes
from sgc.runtime.engine.http.openai.response_items import Response
from sgc.runtime.engine.http.openai.response_requests import response_of
from sgc.runtime.engine.http.render import dumps, json_text, rendered
from sgc.runtime.engine.http.running import Runs
from sgc.runtime.engine.http.sse import respond
from sgc.runtime.engine.http.token_texts import TokenTexts
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.server import EngineFacts


class ResponsesApi:
    def __init__(self, facts: EngineFacts, runs: Runs, bodies: BodyReader) -> None:
        self._facts, self._runs, self._bodies = facts, runs, bodies
        self._texts = TokenTexts(facts.tokenizer)
        self._lanes = ChatLanes()

    def routes(self) -> list[Any]:
        path = "/v1/responses/{id:.+}"
        return [
            web.post("/v1/responses", self._create),
            web.get(path, self._stored),
            web.delete(path, self._stored),
        ]

    async def _stored(self, request: web.Request) -> web.Response:
        message = "there is no such response: nothing is stored here"
        raise HttpError(404, message, "id", "response_not_found")

    async def _create(self, request: web.Request) -> web.StreamResponse:
        body = await self._bodies.read(request)
        asked = await self._lanes.run(
            body, request.protocol, lambda: response_of(body, self._facts)
        )
        model = asked.completions.adapter or self._facts.model
        response = Response(asked, model, self._texts)
        has_rows = asked.completions.logprobs is not None
        if asked.completions.stream:
            events = self._events(response, request[CALLER], has_rows)
            async with aclosing(events):
                return await respond(request, events, lambda error: dumps(response.failed(error)))
        async with aclosing(self._replies(response, request[CALLER])) as replies:
            async for _ in replies:
                pass
        return json_text(await rendered(lambda: dumps(response.whole()), has_rows))

    def _replies(self, response: Response, caller: Caller) -> AsyncGenerator[Any]:
        return self._runs.replies(response.begin(), caller, response.follow, response.blame)

    async def _events(
        self, response: Response, caller: Caller, has_rows: bool
    ) -> AsyncGenerator[str]:
        """Yields events; none before the first reply, so that an error can have its own status."""
        async with aclosing(self._replies(response, caller)) as replies:
            async for reply in replies:
                is_large = has_rows and reply.HasField("generated")
                for text in await rendered(partial(_dumped, response.events()), is_large):
                    yield text


def _dumped(events: list[Json]) -> list[str]:
    return [dumps(event) for event in events]
