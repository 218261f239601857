"""The endpoints of SGLang's native API, as its own front end uses them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from aiohttp import web

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.calls.guard import CALLER
from sgc.runtime.engine.http.errors import HttpError, Json
from sgc.runtime.engine.http.native.replies import partial, whole
from sgc.runtime.engine.http.native.requests import Generations, generations
from sgc.runtime.engine.http.render import dumps, json_text, rendered
from sgc.runtime.engine.http.running import Runs
from sgc.runtime.engine.http.sampling import text_prompt
from sgc.runtime.engine.http.sse import respond
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.server import EngineFacts, engine_version
from sgc.runtime.engine.server.shared import LEAVING, Shared

HEALTH_TIMEOUT_S = 20.0


class NativeApi:
    def __init__(self, facts: EngineFacts, shared: Shared, runs: Runs, bodies: BodyReader) -> None:
        self._facts = facts
        self._shared = shared
        self._runs = runs
        self._bodies = bodies

    def routes(self) -> list[Any]:
        flush, info, server = self._flush_cache, self._model_info, self._server_info
        return [
            web.post("/generate", self._generate),
            web.put("/generate", self._generate),
            web.get("/health", self._health),
            web.get("/health_generate", self._health_generate),
            web.get("/get_model_info", info),
            web.get("/model_info", info),
            web.get("/get_server_info", server),
            web.get("/server_info", server),
            web.post("/flush_cache", flush),
        ]

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        asked = generations(await self._bodies.read(request), self._facts)
        if asked.stream:
            async with aclosing(self._events(asked, request[CALLER])) as events:
                return await respond(request, events)
        found = await self._runs.finals(asked.requests, request[CALLER])
        return json_text(await rendered(lambda: _finals(asked, found), asked.has_rows))

    async def _events(self, asked: Generations, caller: Caller) -> AsyncGenerator[str]:
        """Each event holds the whole text so far."""
        texts = [""] * len(asked.requests)
        async with aclosing(self._runs.replies(asked.requests, caller)) as replies:
            async for reply in replies:
                i = reply.id
                if reply.HasField("delta"):
                    texts[i] += "" if asked.shown[i].is_prefill else reply.delta.text
                    yield _event(asked, i, partial(texts[i], asked.shown[i]))
                else:
                    yield await rendered(lambda: _last(asked, reply), asked.has_rows)  # noqa: B023

    async def _health(self, request: web.Request) -> web.Response:
        """Says only that the server answers and takes requests; the server ends when the step
        process ends."""
        if self._shared.is_leaving:
            raise HttpError(503, LEAVING, code="unavailable")
        return web.Response()

    async def _health_generate(self, request: web.Request) -> web.Response:
        """Checks that the engine can generate a token."""
        sampling = pb.Sampling(max_tokens=1, top_p=1.0, top_k=-1, repetition_penalty=1.0)
        probe = pb.Request(
            prompt=text_prompt("a", self._facts), generate=pb.Generate(sampling=sampling)
        )
        try:
            async with asyncio.timeout(HEALTH_TIMEOUT_S):
                await self._runs.finals([probe], request[CALLER])
        except TimeoutError as error:
            message = f"no token was generated within {HEALTH_TIMEOUT_S:g} s"
            raise HttpError(503, message, code="unavailable") from error
        return web.Response()

    async def _model_info(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "model_path": self._facts.model,
                "tokenizer_path": self._facts.model,
                "is_generation": True,
                "preferred_sampling_params": None,
                "has_image_understanding": not isinstance(self._facts.limits.images, str),
                "has_audio_understanding": False,
            }
        )

    async def _server_info(self, request: web.Request) -> web.Response:
        stats, limits = await self._shared.stats(), self._facts.limits
        return web.json_response(
            {
                "model_path": self._facts.model,
                "served_model_name": self._facts.model,
                "tokenizer_path": self._facts.model,
                "version": f"sgc {engine_version()}",
                "dtype": self._facts.ready.dtype,
                "device": self._facts.ready.device,
                "weights": self._facts.ready.weights,
                "kv": self._facts.ready.kv,
                "context_length": limits.max_context,
                "max_total_num_tokens": limits.pool_tokens,
                "max_req_input_len": limits.max_positions,
                "num_free_tokens": stats.free_tokens,
                "num_running_reqs": stats.running_requests,
                "num_waiting_reqs": stats.waiting_requests,
            }
        )

    async def _flush_cache(self, request: web.Request) -> web.Response:
        n = await self._shared.link.flush_cache()
        return web.Response(text=f"Cache flushed: {n} tokens.\n")


def _finals(asked: Generations, found: Sequence[pb.Generated]) -> str:
    replies = [_final(asked, i, generated) for i, generated in enumerate(found)]
    return dumps(replies if asked.is_list else replies[0])


def _last(asked: Generations, reply: pb.Reply) -> str:
    return _event(asked, reply.id, _final(asked, reply.id, reply.generated))


def _event(asked: Generations, index: int, reply: Json) -> str:
    return dumps({**reply, "index": index} if asked.is_list else reply)


def _final(asked: Generations, index: int, generated: pb.Generated) -> Json:
    sampling = asked.requests[index].generate.sampling
    return whole(generated, sampling, asked.shown[index])
