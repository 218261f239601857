"""A step that runs before the tokens of the one before it are known on the host.

On a device, the tokens that a step draws can be the next step's input without leaving the device.
So while one decoding step runs, the next is prepared and sent after it, and the device never waits
for the host to read tokens, find out which requests have ended, and send their replies. A request
that did end has run one position in vain, and its page is free again.

Only steps in which every request decodes, and draws from logits alone, are prepared this way, and
only while no request waits; any other step is made from known tokens. Both give the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.ints import NO_INTS, Ints
from sgc.runtime.engine.model.forward import AsyncForward, AsyncLogits, Drawn, Row, flatten
from sgc.runtime.engine.requests.finite import NOT_FINITE, NotFinite
from sgc.runtime.engine.requests.request import Generate, State, Work
from sgc.runtime.engine.scheduling.items import Item
from sgc.runtime.engine.step.batch import FIRST, StepBatch
from sgc.runtime.engine.step.counts import Counters
from sgc.runtime.engine.step.faults import Faults
from sgc.runtime.engine.step.generation import draw_of

_UNKNOWN: Ints = np.zeros(1, np.int64)  # a token that is on the device


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that runs: its requests that have not ended, and their rows of the logits."""

    items: list[Item]
    batch: StepBatch
    logits: AsyncLogits


@dataclass(frozen=True, slots=True)
class _Running:
    """pages: [n], of the works' next positions."""

    works: list[Work]
    pages: Ints
    batch: StepBatch
    logits: AsyncLogits


class StepsAhead:
    """longest: tokens that a sequence may have. counters: count positions run in vain."""

    def __init__(
        self, forward: AsyncForward, cache: PrefixCache, longest: int, counters: Counters
    ) -> None:
        self._forward, self._cache, self._longest = forward, cache, longest
        self._counters = counters
        self._running: _Running | None = None

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @property
    def pages(self) -> Ints:
        """The pages held for the running step."""
        return NO_INTS if self._running is None else self._running.pages

    def take(self) -> Begun | None:
        """The step that runs, which is now the current one; None if there is none, or all of its
        requests have ended."""
        running, self._running = self._running, None
        if running is None:
            return None
        rows = [row for row, work in enumerate(running.works) if work.state is State.RUNNING]
        self._cache.release(np.delete(running.pages, rows))
        self._counters.speculated_tokens += len(running.works) - len(rows)
        if not rows:
            return None
        for row in rows:
            running.works[row].pages.append(running.pages.item(row))
        batch = StepBatch(
            running.batch.flat, tuple((running.works[row], row) for row in rows), (), (), {},
            n_idle=len(running.works) - len(rows),
        )  # fmt: skip
        items = [Item(running.works[row], 1, (), True) for row in rows]
        return Begun(items, batch, running.logits)

    def draw(self, batch: StepBatch, items: Sequence[Item], logits: AsyncLogits) -> Drawn | None:
        """Begins to draw a step's tokens, and sends the next step after it; does nothing and
        returns None if the tokens must be known first."""
        if not all(map(_draws_from_logits, items)) or batch.targets or batch.logged:
            return None
        draws = [draw_of(work, None) for work, _ in batch.sampled]
        drawn = logits.begin_draw([row for _, row in batch.sampled], draws)
        self._send_next(batch, drawn)
        return drawn

    def drop(self) -> None:
        """Forgets the running step; its results are not used."""
        self._cache.release(self.pages)
        self._running = None

    def _send_next(self, batch: StepBatch, drawn: Drawn) -> None:
        going = [n for n, (work, _) in enumerate(batch.sampled) if self._goes_on(work)]
        pages = self._cache.reserve(len(going)) if going else None
        if pages is None:
            return
        works = [batch.sampled[n][0] for n in going]
        rows = [
            Row(_UNKNOWN, len(work.tokens), np.append(work.pages.view, page), FIRST, work.shift)
            for work, page in zip(works, pages, strict=True)
        ]
        following = StepBatch(flatten(rows), (), (), (), {})
        try:
            logits = self._forward.run_after(following.flat, drawn, going)
        except BaseException:
            self._cache.release(pages)
            raise
        self._running = _Running(works, pages, following, logits)

    def _goes_on(self, work: Work) -> bool:
        """Whether the request draws another token after this step's, unless that token ends it."""
        return work.n_left > 1 and len(work.tokens) + 1 < self._longest


def _draws_from_logits(item: Item) -> bool:
    is_plain = item.is_decode and not item.guesses and item.work.decoding.may_guess
    return is_plain and isinstance(item.work.request.kind, Generate)


def tokens_of(batch: StepBatch, drawn: Drawn, faults: Faults) -> dict[Work, list[int] | None]:
    """The tokens of each request, as of `drawing.draw_tokens`."""
    tokens: dict[Work, list[int] | None] = {}
    for (work, _), token in zip(batch.sampled, drawn.wait(), strict=True):
        if token < 0:
            faults.note(work, NotFinite(NOT_FINITE))
        else:
            tokens[work] = [token]
    return tokens
