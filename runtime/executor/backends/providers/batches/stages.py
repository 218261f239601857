"""Collects requests into batches: a stage is all that rows can request before they need a reply.

A stage is over when the event loop has nothing left to do and nothing comes back from threads or
tools, so that every row waits for a reply (`loops/idle.py`). While threads or tools are busy, it
lingers, within bounds. It lives on one loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sgc.errors import BackendError, BatchStopped, RunLogError, SgcError
from sgc.runtime.executor.backends.providers.batches.asks import Ask, Wanted
from sgc.runtime.executor.backends.providers.batches.contract import BatchApi, Entry
from sgc.runtime.executor.backends.providers.batches.journal import Journal, Noted
from sgc.runtime.executor.backends.providers.batches.running import AGAIN, Running
from sgc.runtime.executor.backends.providers.batches.submitting import Submitting
from sgc.runtime.executor.backends.providers.wire.errors import NotFound
from sgc.runtime.executor.backends.providers.wire.limits import Budget, Clock
from sgc.runtime.executor.backends.providers.wire.reply import Replies
from sgc.runtime.executor.loops.idle import Idle

LINGER_S = 10.0  # without a new request, while threads or tools are busy
MAX_LINGER_S = 300.0
# A batch's requests are in memory while it is submitted; a smaller file loses nothing.
MAX_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stages work with. note: tells the user a line; sync: makes the job's log survive a crash
    of the machine; asks_errors_again: failures that an earlier process has seen do not count."""

    journal: Journal
    budget: Budget
    clock: Clock
    idle: Idle
    note: Callable[[str], None]
    sync: Callable[[], None]
    asks_errors_again: bool = False


class Stages:
    """The requests of one endpoint. The loop's thread only."""

    def __init__(self, api: BatchApi, around: Surroundings) -> None:
        self._api, self._around = api, around
        self._submitting = Submitting(api, around.journal, around.clock, around.note)
        self._live: set[str] = set()
        self._waiting: dict[str, Ask] = {}
        self._put_off: dict[str, Ask] = {}  # until a batch has ended
        self._running: dict[int, tuple[Running, asyncio.Task[None]]] = {}
        self._flushing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._first_s = self._last_s = 0.0  # when requests that wait came
        self._most = api.max_requests
        self._ended: list[Noted] = []
        around.idle.watchers.append(self._on_idle)

    # -- asking -------------------------------------------------------------------------

    async def ask(self, wanted: Wanted, cost_of: Callable[[Replies], float]) -> Replies:
        """The reply of a request, once a batch has it. cost_of: of a reply, for the budget."""
        number = 0
        while (id := f"{wanted.digest}-{number}") in self._live:
            number += 1
        ask = Ask(id, wanted, asyncio.get_running_loop().create_future())
        self._live.add(id)
        self._wait(ask)
        cost = wanted.ceiling_usd
        try:
            replies = await ask.reply
            if replies.spent.is_known:
                cost = cost_of(replies)
            return replies
        except BackendError:
            cost = 0.0  # failed requests are not billed
            raise
        finally:
            self._live.discard(id)
            self._waiting.pop(id, None)
            self._put_off.pop(id, None)
            self._leave_batch(id)
            if ask.is_held:
                self._around.budget.settle(wanted.ceiling_usd, cost + ask.lost_usd)

    def _leave_batch(self, id: str) -> None:
        """No row waits for this request any more. A later run may ask for its result."""
        noted = self._around.journal.where.get(id)
        if noted is not None and noted.number in self._running:
            self._running[noted.number][0].asks.pop(id, None)

    def _wait(self, ask: Ask) -> None:
        now_s = self._around.clock.now()
        self._first_s = self._first_s if self._waiting else now_s
        self._last_s = now_s
        self._waiting[ask.id] = ask

    # -- when a stage is over -------------------------------------------------------------

    def _on_idle(self, is_busy: bool) -> bool:
        if self._flushing is not None or not (self._waiting or self._ended):
            return False
        if any(running.is_reading for running, _ in self._running.values()):
            return False  # between two pieces of a batch's results: more requests are about to come
        is_whole = not self._waiting or len(self._waiting) >= self._most
        if is_busy and not is_whole and (wait_s := self._linger_s()) > 0:
            if self._timer is not None:
                return False
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._woken)
            return True
        self._flushing = asyncio.get_running_loop().create_task(self._flush())
        return True

    def _woken(self) -> None:
        """Called by the timer; the loop becomes idle again after this, and calls `_on_idle`."""
        self._timer = None

    def _linger_s(self) -> float:
        now_s = self._around.clock.now()
        return min(self._last_s + LINGER_S, self._first_s + MAX_LINGER_S) - now_s

    def _forget_ended(self) -> None:
        """Forgets ended batches: all that could run has run, so the job's log has their results."""
        ended, self._ended = self._ended, []
        for noted in ended:
            if not noted.left and noted.number in self._around.journal.batches:
                self._around.journal.dropped(noted, "all is taken")

    # -- submitting -----------------------------------------------------------------------

    async def _flush(self) -> None:
        asks = [ask for ask in self._waiting.values() if not ask.reply.done()]
        self._waiting.clear()
        try:
            self._forget_ended()
            await self._submitting.settle_doubts()
            rest = self._attached(asks)
            for part, entries in self._parts(self._affordable(rest)):
                await self._submit(part, entries)
            if not self._running:  # whose end would wake them
                self._wake_put_off()
        except Exception as error:
            for ask in asks:
                if not self._is_under_way(ask):
                    ask.fail(_stopped(error))
        finally:
            self._flushing = None

    def _is_under_way(self, ask: Ask) -> bool:
        noted = self._around.journal.where.get(ask.id)
        under = None if noted is None else self._running.get(noted.number)
        is_waiting = ask.id in self._waiting or ask.id in self._put_off
        return is_waiting or (under is not None and ask.id in under[0].asks)

    def _attached(self, asks: Sequence[Ask]) -> list[Ask]:
        """Makes requests wait for batches that already have them; returns the others."""
        rest = []
        for ask in asks:
            noted = self._around.journal.where.get(ask.id)
            if noted is None:
                rest.append(ask)
                continue
            if not noted.batch:
                raise BatchStopped("it is not known whether a batch was submitted", hint=AGAIN)
            if not ask.is_held:  # it is paid for, whatever the budget says
                self._around.budget.take(ask.wanted.ceiling_usd, at_any_rate=True)
                ask.is_held = True
            running = self._see_through(noted)
            (self._put_off if running.is_reading else running.asks)[ask.id] = ask
        return rest

    def _affordable(self, asks: Sequence[Ask]) -> list[Ask]:
        """The requests that the budget has room for; others wait for a batch to end, or fail."""
        budget, found = self._around.budget, []
        for ask in asks:
            if ask.is_held or budget.take(ask.wanted.ceiling_usd):
                ask.is_held = True
                found.append(ask)
            else:
                self._put_off[ask.id] = ask
        if self._put_off and not found and not self._running:
            put_off, self._put_off = self._put_off, {}
            for ask in put_off.values():
                ask.fail(budget.exceeded(ask.wanted.ceiling_usd))
        return found

    def _parts(self, asks: Sequence[Ask]) -> Iterator[tuple[list[Ask], list[Entry]]]:
        """The batches to make of some requests. A request that cannot be written fails."""
        part: list[Ask] = []
        entries: list[Entry] = []
        n_bytes, most_bytes = 0, min(self._api.max_bytes, MAX_BYTES)
        for ask in asks:
            try:
                entry = self._api.entry(ask.id, ask.wanted.body())
            except SgcError as error:
                ask.fail(error)
                continue
            size = len(entry.line) + 1
            if size > self._api.max_bytes:
                ask.fail(BackendError(
                    f"a request of {size:,} bytes does not fit a batch of "
                    f"{self._api.max_bytes:,}",
                    hint="ask for less, or run without --batch",
                ))  # fmt: skip
                continue
            if part and (len(part) >= self._most or n_bytes + size > most_bytes):
                yield part, entries
                part, entries, n_bytes = [], [], 0
            part.append(ask)
            entries.append(entry)
            n_bytes += size
        if part:
            yield part, entries

    async def _submit(self, part: Sequence[Ask], entries: Sequence[Entry]) -> None:
        self._around.sync()
        noted = await self._submitting.submit(entries)
        self._around.note(
            f"batch {noted.number}: {len(part):,} requests are submitted ({noted.batch})"
        )
        running = self._see_through(noted)
        for ask in part:
            ask.n_tries += 1
            if not ask.reply.done():
                running.asks[ask.id] = ask

    # -- results --------------------------------------------------------------------------

    def _see_through(self, noted: Noted) -> Running:
        """The batch as it is followed to its end."""
        found = self._running.get(noted.number)
        if found is None:
            around = self._around
            running = Running(
                self._api, noted, around.journal, around.clock, around.note,
                around.asks_errors_again, self._again,
            )  # fmt: skip
            task = asyncio.get_running_loop().create_task(self._follow(running))
            found = self._running[noted.number] = running, task
        return found[0]

    async def _follow(self, running: Running) -> None:
        try:
            await running.run()
            self._learn_size(running)
        finally:
            del self._running[running.noted.number]
            self._ended.append(running.noted)
            self._wake_put_off()

    def _wake_put_off(self) -> None:
        for ask in self._put_off.values():
            self._wait(ask)
        self._put_off.clear()

    def _learn_size(self, running: Running) -> None:
        """Smaller batches for a provider whose queue one of them fills, then larger ones again."""
        if not running.is_too_much:
            self._most = min(2 * self._most, self._api.max_requests)
        elif len(self._running) == 1:
            self._most = max(1, running.noted.key.n_requests // 2)

    def _again(self, ask: Ask) -> None:
        """Puts a request into the next batch."""
        if not ask.reply.done():
            self._wait(ask)

    # -- from outside -----------------------------------------------------------------------

    @property
    def outstanding(self) -> list[str]:
        """Batches that go on at the provider even if this process ends. For any thread."""
        return [
            each.batch or f"number {each.number}, if it arrived"
            for each in tuple(self._around.journal.batches.values())
            if not each.is_over
        ]

    async def cancel(self, tell: Callable[[str], None]) -> None:
        """Cancels all running batches, and reports each. Raises the first error when all were
        tried. Batches that may not exist come last, since they may take long."""
        tried: set[str] = set()
        failed = await self._cancel_known(tell, tried)
        try:
            await self._submitting.settle_doubts()
        except (BackendError, RunLogError) as error:
            failed = failed or error
        later = await self._cancel_known(tell, tried)
        if first := failed or later:
            raise first

    async def _cancel_known(self, tell: Callable[[str], None], tried: set[str]) -> SgcError | None:
        failed: SgcError | None = None
        for noted in tuple(self._around.journal.batches.values()):
            if noted.is_over or not noted.batch or noted.batch in tried:
                continue
            tried.add(noted.batch)
            try:
                word = await self._cancelled(noted.batch)
            except BackendError as error:
                tell(f"{noted.batch} is not cancelled: {error.message}")
                failed = failed or error
                continue
            tell(f"{noted.batch} {word}")
            try:
                self._around.journal.over(noted, word)
            except RunLogError as error:  # on a full disk the others are cancelled all the same
                failed = failed or error
        return failed

    async def _cancelled(self, batch: str) -> str:
        """What has become of a batch; one that has ended cannot be cancelled."""
        try:
            await self._api.cancel(batch)
            return "is cancelled"
        except NotFound:
            return "is not there any more"
        except BackendError:
            if not (await self._api.look(batch)).is_over:
                raise
            return "has ended already"

    async def close(self) -> None:
        """Stops following batches; they go on at the provider."""
        self._around.idle.watchers.remove(self._on_idle)
        if self._timer is not None:
            self._timer.cancel()
        tasks = [task for _, task in self._running.values()]
        if self._flushing is not None:
            tasks.append(self._flushing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._around.journal.close()


def _stopped(error: Exception) -> Exception:
    """An error of a whole batch: it is no result of any row, and ends the job."""
    if isinstance(error, BatchStopped | RunLogError):
        return error
    said = error.message if isinstance(error, SgcError) else f"{type(error).__name__}: {error}"
    stopped = BatchStopped(f"no batch was submitted: {said}", hint=getattr(error, "hint", ""))
    stopped.__cause__ = error
    return stopped
