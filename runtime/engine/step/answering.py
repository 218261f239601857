"""What happens to a step's tokens: a core's unfinished requests, and their updates."""

from __future__ import annotations

import time

from sgc.runtime.engine.requests.request import State, Update, Usage, Work
from sgc.runtime.engine.requests.validate import Limits
from sgc.runtime.engine.scheduling.items import Item
from sgc.runtime.engine.scheduling.scheduler import Scheduler
from sgc.runtime.engine.step.counts import Counters
from sgc.runtime.engine.step.faults import Faults, error_of
from sgc.runtime.engine.step.generation import final_update, grow, grow_run


class Answering:
    """The part of `EngineCore` that answers requests."""

    limits: Limits
    scheduler: Scheduler

    def __init__(self) -> None:
        self._counters = Counters()
        self._live: dict[int, Work] = {}
        self._outbox: list[Update] = []
        self._items: list[Item] = []  # of the current step

    def _is_live(self, work: Work) -> bool:
        return self._live.get(work.request.id) is work

    def _emit(self, tokens: dict[Work, list[int] | None], faults: Faults) -> None:
        now = time.monotonic()
        for item in self._items:
            work = item.work
            if (error := faults.get(work)) is not None:
                self._end(work, Update(work.request.id, final=True, error=error))
                continue
            if work.times.prefilled_at is None and work.n_todo == 0:
                work.times.prefilled_at = now
                self._counters.add(work.prompt_usage())
            if work in tokens:
                self._append(item, tokens[work])
            elif work.n_todo_in_all == 0:
                self._finish(work)
            if work.state is State.RUNNING:
                self.scheduler.commit(item)

    def _append(self, item: Item, tokens: list[int] | None) -> None:
        work = item.work
        n_forced, n_before = work.decoding.n_forced, len(work.tokens)
        try:
            if item.guesses and tokens is not None:
                update = grow_run(work, tokens, self.limits.longest)
            else:
                token = None if tokens is None else tokens[0]
                update = grow(work, token, self.limits.longest)
        except BaseException as error:  # of a constraint or stop: it ends only this request
            update = Update(work.request.id, final=True, error=error_of(error))
            if item.guesses:  # the tokens before the one that failed
                self._send(work, work.tokens.view[n_before:-1].tolist())
        self._counters.sampled_tokens += len(update.new_ids)
        self._counters.forced_tokens += work.decoding.n_forced - n_forced
        if item.guesses:
            self._accept(item, len(work.tokens) - n_before - 1)
        if update.final:
            self._end(work, update)
        else:
            self._outbox.append(update)

    def _send(self, work: Work, ids: list[int]) -> None:
        self._counters.sampled_tokens += len(ids)
        if ids:
            self._outbox.append(Update(work.request.id, tuple(ids)))

    def _accept(self, item: Item, n_accepted: int) -> None:
        """Settles a request's guesses: the first of them are now tokens of the text."""
        assert item.work.decoding.guesses is not None
        item.work.decoding.guesses.settle(n_accepted, len(item.guesses) - n_accepted)
        self._counters.positions_run += n_accepted
        self._counters.accepted_tokens += n_accepted
        self._counters.speculated_tokens -= n_accepted
        self.scheduler.accept(item.work, n_accepted)

    def _finish(self, work: Work) -> None:
        """Ends a request that has run all its positions and draws no token."""
        try:
            update = final_update(work)
        except Exception as error:
            update = Update(work.request.id, final=True, error=error_of(error))
        self._end(work, update)

    def _end(self, work: Work, update: Update) -> None:
        if update.choices:
            self.scheduler.publish_choices(work)
        if not work.is_part:
            self._outbox.append(update)  # first, so that it is sent whatever happens next
        self._forget(work, update.usage)
        if work.is_part and self.scheduler.gathers is not None:
            self.scheduler.gathers.end(work, update.error)

    def _forget(self, work: Work, usage: Usage | None = None) -> None:
        """Removes a request and counts its usage. usage: its final one; None if it ended early."""
        del self._live[work.request.id]
        counted = Usage() if work.times.prefilled_at is None else work.prompt_usage()
        self._counters.add(usage or work.usage_so_far(), counted)
        self.scheduler.leave(work)
