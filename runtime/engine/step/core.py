"""The engine's step loop, one step at a time: `submit`, `cancel`, `step`.

It runs a `Forward`, samples and returns updates; the scheduler chooses what runs, the cache holds
the results. It knows neither text (an injected factory makes stop checkers) nor sockets.
`worker/main.py` calls it. Single-threaded.

Which positions run through the model: each prompt position runs once among the requests that share
it, unless it was evicted. Each position of a score's choices runs once, except the last of a choice
that no other continues. Each generated token except the last is run by its own request; text that a
constraint forces to the end is not run. Guesses that are refused run in addition
(`lookup.py`), and so does a position after a text's end if the next step was sent before that was
known (`ahead.py`). A generate or score request whose whole prompt is cached runs its last position
again, for the logits. Prefetches run when no request waits (`prefetch_queue.py`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.disk.stats import DiskStats
from sgc.runtime.engine.ints import NO_INTS, IntBuffer
from sgc.runtime.engine.model.forward import AsyncForward, AsyncLogits, Drawn, Forward, Logits
from sgc.runtime.engine.names import DEFAULT_POLICY
from sgc.runtime.engine.requests.request import (
    Commit,
    EngineError,
    EngineRequest,
    Prefetch,
    State,
    Times,
    Update,
    Usage,
    Work,
)
from sgc.runtime.engine.requests.validate import Limits, problem_of
from sgc.runtime.engine.scheduling.gathers import Gathers, settled
from sgc.runtime.engine.scheduling.loads import Loads
from sgc.runtime.engine.scheduling.lookup import Lookup
from sgc.runtime.engine.scheduling.prefetch_queue import PrefetchQueue
from sgc.runtime.engine.scheduling.scheduler import Scheduler
from sgc.runtime.engine.step.ahead import StepsAhead
from sgc.runtime.engine.step.answering import Answering
from sgc.runtime.engine.step.batch import StepBatch, build
from sgc.runtime.engine.step.counts import Stats, stats_now
from sgc.runtime.engine.step.equipment import Equipment, StopCheckerFactory
from sgc.runtime.engine.step.faults import Faults, error_of
from sgc.runtime.engine.step.model_step import ModelStep

if TYPE_CHECKING:  # its libraries are imported only where there is one
    from sgc.runtime.engine.disk.pages import PageBytes
    from sgc.runtime.engine.disk.tier import DiskTier


MAX_IMAGE_BYTES = 1024 * 1024 * 1024  # for the encoder, of unfinished requests


class EngineCore(Answering):
    """chunk_tokens: positions a step may run, decodes included. policy: `names.POLICIES`.

    check: verify every invariant after each step, at a cost. shares_in_batch: whether requests wait
    for positions that others are computing. make_cache: makes the cache from the pool's size; for
    ablations. headroom_tokens: pages kept free for the generation of each running request. jumps:
    whether tokens that a constraint forces are appended without a model step. lookup: whether
    requests guess tokens, which changes no text. is_ahead: whether `forward` returns before its
    logits are there, as on a device; what else a step does then happens meanwhile. disk: keeps
    evicted prefixes, and has those that other engines kept. no_generation: why the model makes only
    embeddings. pages: joined parts are copied in them; without them, joined prompts are computed
    like others. state_slots: of a model with recurrent layers, for states of requests and
    snapshots; 0: it has none. With them nothing is guessed and nothing joined, since states cannot
    go back.
    """

    def __init__(
        self,
        forward: Forward,
        *,
        pool_tokens: int,
        max_context: int,
        vocab_size: int,
        chunk_tokens: int = 512,
        max_running: int = 256,
        max_waiting: int = 8192,
        make_stop_checker: StopCheckerFactory | None = None,
        check: bool = False,
        policy: str = DEFAULT_POLICY,
        make_cache: Callable[[int], PrefixCache] = PrefixCache,
        shares_in_batch: bool = True,
        headroom_tokens: int = 32,
        jumps: bool = True,
        lookup: bool = True,
        is_ahead: bool = False,
        disk: DiskTier | None = None,
        no_generation: str = "",
        pages: PageBytes | None = None,
        state_slots: int = 0,
    ) -> None:
        super().__init__()
        self.is_ahead = is_ahead
        self._disk = disk
        self.limits = Limits(max_context, pool_tokens, vocab_size, no_generation)
        self.max_waiting = max_waiting
        self._forward = forward
        self._equipment = Equipment(self.limits, make_stop_checker, jumps)
        self._checks = check
        note = None if disk is None else disk.costs.steps.note
        self._model = ModelStep(forward, vocab_size, self._counters, is_ahead=is_ahead, note=note)
        self._orders = itertools.count()
        self._ran_nothing = False

        guesses, parts = lookup and not state_slots, None if state_slots else pages

        def new_scheduler() -> Scheduler:
            cache = make_cache(pool_tokens)
            if state_slots:
                cache.keep_states(state_slots)
            if disk is not None:
                cache.tree.before_evicting = disk.save
            longest = self.limits.longest
            return Scheduler(
                cache,
                chunk_tokens,
                max_running,
                policy=policy,
                shares_in_batch=shares_in_batch,
                headroom_tokens=headroom_tokens,
                lookup=Lookup(cache, chunk_tokens, longest) if guesses else None,
                loads=None if disk is None else Loads(cache, disk),
                gathers=None if parts is None else Gathers(cache, self._orders, parts),
            )

        self._new_scheduler = new_scheduler
        self._start()

    def _start(self) -> None:
        """Starts with an empty cache."""
        self.scheduler = self._new_scheduler()
        can_go_ahead = self.is_ahead and getattr(self._forward, "takes_drawn", False)
        forward = cast(AsyncForward, self._forward)
        self._ahead = (
            StepsAhead(forward, self.cache, self.limits.longest, self._counters)
            if can_go_ahead
            else None
        )
        self.prefetches = PrefetchQueue(self.cache, self.scheduler, self.scheduler.chunk_tokens)

    @property
    def cache(self) -> PrefixCache:
        return self.scheduler.cache

    @property
    def has_work(self) -> bool:
        """Whether `step` has positions to run or updates to return."""
        is_running = self._ahead is not None and self._ahead.is_running
        return bool(self._live or self._outbox or self.prefetches or is_running)

    @property
    def is_loading_only(self) -> bool:
        """Whether the last step had nothing to run and only the disk is waited for."""
        return bool(self.scheduler.loads) and self._ran_nothing

    @property
    def is_decoding_only(self) -> bool:
        """Whether the next step is short: every request draws its next token."""
        running = self.scheduler.running
        is_all = len(running) == len(self._live) and not self.prefetches
        return is_all and all(work.is_decoding for work in running)

    def submit(self, request: EngineRequest) -> None:
        """Accepts or refuses a request; the next `step` returns the refusal."""
        self._counters.requests += 1
        is_joined = isinstance(request.kind, Prefetch) and request.joins
        if is_joined or (isinstance(request.kind, Commit | Prefetch) and not len(request.tokens)):
            # Later text may change its only token, so there is nothing to cache. A prefetch must
            # hold nobody up, and parts of joins would.
            self._outbox.append(Update(request.id, final=True, usage=Usage()))
            return
        work: Work | None = None
        try:
            error = self._refusal(request)
            if error is None:
                work = self._work(request)
                self._begin(work)
        except BaseException as problem:  # only this request fails: nothing is shared yet
            error = error_of(problem)
        if error is not None or work is None:
            self._outbox.append(Update(request.id, final=True, error=error))
        elif isinstance(request.kind, Prefetch):
            self._outbox += self.prefetches.add(work)
        else:
            work.was_delayed = self.prefetches.has_run
            self._live[request.id] = work
            self.scheduler.add(work)

    def _work(self, request: EngineRequest) -> Work:
        if request.joins:
            can_join = self.scheduler.gathers is not None
            request = settled(request, self.limits.pool_tokens if can_join else 0)
        times = Times(time.monotonic())
        return Work(request, next(self._orders), times, IntBuffer(request.tokens))

    def _begin(self, work: Work) -> None:
        """Sets the request up; tokens that its constraint forces at once run with the prompt."""
        update = self._equipment.equip(work)
        if update is None:
            return
        self._counters.sampled_tokens += len(update.new_ids)
        self._counters.forced_tokens += work.decoding.n_forced
        if update.final:  # sent once the prompt is cached, as for other requests
            work.decoding.ending, work.wants_logits = update, False
        elif update.new_ids:
            self._outbox.append(update)

    def cancel(self, request_id: int) -> None:
        """Frees at once what a request holds. It gets no more updates."""
        work = self._live.get(request_id)
        if work is not None:
            self._forget(work)
        self.prefetches.cancel(request_id)
        self._outbox = [update for update in self._outbox if update.id != request_id]

    def step(self, meanwhile: Callable[[], None] | None = None) -> list[Update]:
        """Runs one batch, if anything can run, and returns the updates. meanwhile: is called once
        the batch runs, and must not call this core.

        If it raises, call `fail`: no update of the step has been returned yet.
        """
        faults = Faults()
        batch, logits = self._begin_step(faults)
        if batch is not None and logits is not None:
            drawn = None if self._ahead is None else self._draw_ahead(self._ahead, batch, logits)
            if meanwhile is not None:
                meanwhile()
            tokens = self._model.tokens(batch, logits, drawn, faults)
            self._commit(batch, faults)
            self._outbox += self.prefetches.commit()
            self._emit(tokens, faults)
        self._items = []
        if self._checks:
            self.check()
        updates, self._outbox = self._outbox, []
        return updates

    def _begin_step(self, faults: Faults) -> tuple[StepBatch | None, Logits | None]:
        """Runs the next batch, unless it runs already."""
        begun = None if self._ahead is None else self._ahead.take()
        if begun is not None:
            self._items = begun.items
            return begun.batch, begun.logits
        self.scheduler.take_loaded()
        self._gather()
        self._admit()
        self._items = self.scheduler.choose()
        # Unsent updates count too: a prefetch must not delay them.
        n_live = len(self._live) + len(self._outbox)
        ahead, updates = self.prefetches.choose(self._items, n_live)
        self._outbox += updates
        self._ran_nothing = not self._items and ahead is None
        if self._ran_nothing:
            return None, None
        batch = build(self._items if ahead is None else [*self._items, ahead])
        return batch, self._model.run(batch, faults)

    def _gather(self) -> None:
        """Goes on with joined contexts: their parts are requests of the core's own."""
        for work, error in self.scheduler.take_gathered():
            self._end(work, Update(work.request.id, final=True, error=error))
        if self.scheduler.gathers is None:
            return
        for part in self.scheduler.gathers.take_dropped():
            self._forget(part)
        for part in self.scheduler.gathers.take_new():
            self._live[part.request.id] = part
            self.scheduler.waiting.wake(part)

    def _draw_ahead(self, ahead: StepsAhead, batch: StepBatch, logits: Logits) -> Drawn | None:
        """Sends the next step after this one, if that may be done before its tokens are known."""
        n_waiting = len(self._live) - len(self.scheduler.running)
        if n_waiting or self.prefetches or self.scheduler.may_guess(len(self._items)):
            return None
        return ahead.draw(batch, self._items, cast(AsyncLogits, logits))

    def fail(self, message: str) -> None:
        """After `step` raised: ends the requests of its batch, or resets if there was none."""
        works = [item.work for item in self._items]
        self._items = []
        if self._ahead is not None:
            self._ahead.drop()
        prefetch_id = self.prefetches.fail()
        half_gone = [w for w in works if w.state is State.RUNNING and not self._is_live(w)]
        is_empty = not works and prefetch_id is None
        if is_empty or half_gone:  # not the model's fault: the engine's own state is broken
            self.reset(message)
            return
        error = EngineError(pb.ERROR_CODE_INTERNAL, message)
        if prefetch_id is not None:
            self._outbox.append(Update(prefetch_id, final=True, error=error))
        for work in works:
            if self._is_live(work):
                self._end(work, Update(work.request.id, final=True, error=error))

    def reset(self, message: str) -> None:
        """Ends every request and starts with an empty cache; the last resort."""
        error = EngineError(pb.ERROR_CODE_INTERNAL, message)
        lost = [i for i, work in self._live.items() if not work.is_part]
        lost += self.prefetches.ids()
        self._outbox += [Update(i, final=True, error=error) for i in lost]
        self._live.clear()
        self._items = []
        if self.scheduler.loads is not None:
            self.scheduler.loads.close()
        self._start()

    def flush_cache(self) -> int:
        """Drops every cached prefix that no running or waiting request uses; returns the tokens.
        What is on disk stays there."""
        return self.cache.flush()

    def close(self) -> None:
        """Keeps on disk what is cached; nothing is run after it."""
        if self._disk is not None:
            self._disk.close(self.cache.tree)

    def stats(self) -> Stats:
        disk = DiskStats() if self._disk is None else self._disk.stats()
        live, now = self._live.values(), time.monotonic()
        n_bytes = int(getattr(self._forward, "encoded_bytes", 0))
        return stats_now(self._counters, self.scheduler, self.prefetches, live, now, disk, n_bytes)

    def check(self) -> None:
        """Verifies every invariant of tree, pool and scheduler."""
        self.scheduler.check(NO_INTS if self._ahead is None else self._ahead.pages)
        running = {work.request.id for work in self.scheduler.running}
        assert running <= self._live.keys()

    def _refusal(self, request: EngineRequest) -> EngineError | None:
        if request.id in self._live or request.id in self.prefetches:
            message = f"request id {request.id} is in use by an unfinished request"
            return EngineError(pb.ERROR_CODE_INVALID_ARGUMENT, message)
        if request.images and self._n_image_bytes(request) > MAX_IMAGE_BYTES:
            message = f"unfinished requests have {MAX_IMAGE_BYTES} bytes of images; try again later"
            return EngineError(pb.ERROR_CODE_RESOURCE_EXHAUSTED, message)
        if len(self._live) - len(self.scheduler.running) >= self.max_waiting:
            message = f"{self.max_waiting} requests are waiting already; try again later"
            return EngineError(pb.ERROR_CODE_RESOURCE_EXHAUSTED, message)
        return problem_of(request, self.limits)

    def _n_image_bytes(self, more: EngineRequest) -> int:
        requests = [more, *(work.request for work in self._live.values())]
        held = {each.image.digest: each.image for one in requests for each in one.images}
        return sum(image.n_bytes for image in held.values())

    def _admit(self) -> None:
        for work in self.scheduler.admit(time.monotonic()):
            if work.n_todo_in_all == 0:  # all of it was cached
                self._finish(work)

    def _commit(self, batch: StepBatch, faults: Faults) -> None:
        """Records the computed positions and publishes them. Those of a failed request are not
        published: its pages may hold NaN."""
        n_guesses = batch.n_guesses if batch.guesses else 0
        self._counters.positions_run += batch.n_tokens - n_guesses - batch.n_idle
        self._counters.speculated_tokens += n_guesses
        self._counters.steps += 1
        for item in self._items:
            work = item.work
            if work in faults:
                continue
            work.n_computed += item.n_tokens
            self.scheduler.snapshots.ran(work)
            if item.is_decode:
                continue  # published when another request needs it, or at the end
            for part in item.parts:
                part.branch.n_done += part.n_tokens
            if work.trie is not None:
                work.trie.n_done += sum(part.n_tokens for part in item.parts)
            self.scheduler.publish(work)
