"""The engines behind an address: which there are, what they are, and whether they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp
from aiohttp import hdrs

from sgc.errors import EngineUnavailable, UsageError
from sgc.route.places import Place, places_of
from sgc.runtime.executor.routing.blocks import CHARACTERS, MOST_HELD, POOL
from sgc.runtime.executor.routing.members import Member
from sgc.runtime.executor.routing.router import Router, Ticket

if TYPE_CHECKING:
    from collections.abc import Iterable

BLOCK = 128  # characters
ASK_S = 5.0
MEAN_OUT = 128.0  # tokens, until replies have been measured


class Face(Protocol):
    """A protocol to reach engines, which checks that they serve one model. kind: of addresses;
    model: of the engines, once one has answered."""

    kind: str
    model: str

    async def check(self, place: Place) -> None:
        """Checks once that an engine serves the same model as the others. Raises EngineUnavailable,
        and UsageError if it serves another."""
        ...

    def lost(self, names: Iterable[str]) -> None:
        """These engines did not answer: they are checked again."""
        ...

    def gone(self, names: Iterable[str]) -> None:
        """These engines are not used any more."""
        ...


class Engines:
    """Engines by their names, all of the same model, with one router for all faces."""

    def __init__(self) -> None:
        self.router = Router(BLOCK / CHARACTERS)
        self.places: dict[str, Place] = {}
        self.faces: list[Face] = []
        self.mean_out = MEAN_OUT
        self._members: dict[str, Member] = {}

    @property
    def names(self) -> list[str]:
        return list(self.places)

    def set(self, names: Sequence[str]) -> None:
        """Takes these engines from now on; requests that run on others may end there. Raises
        UsageError."""
        places = places_of(names)
        gone = self.places.keys() - places.keys()
        self.places = places
        for name in gone:
            self.router.remove(self._members.pop(name))
        for face in self.faces:
            face.gone(gone)
        for name in names:
            if name not in self._members:
                room = POOL * CHARACTERS // BLOCK
                self._members[name] = self.router.add(name, min(MOST_HELD, room))

    async def meet(self) -> None:
        """Asks all engines what they are. Raises EngineUnavailable if none answers, UsageError if
        they are of different models."""
        asked = [
            face.check(each)
            for face in self.faces
            for each in self.places.values()
            if getattr(each, face.kind)
        ]
        told = await asyncio.gather(*asked, return_exceptions=True)
        for each in told:
            if isinstance(each, BaseException) and not isinstance(each, EngineUnavailable):
                raise each
        if told and all(told):
            raise EngineUnavailable(
                f"none of {len(self.places)} engines answers: {', '.join(self.names)}",
                hint="start one with `sgc serve --http PORT`",
            )

    def failed(self, ticket: Ticket) -> None:
        """Records that an engine did not answer. When it is back, its model is checked again."""
        self.router.failed(ticket)
        for face in self.faces:
            face.lost([ticket.member.name])

    def fit(self, name: str, pool_tokens: int) -> None:
        """Records the size of an engine's pool, which bounds what it is assumed to hold."""
        member = self._members.get(name)
        if member is not None and pool_tokens:
            self.router.fit(member, min(MOST_HELD, pool_tokens * CHARACTERS // BLOCK))

    def learn(self, n_out: int) -> None:
        """Records the length of a reply."""
        self.mean_out += 0.05 * (n_out - self.mean_out)

    def has(self, kind: str) -> bool:
        """Whether engines are reached by this protocol; all are, or none."""
        return any(getattr(each, kind) for each in [*self.places.values()][:1])

    def is_any_up(self) -> bool:
        return any(member.n_failed == 0 for member in self.router.members)

    def rows(self) -> list[dict[str, Any]]:
        """What is known of each engine."""
        return [
            {
                "url": self.places[member.name].http or self.places[member.name].grpc,
                "grpc": self.places[member.name].grpc,
                "is_up": member.n_failed == 0,
                "running": member.n_running,
                "waiting_work": member.work,
                "held_blocks": len(member.held),
            }
            for member in self.router.members
        ]


class HttpFace:
    """Engines over HTTP. token: the router's own, for its own requests and for clients' requests
    without a token."""

    kind = "http"

    def __init__(self, session: aiohttp.ClientSession, token: str = "") -> None:
        self.session = session
        self.own_headers = {hdrs.AUTHORIZATION: f"Bearer {token}"} if token else {}
        self.model = ""
        self._checked: set[str] = set()

    def lost(self, names: Iterable[str]) -> None:
        self._checked.difference_update(names)

    gone = lost

    async def check(self, place: Place) -> None:
        if place.name in self._checked:
            return
        models = (await self._asked(f"{place.http}/v1/models")).get("data")
        if not isinstance(models, list) or not models or not isinstance(models[0], dict):
            raise UsageError(f"{place.http} does not say which model it serves (GET /v1/models)")
        model = str(models[0].get("id"))
        if self.model and model != self.model:
            raise UsageError(
                f"{place.http} serves {model}, and the others {self.model}",
                hint="engines behind one address must serve the same model",
            )
        self.model = model
        self._checked.add(place.name)

    async def _asked(self, url: str) -> dict[str, Any]:
        try:
            asked = self.session.get(url, headers=self.own_headers)
            async with asyncio.timeout(ASK_S), asked as response:
                found = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise EngineUnavailable(f"{url} does not answer: {error}") from error
        return found if isinstance(found, dict) else {}
