"""The interface of another part of the system on the HTTP site: programs (`sgc/services/`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from aiohttp import web

from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.errors import Json


class Beside(Protocol):
    """models: its model names in OpenAI's API, beside the engine's model. All begin with `prefix`;
    an unknown name with `prefix` is taken for a misspelt one. n_running: its running programs."""

    @property
    def prefix(self) -> str: ...

    @property
    def models(self) -> Sequence[str]: ...

    @property
    def n_running(self) -> int: ...

    def refuse_new(self) -> None:
        """Refuses new work from now on, as the server is about to stop."""
        ...

    def load_again(self) -> Callable[[], None]:
        """Reads its files again, on any thread; returns a function that puts them to use. Raises
        `SgcError`, and changes nothing, if one cannot be read."""
        ...

    async def open(self, uri: str, has_tokens: bool, max_run_s: float) -> None:
        """Called once the engine listens at `uri`, for this process only. has_tokens: whether
        clients present a token, which has been checked; if not, a token that they send is ignored.
        max_run_s: how long one run may take."""
        ...

    async def close(self) -> None: ...

    def routes(self, bodies: BodyReader) -> list[Any]:
        """Its routes for aiohttp; `guard.py` checks their requests first."""
        ...

    def add_to(self, server: Any) -> str:
        """Adds a service of its own to the gRPC server; returns the service's name."""
        ...

    async def chat(self, request: web.Request, body: Json) -> web.StreamResponse:
        """Answers a chat request to one of its models, as OpenAI's API does. Raises HttpError for
        an unknown model."""
        ...
