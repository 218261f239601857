"""The engines behind an address: which there are, what they are, and whether they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import hdrs

from sgc.errors import EngineUnavailable, UsageError
from sgc.runtime.executor.routing.blocks import CHARACTERS, MOST_HELD, POOL
from sgc.runtime.executor.routing.members import Member
from sgc.runtime.executor.routing.router import Router, Ticket

BLOCK = 128  # characters
ASK_S = 5.0
MAX_ENGINES = 1024
MAX_FILE_BYTES = 1 << 20


def read_engines(urls: Sequence[str], file: Path | None) -> list[str]:
    """The URLs given, and those of a file, one a line. Raises UsageError."""
    found = list(urls)
    if file is not None:
        try:
            data = file.read_bytes()[:MAX_FILE_BYTES].decode()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--engines {file}: {error}") from error
        lines = map(str.strip, data.splitlines())
        found += [line for line in lines if line and not line.startswith("#")]
    for url in found:
        if not url.startswith(("http://", "https://")):
            raise UsageError(
                f"{url!r} is no HTTP address of an engine",
                hint="http://HOST:PORT, of `sgc serve --http PORT`, SGLang or vLLM; programs reach "
                "several engines over gRPC with --engine grpc://A,grpc://B",
            )
    found = [url.rstrip("/") for url in found]
    if not found:
        raise UsageError("no engine is named", hint="--engine URL, or --engines FILE")
    if len(found) > MAX_ENGINES or len({*found}) < len(found):
        raise UsageError(f"at most {MAX_ENGINES} engines, each once; found {len(found)}")
    return found


class Engines:
    """Engines by their URLs, each of the same model. token: the router's own, for what it asks
    itself and for requests that come without one."""

    def __init__(self, session: aiohttp.ClientSession, token: str = "") -> None:
        self.session = session
        self.own_headers = {hdrs.AUTHORIZATION: f"Bearer {token}"} if token else {}
        self.router = Router(BLOCK / CHARACTERS)
        self.model = ""
        self._members: dict[str, Member] = {}
        self._checked: set[str] = set()

    @property
    def urls(self) -> list[str]:
        return list(self._members)

    def set(self, urls: Sequence[str]) -> None:
        """Takes these engines from now on; requests that run on others may end there."""
        for url in self._members.keys() - {*urls}:
            self.router.remove(self._members.pop(url))
            self._checked.discard(url)
        for url in urls:
            if url not in self._members:
                room = POOL * CHARACTERS // BLOCK
                self._members[url] = self.router.add(url, min(MOST_HELD, room))

    async def meet(self) -> None:
        """Asks all engines what they are. Raises EngineUnavailable if none answers, UsageError if
        they are of different models."""
        told = await asyncio.gather(*map(self.check, self.urls), return_exceptions=True)
        for each in told:
            if isinstance(each, BaseException) and not isinstance(each, EngineUnavailable):
                raise each
        if not self._checked:
            raise EngineUnavailable(
                f"none of {len(self.urls)} engines answers: {', '.join(self.urls)}",
                hint="start one with `sgc serve --http PORT`",
            )

    def failed(self, ticket: Ticket) -> None:
        """An engine did not answer. When it is back, it is asked for its model again."""
        self._checked.discard(ticket.member.name)
        self.router.failed(ticket)

    async def check(self, url: str) -> None:
        """Makes sure that an engine is of the others' model, once. Raises EngineUnavailable."""
        if url in self._checked:
            return
        models = (await self._asked(f"{url}/v1/models")).get("data")
        if not isinstance(models, list) or not models or not isinstance(models[0], dict):
            raise UsageError(f"{url} does not say which model it serves (GET /v1/models)")
        model = str(models[0].get("id"))
        if self.model and model != self.model:
            raise UsageError(
                f"{url} serves {model}, and the others {self.model}",
                hint="engines behind one address must serve the same model",
            )
        self.model = model
        self._checked.add(url)

    async def _asked(self, url: str) -> dict[str, Any]:
        try:
            asked = self.session.get(url, headers=self.own_headers)
            async with asyncio.timeout(ASK_S), asked as response:
                found = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise EngineUnavailable(f"{url} does not answer: {error}") from error
        return found if isinstance(found, dict) else {}

    def rows(self) -> list[dict[str, Any]]:
        """What is known of each engine."""
        return [
            {
                "url": member.name,
                "is_up": member.n_failed == 0,
                "running": member.n_running,
                "waiting_work": round(member.work),
                "held_blocks": len(member.held),
            }
            for member in self.router.members
        ]
