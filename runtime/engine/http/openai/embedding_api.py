"""The endpoints for embeddings, and for scores and ranks made of them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.calls.guard import CALLER
from sgc.runtime.engine.http.errors import HttpError, Json
from sgc.runtime.engine.http.openai import embeddings as asked_of
from sgc.runtime.engine.http.openai.vectors import cosine, vectors_of, written
from sgc.runtime.engine.http.render import dumps, json_text, rendered
from sgc.runtime.engine.http.running import Runs
from sgc.runtime.engine.server.server import EngineFacts


class EmbeddingApi:
    def __init__(self, facts: EngineFacts, runs: Runs, bodies: BodyReader) -> None:
        self._facts, self._runs, self._bodies = facts, runs, bodies

    def routes(self) -> list[Any]:
        return [
            web.post("/v1/embeddings", self._embed),
            web.post("/v1/score", self._score),
            web.post("/v1/rerank", self._rerank),
        ]

    async def _embed(self, request: web.Request) -> web.Response:
        asked = asked_of.embeddings(await self._bodies.read(request), self._facts)
        found = await self._found(asked.texts, request)
        return json_text(await rendered(lambda: dumps(self._embedded(asked, found)), True))

    async def _score(self, request: web.Request) -> web.Response:
        asked = asked_of.pairs(await self._bodies.read(request), self._facts)
        found = await self._found(asked.texts, request)
        return json_text(await rendered(lambda: dumps(self._scored(asked, found)), True))

    async def _rerank(self, request: web.Request) -> web.Response:
        asked = asked_of.ranking(await self._bodies.read(request), self._facts)
        found = await self._found(asked.texts, request)
        return json_text(await rendered(lambda: dumps(self._ranked(asked, found)), True))

    async def _found(self, texts: asked_of.Texts, request: web.Request) -> list[pb.Embedded]:
        try:
            return await self._runs.embedded(texts.requests, request[CALLER])
        except HttpError as error:
            if error.status == 400 and error.request_id is not None:
                error.param = texts.fields[error.request_id]
            raise

    def _embedded(self, asked: asked_of.Embeddings, found: Sequence[pb.Embedded]) -> Json:
        vectors = vectors_of(found, asked.dimensions, asked.is_normalized)
        data = [
            {"object": "embedding", "index": i, "embedding": written(vector, asked.in_base64)}
            for i, vector in enumerate(vectors)
        ]
        named = {"object": "list", "data": data, "model": self._model(asked.texts)}
        return {**named, "usage": _usage(found)}

    def _scored(self, asked: asked_of.Pairs, found: Sequence[pb.Embedded]) -> Json:
        vectors = vectors_of(found)
        data = [
            {"index": i, "object": "score", "score": cosine(vectors[first], vectors[second])}
            for i, (first, second) in enumerate(asked.pairs)
        ]
        return {
            **self._head("score", asked.texts),
            "object": "list",
            "data": data,
            "usage": _usage(found),
        }

    def _ranked(self, asked: asked_of.Ranking, found: Sequence[pb.Embedded]) -> Json:
        query, *documents = vectors_of(found)
        scores = [cosine(query, document) for document in documents]
        best = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[: asked.top_n]
        results: list[Json] = [{"index": i, "relevance_score": scores[i]} for i in best]
        if asked.documents is not None:
            for result in results:
                result["document"] = asked.documents[result["index"]]
        return {**self._head("rerank", asked.texts), "results": results, "usage": _usage(found)}

    def _model(self, texts: asked_of.Texts) -> str:
        """The model's name as the request gave it."""
        return texts.requests[0].adapter or self._facts.model

    def _head(self, kind: str, texts: asked_of.Texts) -> Json:
        return {
            "id": f"{kind}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": self._model(texts),
            "scored_by": f"cosine of embeddings (pooling: {self._facts.limits.pooling.name})",
        }


def _usage(found: Sequence[pb.Embedded]) -> Json:
    n_prompt = sum(each.usage.prompt_tokens for each in found)
    n_cached = sum(each.usage.cached_tokens for each in found)
    return {
        "prompt_tokens": n_prompt,
        "total_tokens": n_prompt,
        "prompt_tokens_details": {"cached_tokens": n_cached},
    }
