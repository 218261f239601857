"""Threads on which chat requests are read: a chat template may have to be rendered, and tools
compiled. Chats with tools have threads of their own, so that no other chat waits for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sgc.runtime.engine.http.errors import Json
from sgc.runtime.engine.server.lanes import Lane

T = TypeVar("T")
N_FOR_TOOLS = 2


class ChatLanes:
    """The threads of one API; they belong to the event loop of their first use."""

    def __init__(self) -> None:
        self._plain, self._for_tools = Lane("chats"), Lane("tools", N_FOR_TOOLS)

    async def run(self, body: Json, owner: object, read: Callable[[], T]) -> T:
        """Runs `read`, which turns the body into the engine's requests."""
        lane = self._for_tools if body.get("tools") else self._plain
        return await lane.run(owner, lambda _: read())
