"""Counts the requests of one session: for the tally, for its client's account, and for whoever
watches how requests end (the log, traces). `session.py` calls it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.preparing.bounds import RequestError
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.accounts.quotas import QuotaRefusal
from sgc.runtime.engine.server.tally import Tally
from sgc.runtime.engine.worker.link import OnUpdate

CANCELLED, FINISHED = "cancelled", "finished"
_log = logging.getLogger("sgc.engine")


@dataclass(slots=True, eq=False)
class Active:
    """An unfinished request; worker_id is None while it is being tokenized.

    preparing: the task that tokenizes only this request. deadline: what ends it, if it has one.
    n_reserved: tokens reserved in its client's account. n_generated: counted only if needed.
    prompt: kept only if it is logged.
    """

    kind: str = ""
    adapter: str = ""
    traceparent: str = ""
    prompt: pb.Prompt | None = None
    priority: int = 0
    worker_id: int | None = None
    preparing: asyncio.Task[None] | None = None
    deadline: asyncio.TimerHandle | None = None
    began_at: float = field(default_factory=time.monotonic)
    n_reserved: int = 0
    n_generated: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a request ended. active: None if it was refused as it came. usage: of a finished one.
    is_part: of an HTTP request, which may have several."""

    caller: Caller
    id: int
    active: Active | None
    outcome: str
    usage: pb.Usage | None = None
    finish_reason: int = 0
    error: str = ""
    code: int = 0
    is_part: bool = False

    @property
    def code_name(self) -> str:
        """The name of its error's code; or CANCELLED."""
        if not self.code:
            return self.outcome.upper()
        return pb.ErrorCode.Name(self.code).removeprefix("ERROR_CODE_")  # type: ignore[arg-type]


Observer = Callable[[Ended], None]


class Ledger:
    """is_part: whether the session is one HTTP request."""

    def __init__(
        self, tally: Tally, caller: Caller, is_part: bool, observers: Sequence[Observer]
    ) -> None:
        self._tally, self._caller, self._is_part = tally, caller, is_part
        self._account, self._observers = caller.account, observers
        self._last_prompt: Sequence[int] = ()

    def begin(self) -> RequestError | None:
        """Counts a request that begins; returns the error if its client's account refuses it. HTTP
        requests are counted in `running.py`."""
        if self._account is None or self._is_part:
            return None
        refusal = self._account.begin()
        return None if refusal is None else of_quota(refusal)

    def reserve(self, active: Active, work: wpb.WorkerRequest) -> RequestError | None:
        """Reserves the prompt's tokens in the account, or returns the error. A prompt with several
        completions is computed once. Of an HTTP request with several prompts, only the first may be
        refused: a later one would be refused at each retry too."""
        if self._account is None or not self._account.counts_tokens:
            return None
        if work.tokens == self._last_prompt:
            return None
        n_tokens = len(work.tokens)
        if self._is_part and self._caller.has_reserved:
            self._account.settle(0, n_tokens)
        elif (refusal := self._account.reserve(n_tokens)) is not None:
            return of_quota(refusal)
        active.n_reserved = n_tokens
        if self._is_part:
            self._last_prompt, self._caller.has_reserved = work.tokens, True
        return None

    def watched(self, active: Active, on_update: OnUpdate) -> OnUpdate:
        """The handler, which counts generated tokens if their number is needed."""
        if self._account is None and not self._observers:
            return on_update

        def counted(update: wpb.Update) -> None:
            active.n_generated += len(update.new_ids)
            on_update(update)

        return counted

    def finished(
        self, request_id: int, active: Active | None, kind: str, update: wpb.Update
    ) -> None:
        usage = update.usage
        self._tally.finished += 1
        if self._tally.watch is not None:
            self._tally.watch(kind, usage)
        if self._account is not None:
            self._account.count(usage)
        self._end(request_id, active, FINISHED, usage, update.finish_reason)

    def failed(
        self, request_id: int, active: Active | None, error: RequestError | pb.Error
    ) -> None:
        """A request that gets an error. active: None if it was refused as it came."""
        outcome = self._tally.fail(error.code)
        self._end(request_id, active, outcome, error=error)

    def cancelled(self, request_id: int, active: Active | None) -> None:
        self._tally.cancelled += 1
        self._end(request_id, active, CANCELLED)

    def _end(
        self,
        request_id: int,
        active: Active | None,
        outcome: str,
        usage: pb.Usage | None = None,
        finish_reason: int = 0,
        error: RequestError | pb.Error | None = None,
    ) -> None:
        if self._account is not None:
            self._account.outcomes[outcome] += 1
            if active is not None:
                self._settle(active, usage)
        if not self._observers:
            return
        told, code = ("", 0) if error is None else (error.message, error.code)
        ended = Ended(
            self._caller,
            request_id,
            active,
            outcome,
            usage,
            finish_reason,
            told,
            code,
            self._is_part,
        )
        for observe in self._observers:
            try:
                observe(ended)
            except Exception:  # an observer must not fail the request
                _log.exception("telling how a request ended failed")

    def _settle(self, active: Active, usage: pb.Usage | None) -> None:
        """usage: of a request that has finished; of others, all of the prompt counts."""
        assert self._account is not None
        if not self._is_part:
            self._account.end(time.monotonic() - active.began_at)
        n_computed = active.n_reserved if usage is None else usage.computed_tokens
        self._account.settle(active.n_reserved, n_computed + active.n_generated)


def of_quota(refusal: QuotaRefusal) -> RequestError:
    """The error for a client whose token's limit is reached."""
    code = pb.ERROR_CODE_RESOURCE_EXHAUSTED
    return RequestError(code, refusal.message, refusal.retry_after_s, refusal.limit)
