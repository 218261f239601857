"""Makes equal deterministic requests once, within one run or the rows of one batch.

A request that is greedy, or whose seed the user set, has one reply. An equal request that comes
while it is running waits for it; a later one receives the kept reply, marked `from_shared`. The
same holds for scores of choices. The first request is made as if there were no others, since nearly
all requests have no equal. If it is cancelled, the next one is made; if it fails, only the first
fails, and each of the others is made by itself. The number and size of kept replies are bounded. It
lives on one event loop.
"""

from __future__ import annotations

import asyncio
import copy
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from sgc.errors import SgcError
from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
)
from sgc.runtime.executor.interface.wrapping import Wrapping

MAX_REPLIES = 16_384
MAX_BYTES = 64 * 1024 * 1024  # of kept replies, by estimate

R = TypeVar("R", Generated, Scored)
Replies = tuple[Any, ...]


class _Key:
    """A request as a dict key, hashed only once, since prompts are long."""

    __slots__ = ("_hash", "parts")

    def __init__(self, *parts: Hashable) -> None:
        self.parts = parts
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.parts == other.parts


class SingleFlight(Wrapping):
    """A backend that makes equal requests once."""

    def __init__(
        self, backend: Backend, max_replies: int = MAX_REPLIES, max_bytes: int = MAX_BYTES
    ) -> None:
        super().__init__(backend)
        self._flights: dict[_Key, _Flight] = {}
        self._kept = _Kept(max_replies, max_bytes)

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        if not sampling.is_deterministic:
            return await self.inner.generate(prompt, sampling, on_delta)

        async def ask(told: OnDelta | None) -> tuple[Generated, ...]:
            return (await self.inner.generate(prompt, sampling, told),)

        key = _Key("generate", prompt, _drawn_alike(sampling))
        return (await self._once(key, ask, on_delta))[0]

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        if not all(sampling.is_deterministic for sampling in samplings):
            return await self.inner.generate_n(prompt, samplings)

        async def ask(told: OnDelta | None) -> tuple[Generated, ...]:
            return await self.inner.generate_n(prompt, samplings)

        key = _Key("generate_n", prompt, *map(_drawn_alike, samplings))
        return await self._once(key, ask)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        async def ask(told: OnDelta | None) -> tuple[Scored, ...]:
            return (await self.inner.score(prompt, choices, unconditional),)

        return (await self._once(_Key("score", prompt, choices, unconditional), ask))[0]

    async def _once(
        self,
        key: _Key,
        ask: Callable[[OnDelta | None], Awaitable[tuple[R, ...]]],
        on_delta: OnDelta | None = None,
    ) -> tuple[R, ...]:
        shown = None if on_delta is None else _Shown(on_delta)
        while True:
            replies: tuple[R, ...] | None = self._kept.get(key)
            if replies is None:
                flight = self._flights.get(key)
                if flight is None:
                    return await self._lead(key, ask, shown)
                outcome = await flight.follow(shown)
                if outcome is None:
                    continue  # the leader has left: another request takes over
                if isinstance(outcome, BaseException):
                    if (
                        shown is not None and shown.n_told
                    ):  # text that was shown does not begin again
                        raise _own(outcome)
                    return await ask(on_delta)
                replies = outcome
            if shown is not None:
                shown.finish(_text_of(replies))
            return _shared(replies)

    async def _lead(
        self,
        key: _Key,
        ask: Callable[[OnDelta | None], Awaitable[tuple[R, ...]]],
        shown: _Shown | None,
    ) -> tuple[R, ...]:
        """Makes the request as the leader: equal requests wait for its reply meanwhile."""
        flight = self._flights[key] = _Flight(shown)
        outcome: Replies | BaseException | None = None
        try:
            replies = await ask(None if shown is None else flight.say)
            self._kept.put(key, replies)
            outcome = replies
            return replies
        except Exception as error:
            outcome = None if flight.has_left else error
            raise
        finally:
            del self._flights[key]
            flight.end(outcome)


class _Shown:
    """The text that one reader has been shown; a repeated text continues where it stopped."""

    def __init__(self, on_delta: OnDelta) -> None:
        self._on_delta = on_delta
        self._n_said = 0
        self.n_told = 0

    def begin(self) -> None:
        """The next text is the beginning again."""
        self._n_said = 0

    def tell(self, text: str) -> None:
        self._n_said += len(text)
        new = text[len(text) - max(0, self._n_said - self.n_told) :]
        if new:
            self.n_told = self._n_said
            self._on_delta(new)

    def finish(self, text: str) -> None:
        """Shows the missing rest of the whole text."""
        self.begin()
        self.tell(text)


class _Flight:
    """A running request: its leader passes its text and its outcome to the requests that wait."""

    def __init__(self, shown: _Shown | None) -> None:
        self._shown = shown
        self._said: list[str] = []
        self._waits: dict[asyncio.Future[Any], _Shown | None] = {}
        self.has_left = False  # the leader failed by its own callback, not by the request
        if shown is not None:
            shown.begin()

    def say(self, text: str) -> None:
        """Shows text as it comes, to the others first: the leader's callback may raise."""
        self._said.append(text)
        for wait, shown in self._waits.items():
            _tell(wait, shown, text)
        assert self._shown is not None
        try:
            self._shown.tell(text)
        except BaseException:
            self.has_left = True
            raise

    async def follow(self, shown: _Shown | None) -> Replies | BaseException | None:
        """Waits for the end: returns replies, an error, or None if the leader has left."""
        wait: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waits[wait] = shown
        try:
            if shown is not None:
                shown.begin()
                _tell(wait, shown, "".join(self._said))
            outcome: Replies | BaseException | None = await wait
            return outcome
        finally:
            del self._waits[wait]

    def end(self, outcome: Replies | BaseException | None) -> None:
        for wait in self._waits:
            if not wait.done():
                wait.set_result(outcome)


def _tell(wait: asyncio.Future[Any], shown: _Shown | None, text: str) -> None:
    """Shows text; an error of the reader's callback ends only its own wait."""
    if shown is None or wait.done():
        return
    try:
        shown.tell(text)
    except StopIteration as error:  # which no future may hold
        wait.set_exception(RuntimeError(f"a callback raised {error!r}"))
    except BaseException as error:
        wait.set_exception(error)


class _Kept:
    """Replies by request; the least recently used are dropped when there are too many."""

    def __init__(self, max_replies: int, max_bytes: int) -> None:
        self._max_replies, self._max_bytes = max_replies, max_bytes
        self._replies: OrderedDict[_Key, tuple[Replies, int]] = OrderedDict()
        self._n_bytes = 0

    def get(self, key: _Key) -> Replies | None:
        found = self._replies.get(key)
        if found is None:
            return None
        self._replies.move_to_end(key)
        return found[0]

    def put(self, key: _Key, replies: Replies) -> None:
        n_bytes = _n_bytes(key.parts[1], replies)
        self._n_bytes += n_bytes - self._replies.pop(key, (replies, 0))[1]
        self._replies[key] = (replies, n_bytes)
        while self._n_bytes > self._max_bytes or len(self._replies) > self._max_replies:
            self._n_bytes -= self._replies.popitem(last=False)[1][1]


def _n_bytes(prompt: Any, replies: Replies) -> int:
    """Estimates how much memory a reply and its request take."""
    total = 1024
    for segment in prompt:
        total += 4 * len(segment.text) + 8 * len(getattr(segment, "ids", ()))
    for reply in replies:
        if isinstance(reply, Generated):
            logprobs = reply.logprobs
            n_rows = 0 if logprobs is None else len(logprobs.input) + len(logprobs.output)
            tops = () if logprobs is None else (*logprobs.input_top, *logprobs.output_top)
            n_rows += sum(len(rows) for rows in tops if rows is not None)
            total += 8 * len(reply.text) + 16 * len(reply.ids) + 200 * n_rows
        else:
            total += sum(200 + 100 * len(choice.ids) for choice in reply.choices)
    return total


def _own(error: BaseException) -> BaseException:
    """Copies an error that several requests raise, so that each can name its own line."""
    if not isinstance(error, SgcError):
        return error
    own = copy.copy(error)
    own.where = ""
    return own


def _drawn_alike(sampling: Sampling) -> Sampling:
    """Returns the sampling without what does not affect the text: the seed, if it is greedy."""
    return replace(sampling, seed=0) if sampling.is_greedy and sampling.seed else sampling


def _text_of(replies: Replies) -> str:
    return replies[0].text if isinstance(replies[0], Generated) else ""


def _shared(replies: tuple[R, ...]) -> tuple[R, ...]:
    marked = (replace(reply.usage, from_shared=True) for reply in replies)
    return tuple(replace(r, usage=usage) for r, usage in zip(replies, marked, strict=True))
