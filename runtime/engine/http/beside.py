"""What another part of the system serves on the engine's HTTP site: programs (`sgc/services/`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from aiohttp import web

from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.errors import Json


class Beside(Protocol):
    """models: names of its own, beside the engine's model, in OpenAI's API; all of them, and what
    is taken for one that is misspelt, begin with `prefix`. n_running: what it has under way."""

    @property
    def prefix(self) -> str: ...

    @property
    def models(self) -> Sequence[str]: ...

    @property
    def n_running(self) -> int: ...

    def refuse_new(self) -> None:
        """From now on it begins nothing: the server is about to stop."""
        ...

    def load_again(self) -> Callable[[], None]:
        """Reads its files again, on any thread; returns what puts them to use. Raises `SgcError`,
        and changes nothing, if one cannot be read."""
        ...

    async def open(self, uri: str, has_tokens: bool, max_run_s: float) -> None:
        """Called once the engine listens there, for this process alone. has_tokens: whether clients
        present a token, which has been checked; what others send as one means nothing.
        max_run_s: how long one run may take."""
        ...

    async def close(self) -> None: ...

    def routes(self, bodies: BodyReader) -> list[Any]:
        """Routes of aiohttp; `guard.py` has let their requests in."""
        ...

    def add_to(self, server: Any) -> str:
        """Adds a service of its own to the gRPC server; returns the service's name."""
        ...

    async def chat(self, request: web.Request, body: Json) -> web.StreamResponse:
        """Answers a chat with one of its models, as OpenAI's API does. Raises HttpError for a name
        that none of them has."""
        ...
