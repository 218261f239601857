"""The observers of a server's requests, by its options: the access log, and spans."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sgc.runtime.engine.logs.access import AccessLog
from sgc.runtime.engine.logs.log import Log
from sgc.runtime.engine.server.shared import Shared

if TYPE_CHECKING:  # its packages are imported only where they are asked for
    from sgc.runtime.engine.logs.spans import ServerSpans


@dataclass(frozen=True, slots=True)
class Observing:
    access: AccessLog | None = None
    spans: ServerSpans | None = None


NOT_OBSERVING = Observing()


@contextlib.asynccontextmanager
async def observing(
    shared: Shared, log: Log, model: str, *, access_log: bool, prompts: bool, otlp: str | None
) -> AsyncIterator[Observing]:
    """Observes within the block. prompts: whether they are logged. otlp: where spans are sent."""
    access = AccessLog(log, model, prompts) if access_log else None
    if access is not None:
        shared.observers.append(access.observe)
    shared.keeps_prompts = prompts
    if otlp is None:
        yield Observing(access)
        return
    from sgc.runtime.engine.logs.spans import ServerSpans
    from sgc.runtime.telemetry.otlp import open_tracing

    tracing = open_tracing(otlp, "sgc-server")
    spans = ServerSpans(tracing, model)
    shared.observers.append(spans.observe)
    shared.keeps_prompts = prompts or tracing.captures
    try:
        yield Observing(access, spans)
    finally:
        await asyncio.to_thread(tracing.close)
