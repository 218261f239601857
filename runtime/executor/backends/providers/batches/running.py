"""Follows one batch to its end, and gives each request that waits its reply or its error."""

from __future__ import annotations

from collections.abc import Callable

from sgc.errors import BackendError, BatchStopped, DeadlineExceeded, RunLogError
from sgc.runtime.executor.backends.providers.batches.asks import MAX_TRIES, Ask
from sgc.runtime.executor.backends.providers.batches.contract import BatchApi, End, Result, Status
from sgc.runtime.executor.backends.providers.batches.journal import Journal, Noted
from sgc.runtime.executor.backends.providers.batches.lines import Reader
from sgc.runtime.executor.backends.providers.batches.watching import Away, until_over
from sgc.runtime.executor.backends.providers.wire.errors import (
    MalformedReply,
    NotFound,
    ProviderUnavailable,
    RateLimited,
)
from sgc.runtime.executor.backends.providers.wire.limits import Clock

MAX_READS = 3  # of results that are damaged
WAIT_S = 10.0  # between them
MAX_FULL = 50  # times that a batch waits for room in the provider's queue
FULL_WAIT_S = 300.0
AGAIN = "the same command goes on"
MENDED = "when that is mended, the same command submits its requests again"


class Running:
    """A batch under way. asks: the requests that wait for it, by id. is_reading: its results are
    being read, so that a request that comes now may come too late. is_too_much: it was refused as
    the provider's queue is full."""

    def __init__(
        self,
        api: BatchApi,
        noted: Noted,
        journal: Journal,
        clock: Clock,
        note: Callable[[str], None],
        asks_errors_again: bool,
        again: Callable[[Ask], None],
    ) -> None:
        """again: puts a request into another batch."""
        self._api, self._journal, self._clock = api, journal, clock
        self._note, self._again = note, again
        self._forgets_errors = asks_errors_again and noted.was_over
        self.noted = noted
        self.asks: dict[str, Ask] = {}
        self.is_too_much = self.is_reading = False
        self._n_replies = self._n_failed = self._n_again = 0

    async def run(self) -> None:
        noted = self.noted
        try:
            status = await until_over(self._api, noted.batch, self._clock)
            if not noted.is_over:
                self._journal.over(noted, status.word)
            if status.refused:
                await self._refused(status)
            else:
                await self._collect(status)
            self._tell(status)
        except NotFound as error:
            self._lost(error)
        except (BackendError, RunLogError) as error:  # a later run may still read the results
            self._stop(f"batch {noted.batch} cannot be followed: {error.message}", error)
        except BaseException as error:
            self._stop(f"batch {noted.batch} cannot be followed: {error}", error)
            raise

    # -- results --------------------------------------------------------------------------

    async def _collect(self, status: Status) -> None:
        if not self.asks:
            return
        self.is_reading = True
        reader = Reader(self._api.result, set(self.noted.left))
        n_reads, away = 0, Away(self._clock)
        while True:
            wait_s = WAIT_S
            try:
                reader.begin()
                async for line in self._api.lines(self.noted.batch, status):
                    self._took(reader.read(line))
                n_reads += 1
                if not self.asks or not reader.n_damaged or n_reads >= MAX_READS:
                    break
            except MalformedReply:
                n_reads += 1
                if n_reads >= MAX_READS:
                    raise
            except (RateLimited, ProviderUnavailable) as error:
                wait_s = away.wait_s(error, WAIT_S)
            await self._clock.sleep(wait_s)
        if not self.noted.is_read:  # else requests whose results were taken before would be unknown
            for said in reader.notes:
                self._note(f"batch {self.noted.number}: {said}")
        self.noted.is_read = True
        for ask in tuple(self.asks.values()):
            self._ended(ask, status.rest)

    def _took(self, result: Result | None) -> None:
        ask = None if result is None else self.asks.get(result.id)
        if result is None or ask is None:
            return
        if result.end is End.REPLIED:
            if (malformed := ask.take(result.body)) is not None:
                ask.lost_usd += ask.wanted.ceiling_usd  # it was billed, by an unknown amount
                self._retry(ask, malformed)
                return
            self._n_replies += 1
            self._take(ask)
        elif result.end is End.FAILED:
            assert result.error is not None
            if result.error.retryable or self._forgets_errors:
                self._retry(ask, result.error)
            else:
                self._fail(ask, result.error)
        else:
            self._ended(ask, result.end)

    def _ended(self, ask: Ask, end: End | None) -> None:
        """A request that has no result, or was not tried."""
        if end is End.EXPIRED:
            self._retry(ask, DeadlineExceeded(
                "the provider did not come to the request before the batch expired",
                hint="ask again later with --retry-errors, or without --batch",
            ))  # fmt: skip
        elif end is not End.CANCELLED:
            self._retry(ask, MalformedReply("the batch's results have nothing of the request"))
        elif self.noted.was_over:
            self._retry(ask, BatchStopped("the batch was cancelled"))
        else:
            error = f"batch {self.noted.batch} was cancelled at the provider"
            hint = "the same command submits the rest of it again"
            self._fail(ask, BatchStopped(error, hint=hint), is_taken=False)

    def _retry(self, ask: Ask, error: BackendError) -> None:
        """Puts a request into another batch, unless it was in enough."""
        if ask.n_tries >= MAX_TRIES:
            error.hint = error.hint or f"{ask.n_tries} batches had it; --retry-errors asks again"
            self._fail(ask, error)
            return
        self._n_again += 1
        self._take(ask)
        self._again(ask)

    def _fail(self, ask: Ask, error: BaseException, is_taken: bool = True) -> None:
        self._n_failed += 1
        if is_taken:
            self._take(ask)
        else:
            self.asks.pop(ask.id, None)
        ask.fail(error)

    def _take(self, ask: Ask) -> None:
        self.asks.pop(ask.id, None)
        self._journal.take(self.noted, ask.id)

    # -- a batch as a whole -----------------------------------------------------------------

    async def _refused(self, status: Status) -> None:
        """The provider took none of the requests: some of them fail, the others are asked again."""
        if status.is_full:
            self.is_too_much = True
            self._note(f"batch {self.noted.number}: {status.refused}; waits for room")
            await self._clock.sleep(FULL_WAIT_S)
        ids = self.noted.ids
        wrong = {ids[n - 1]: said for n, said in status.lines.items() if 0 < n <= len(ids)}
        if len(wrong) == len(ids) > 1:
            wrong = {}  # no request of the model is taken: nothing that a row could help
        for ask in tuple(self.asks.values()):
            if ask.id in wrong and not status.is_full:
                self._fail(ask, BackendError(f"the provider refused it: {wrong[ask.id]}"))
            elif status.is_full and ask.n_refusals < MAX_FULL:
                ask.n_refusals, ask.n_tries = ask.n_refusals + 1, ask.n_tries - 1
                self._retry(ask, BatchStopped(status.refused))
            elif wrong and not status.is_full:
                self._retry(ask, BackendError(f"its batch was refused: {status.refused}"))
            else:
                said = f"the provider refused a batch: {status.refused}"
                self._fail(ask, BatchStopped(said, hint=MENDED))

    def _lost(self, error: BackendError) -> None:
        """The provider does not know the batch, or its results, any more."""
        self._note(
            f"batch {self.noted.number} ({self.noted.batch}) cannot be read any more: "
            f"{error.message}; its requests are submitted again"
        )
        for ask in tuple(self.asks.values()):
            self._retry(ask, error)

    def _stop(self, why: str, error: BaseException) -> None:
        """Nothing is known of the batch now; a later run may read its results."""
        hint = getattr(error, "hint", "") or AGAIN
        ends_all = isinstance(error, BatchStopped | RunLogError)
        stopped = error if ends_all else BatchStopped(why, hint=hint)
        for ask in tuple(self.asks.values()):
            self._fail(ask, stopped, is_taken=False)

    def _tell(self, status: Status) -> None:
        told = [f"{self._n_replies:,} replies"]
        told += [f"{self._n_failed:,} failed"] if self._n_failed else []
        told += [f"{self._n_again:,} are asked again"] if self._n_again else []
        self._note(f"batch {self.noted.number}: {status.word}, {', '.join(told)}")
