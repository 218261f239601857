"""One request that waits for its place in a batch, or for its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from sgc.errors import BackendError
from sgc.runtime.executor.backends.providers.batches.contract import Json
from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply
from sgc.runtime.executor.backends.providers.wire.reply import Replies

MAX_TRIES = 3  # batches that a request is put into


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request. body: makes its body, which is not kept while it waits; parse: reads the body of
    its reply; ceiling_usd: the most that it can cost."""

    digest: str
    body: Callable[[], Json]
    parse: Callable[[Json], Replies]
    ceiling_usd: float = 0.0


@dataclass(eq=False, slots=True)
class Ask:
    """A request on its way. n_tries: batches that it was in; n_refusals: batches that the provider
    had no room for; is_held: whether its ceiling is
    reserved of the budget; lost_usd: the possible cost of useless replies."""

    id: str
    wanted: Wanted
    reply: asyncio.Future[Replies] = field(repr=False)
    n_tries: int = 0
    n_refusals: int = 0
    is_held: bool = False
    lost_usd: float = 0.0

    def take(self, body: Json) -> BackendError | None:
        """Takes the body of a reply; returns the error if another try may help."""
        try:
            replies = self.wanted.parse(body)
        except MalformedReply as error:
            return error
        except BackendError as error:
            self.lost_usd += self.wanted.ceiling_usd
            self.fail(error)
            return None
        if not self.reply.done():
            self.reply.set_result(replies)
        return None

    def fail(self, error: BaseException) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)
            self.reply.exception()  # its row may have been cancelled
