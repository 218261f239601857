"""Engines over gRPC: the router's own requests to them, and the connections of its clients.

A client has a stream of its own, with its own token, to each engine that answers it, so an engine
tells clients apart as if they connected themselves. Streams share connections.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

import grpc.aio

from sgc.errors import EngineUnavailable, UsageError
from sgc.proto import engine_pb2 as pb
from sgc.route.places import Place
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.backends.engine.wire import identity

MAX_STREAMS = 48  # of a connection; older engines take 64, and may refuse some before that


class GrpcFace:
    """token: the router's own, for its own requests and for clients without a token. infos: the
    engines' descriptions, by their names."""

    kind = "grpc"

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.model = ""
        self.infos: dict[str, pb.Info] = {}
        self._identity: tuple[str, ...] | None = None
        self._own: dict[str, EngineBackend] = {}
        self._checking: dict[str, asyncio.Task[None]] = {}
        self._n_lines: Counter[tuple[str, int]] = Counter()
        self._closing: set[asyncio.Future[Any]] = set()

    def lost(self, names: Iterable[str]) -> None:
        for name in names:
            self.infos.pop(name, None)

    def gone(self, names: Iterable[str]) -> None:
        self.lost(names)
        for name in names:
            if (own := self._own.pop(name, None)) is not None:
                self.later(own.close())

    async def check(self, place: Place) -> None:
        if place.name in self.infos:
            return
        checking = self._checking.get(place.name)
        if checking is None:  # requests that wait for it share one call
            checking = self._checking[place.name] = asyncio.create_task(self._check(place))
            checking.add_done_callback(lambda done: self._checked(place.name, done))
        await asyncio.shield(checking)

    async def _check(self, place: Place) -> None:
        try:
            info = await self.own(place).info(is_anew=True)
        except grpc.aio.UsageError as error:
            raise EngineUnavailable(f"{place.grpc} is not used any more") from error
        found = identity(info)
        if self._identity not in (None, found):
            raise UsageError(
                f"{place.grpc} serves {info.model} with another model, tokenizer or chat template "
                "than the others",
                hint="engines behind one address must serve the same model",
            )
        self._identity, self.model = found, info.model
        self.infos[place.name] = info

    def _checked(self, name: str, done: asyncio.Task[None]) -> None:
        del self._checking[name]
        if not done.cancelled():
            done.exception()  # waiting requests get it; there may be none

    def own(self, place: Place) -> EngineBackend:
        """An engine with the router's own token."""
        found = self._own.get(place.name)
        if found is None:
            found = self._own[place.name] = EngineBackend(place.grpc, self.token)
        return found

    def line(self, place: Place, token: str, metadata: Sequence[tuple[str, str]]) -> Line:
        """A new line to an engine."""
        numbers = range(len(self._n_lines) + 1)
        number = next(n for n in numbers if self._n_lines[place.grpc, n] < MAX_STREAMS)
        return Line(self, place, token, metadata, number)

    def count(self, address: str, number: int, n: int) -> None:
        self._n_lines[address, number] += n
        if not self._n_lines[address, number]:
            del self._n_lines[address, number]

    def later(self, closing: Awaitable[None]) -> None:
        task = asyncio.ensure_future(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        self.gone([*self._own])
        await asyncio.gather(*self._closing, return_exceptions=True)


class Line:
    """A client's stream to an engine. number: of the connection that it shares. metadata: with the
    client's token, for calls on the connection."""

    def __init__(
        self,
        face: GrpcFace,
        place: Place,
        token: str,
        metadata: Sequence[tuple[str, str]],
        number: int,
    ) -> None:
        self._face, self._key = face, (place.grpc, number)
        of_token = (("authorization", f"Bearer {token}"),) if token else ()
        self.metadata = (*of_token, *metadata)
        self.engine = EngineBackend(
            place.grpc, token, metadata=metadata, options=[("sgc.connection", number)]
        )
        self.n_running = 0
        face.count(*self._key, 1)

    def close(self) -> None:
        self._face.count(*self._key, -1)
        self._face.later(self.engine.close())


class Lines:
    """A client's lines, by the names of engines. token: the client's, or the router's."""

    def __init__(self, face: GrpcFace, token: str, metadata: Sequence[tuple[str, str]]) -> None:
        self._face, self._token, self._metadata = face, token, metadata
        self._lines: dict[str, Line] = {}

    def to(self, place: Place, all_places: Iterable[str] = ()) -> Line:
        """The line to an engine. all_places: those to other engines are closed."""
        found = self._lines.get(place.name)
        if found is None:
            self._keep({place.name, *all_places})
            found = self._lines[place.name] = self._face.line(place, self._token, self._metadata)
        return found

    def _keep(self, names: set[str]) -> None:
        for name in self._lines.keys() - names:
            if not self._lines[name].n_running:
                self._lines.pop(name).close()

    def close(self) -> None:
        while self._lines:
            self._lines.popitem()[1].close()
