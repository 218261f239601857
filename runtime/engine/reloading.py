"""Reads tokens and programs again on SIGHUP, without a restart: all of them, or none if one of them
cannot be read. Clients that are connected stay so until they leave."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from sgc.errors import SgcError
from sgc.runtime.engine.config import ServerConfig
from sgc.runtime.engine.logs.log import Log
from sgc.runtime.engine.server.listen import Security, read_security

if TYPE_CHECKING:
    from sgc.runtime.engine.http.beside import Beside


def reload_on_hangup(
    config: ServerConfig, security: Security, beside: Beside | None, log: Log
) -> None:
    """Handles SIGHUP from now on. In a terminal, or in a child of the program that uses the engine,
    SIGHUP means that this has gone, and ends the server."""
    if not config.exit_with_parent and not os.isatty(0):
        begin = _Reloading(config, security, beside, log).begin
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, begin)


class _Reloading:
    def __init__(
        self, config: ServerConfig, security: Security, beside: Beside | None, log: Log
    ) -> None:
        self._log = log
        self._config, self._security, self._beside = config, security, beside
        self._tasks: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()

    def begin(self) -> None:
        task = asyncio.create_task(self._reload())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload(self) -> None:
        async with self._one_at_a_time:
            try:
                told = await self._reloaded()
            except SgcError as error:
                told = f"nothing is reloaded: {error}"
            self._log.tell("reload", told)

    async def _reloaded(self) -> str:
        told = []
        file, tokens = self._config.token_file, None
        if file is not None:
            tokens = (await asyncio.to_thread(read_security, file, None, None)).tokens
        if self._beside is not None:
            begin = await asyncio.to_thread(self._beside.load_again)
            begin()
            told.append(", ".join(self._beside.models))
        if tokens is not None:
            self._security.tokens.replace(tokens)
            told.append(f"{len(tokens)} tokens")
        return "reloaded: " + ("; ".join(told) or "there is nothing to reload")
