"""One request over gRPC: it goes to an engine, and to another one if that engine fails.

Text that its client has seen is not sent twice: the text of another engine must begin with it.
"""

from __future__ import annotations

import asyncio
import math

from sgc.errors import BackendError, EngineUnavailable, Overloaded, UsageError
from sgc.proto import engine_pb2 as pb
from sgc.route.engines import BLOCK, Engines
from sgc.route.lines import GrpcFace, Lines
from sgc.route.messages import error, found_of, n_out_of, salt_of, text_of
from sgc.runtime.engine.http.errors import log
from sgc.runtime.executor.backends.persistence import MAX_LOST, Shown
from sgc.runtime.executor.interface.backend import OnDelta
from sgc.runtime.executor.routing.blocks import blocks_of
from sgc.runtime.executor.routing.router import NobodyAnswers, Ticket


class Asking:
    """Sends requests of one client. domain: of its token."""

    def __init__(self, engines: Engines, face: GrpcFace, lines: Lines, domain: bytes) -> None:
        self._engines, self._face, self._lines = engines, face, lines
        self._domain = domain

    async def reply_to(self, request: pb.Request, on_delta: OnDelta) -> pb.Reply:
        """The final reply, within the time that the request may take. Its `id` has no meaning."""
        if request.generate.sampling.logprobs.stream:  # a failed engine may have sent some
            told = (
                "log-probabilities are not streamed through a router: leave out logprobs.stream, "
                "and the final reply has all of them"
            )
            return error(pb.ERROR_CODE_INVALID_ARGUMENT, told)
        timeout_s = request.timeout_s if request.HasField("timeout_s") else math.inf
        if not 0 < timeout_s < math.inf:
            return await self._answered(request, on_delta, math.inf)
        until = asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(until):
                return await self._answered(request, on_delta, until)
        except TimeoutError:
            told = f"the request took longer than the {timeout_s:g} s that it may take"
            return error(pb.ERROR_CODE_DEADLINE_EXCEEDED, told)

    async def _answered(self, request: pb.Request, on_delta: OnDelta, until: float) -> pb.Reply:
        blocks = blocks_of(text_of(request.prompt), BLOCK, salt_of(request, self._domain))
        n_out = n_out_of(request, self._engines.mean_out)
        shown = Shown(on_delta)
        tried: set[str] = set()
        asked_again: set[str] = set()
        refused: pb.Reply | None = None
        n_lost = 0
        while True:
            try:
                ticket = self._engines.router.send(blocks, n_out, tried)
            except NobodyAnswers:
                return refused or error(pb.ERROR_CODE_UNAVAILABLE, "no engine answers")
            name, was_up = ticket.member.name, not ticket.member.n_failed
            tried.add(name)
            try:
                reply = await self._once(request, ticket, shown, until)
            except Overloaded as full:  # its stream has ended, as an idle one does
                self._engines.router.left(ticket)
                if name not in asked_again:
                    asked_again.add(name)
                    tried.discard(name)
                refused = error(pb.ERROR_CODE_RESOURCE_EXHAUSTED, full.message)
                continue
            except EngineUnavailable as lost:
                n_lost += was_up
                self._engines.failed(ticket)
                if n_lost == MAX_LOST:  # the request may be what ends engines
                    return error(pb.ERROR_CODE_UNAVAILABLE, lost.message)
                continue
            except UsageError as other:
                log.warning("%s", other)  # this engine is tried again later
                self._engines.failed(ticket)
                continue
            except BackendError as failed:
                self._engines.router.left(ticket)
                return error(pb.ERROR_CODE_INTERNAL, failed.message)
            except BaseException:
                self._engines.router.left(ticket)
                raise
            if reply.error.code == pb.ERROR_CODE_RESOURCE_EXHAUSTED:
                self._engines.router.done(ticket)
                refused = reply
                continue
            self._engines.router.done(ticket, found_of(reply, len(blocks)))
            if reply.HasField("generated"):
                self._engines.learn(len(reply.generated.ids))
            return reply

    async def _once(
        self, request: pb.Request, ticket: Ticket, shown: Shown, until: float
    ) -> pb.Reply:
        """The reply of one engine. Raises EngineUnavailable if it is lost or about to stop."""
        place = self._engines.places[ticket.member.name]
        await self._face.check(place)
        if (info := self._face.infos.get(place.name)) is not None:
            self._engines.fit(place.name, info.pool_tokens)
        if until < math.inf:
            left_s = until - asyncio.get_running_loop().time()
            request.timeout_s = max(0.001, left_s)
        shown.begin()
        line = self._lines.to(place, self._engines.places)
        line.n_running += 1
        take = shown.take if request.generate.stream else None
        try:
            reply = await line.engine.pass_on(request, take)
        finally:
            line.n_running -= 1
        if reply.error.code == pb.ERROR_CODE_UNAVAILABLE:
            raise EngineUnavailable(reply.error.message)
        if reply.HasField("generated"):
            shown.check(reply.generated.text)
        return reply
