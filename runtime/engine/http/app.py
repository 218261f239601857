"""The HTTP server, beside the gRPC one: same process, engine, limits and token.

It is an adapter: a request becomes a session of the engine (`running.py`), and replies become JSON.
`serving.py` starts it, and imports it only for `--http`.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aiohttp import web

from sgc.runtime.engine.http import openapi
from sgc.runtime.engine.http.beside import Beside
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.calls.call_fields import CALL_FIELDS
from sgc.runtime.engine.http.calls.logged import logging_to
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.engine.http.native import requests as native_fields
from sgc.runtime.engine.http.native.api import NativeApi
from sgc.runtime.engine.http.openai import embeddings as embedding_fields
from sgc.runtime.engine.http.openai import requests as openai_fields
from sgc.runtime.engine.http.openai.api import OpenAIApi
from sgc.runtime.engine.http.openai.embedding_api import EmbeddingApi
from sgc.runtime.engine.http.openai.response_requests import RESPONSES
from sgc.runtime.engine.http.openai.responses_api import ResponsesApi
from sgc.runtime.engine.http.openai.tokens_api import DETOKENIZE, TOKENIZE, TokensApi
from sgc.runtime.engine.http.render import dumps, json_text
from sgc.runtime.engine.http.running import Runs
from sgc.runtime.engine.http.site import Handler, application, serving
from sgc.runtime.engine.logs.observing import NOT_OBSERVING, Observing
from sgc.runtime.engine.server.listen import Address, Security
from sgc.runtime.engine.server.server import EngineFacts, engine_version
from sgc.runtime.engine.server.shared import Shared

if TYPE_CHECKING:  # its package may not be installed
    from sgc.runtime.engine.metrics.scraping import Scraping

BODIES: Mapping[str, frozenset[str]] = {
    "/v1/chat/completions": openai_fields.CHAT,
    "/v1/completions": openai_fields.COMPLETION,
    "/v1/responses": RESPONSES,
    "/v1/embeddings": embedding_fields.EMBEDDINGS,
    "/v1/score": embedding_fields.SCORE,
    "/v1/rerank": embedding_fields.RERANK,
    "/tokenize": TOKENIZE,
    "/v1/tokenize": TOKENIZE,
    "/detokenize": DETOKENIZE,
    "/v1/detokenize": DETOKENIZE,
    "/generate": native_fields.BODY,
}
"""The fields of each body."""
MAX_SCHEMA_BYTES = 2 * 1024 * 1024
OPEN_PATHS = frozenset({"/health"})  # health probes carry no token


@contextlib.asynccontextmanager
async def serving_http(
    address: Address,
    security: Security,
    tls: ssl.SSLContext | None,
    facts: EngineFacts,
    shared: Shared,
    scraping: Scraping | None,
    beside: Beside | None = None,
    observing: Observing = NOT_OBSERVING,
) -> AsyncIterator[str]:
    """Serves in the running event loop until the block ends; yields the URL. beside: another part
    of the system with routes on this site."""
    runs, connections = Runs(shared), Connections()
    most = shared.tokenizer.most_bytes(shared.limits.max_positions, is_json=True)
    if not isinstance(shared.limits.images, str):
        most = None  # a string may hold an image
    if most is not None:
        most = max(most, MAX_SCHEMA_BYTES)  # strings other than prompts may be longer
    bodies = BodyReader(connections, max_string_bytes=most)
    apis = (
        OpenAIApi(facts, runs, bodies, beside),
        EmbeddingApi(facts, runs, bodies),
        NativeApi(facts, shared, runs, bodies),
        ResponsesApi(facts, runs, bodies),
        TokensApi(facts, bodies),
    )
    routes = [route for api in apis for route in api.routes()]
    routes += [web.get("/metrics", _metrics(scraping))]
    routes += [] if beside is None else beside.routes(bodies)
    routes.append(web.get("/openapi.json", described(routes)))
    app = application(routes, security, connections, OPEN_PATHS, observers_of(observing))
    async with serving(app, connections, address, tls) as url:
        try:
            yield url
        finally:
            runs.fail_all("the engine is stopping")


def observers_of(observing: Observing) -> list[Any]:
    """The middlewares that observe requests."""
    found = []
    if observing.access is not None:
        found.append(logging_to(observing.access))
    if observing.spans is not None:
        from sgc.runtime.engine.http.calls.traced import tracing_to

        found.append(tracing_to(observing.spans))
    return found


def _metrics(scraping: Scraping | None) -> Handler:
    async def without(request: web.Request) -> web.Response:
        raise HttpError(501, "metrics need a package that is not installed: prometheus-client")

    return without if scraping is None else scraping.answer


def described(routes: Sequence[web.RouteDef]) -> Handler:
    """Answers with a description of the routes in OpenAPI's form."""
    bodies = {path: fields | CALL_FIELDS for path, fields in BODIES.items()}
    document = dumps(openapi.document(routes, bodies, engine_version()))

    async def answer(request: web.Request) -> web.Response:
        return json_text(document)

    return answer
