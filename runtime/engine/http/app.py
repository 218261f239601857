"""The HTTP server, beside the gRPC one: same process, engine, limits and token.

It is an adapter: a request becomes a session of the engine (`running.py`), and replies become JSON.
`serving.py` starts it, and imports it only for `--http`.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator

from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.native.api import NativeApi
from sgc.runtime.engine.http.openai.api import OpenAIApi
from sgc.runtime.engine.http.openai.embedding_api import EmbeddingApi
from sgc.runtime.engine.http.running import Runs
from sgc.runtime.engine.http.site import application, serving
from sgc.runtime.engine.server.listen import Address, Security
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.server.shared import Shared

MAX_SCHEMA_BYTES = 2 * 1024 * 1024
OPEN_PATHS = frozenset({"/health"})  # health probes carry no token


@contextlib.asynccontextmanager
async def serving_http(
    address: Address,
    security: Security,
    tls: ssl.SSLContext | None,
    facts: EngineFacts,
    shared: Shared,
) -> AsyncIterator[str]:
    """Serves in the running event loop until the block ends; yields the URL."""
    runs, connections = Runs(shared), Connections()
    most = shared.tokenizer.most_bytes(shared.limits.max_positions, is_json=True)
    if most is not None:
        most = max(most, MAX_SCHEMA_BYTES)  # other strings may be longer than prompts
    bodies = BodyReader(connections, max_string_bytes=most)
    apis = (
        OpenAIApi(facts, runs, bodies),
        EmbeddingApi(facts, runs, bodies),
        NativeApi(facts, shared, runs, bodies),
    )
    routes = [route for api in apis for route in api.routes()]
    app = application(routes, security, connections, OPEN_PATHS)
    async with serving(app, connections, address, tls) as url:
        try:
            yield url
        finally:
            runs.fail_all("the engine is stopping")
