"""Equal requests that draw nothing are asked once, within one run or the rows of one batch.

A request that is greedy, or whose seed is the user's own, stands for one text: whoever asks for it
while it is under way waits for it, whoever asks later gets its reply again, marked `from_shared`.
So is scoring of choices. Each request is a task of its own, so that it outlives who asked first; it
is cancelled with the last one that waits. A failure is nobody's but the first one's: the others ask
for themselves. What is kept is bounded; what was dropped is asked again. Lives on one event loop.
"""

from __future__ import annotations

import asyncio
import copy
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from sgc.errors import SgcError
from sgc.runtime.executor.backend import (
    Backend,
    Capabilities,
    Generated,
    Prompt,
    Sampling,
    Scored,
    Usage,
)

MAX_REPLIES = 16_384
MAX_BYTES = 64 * 1024 * 1024  # of what is kept, as far as it can be told

R = TypeVar("R", Generated, Scored)
OnDelta = Callable[[str], None]
Replies = tuple[Any, ...]
Ask = Callable[[OnDelta | None], Awaitable[Replies]]


class SingleFlight:
    """A backend that asks another one for equal requests once."""

    def __init__(
        self, backend: Backend, max_replies: int = MAX_REPLIES, max_bytes: int = MAX_BYTES
    ) -> None:
        self._backend = backend
        self._flights: dict[Hashable, _Flight] = {}
        self._kept = _Kept(max_replies, max_bytes)

    async def capabilities(self) -> Capabilities:
        return await self._backend.capabilities()

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        if not sampling.is_deterministic:
            return await self._backend.generate(prompt, sampling, on_delta)

        async def ask(told: OnDelta | None) -> tuple[Generated, ...]:
            return (await self._backend.generate(prompt, sampling, told),)

        key = ("generate", prompt, _drawn_alike(sampling))
        return (await self._once(key, ask, on_delta))[0]

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        if not all(sampling.is_deterministic for sampling in samplings):
            return await self._backend.generate_n(prompt, samplings)

        async def ask(told: OnDelta | None) -> tuple[Generated, ...]:
            return await self._backend.generate_n(prompt, samplings)

        key = ("generate_n", prompt, *map(_drawn_alike, samplings))
        return await self._once(key, ask)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        async def ask(told: OnDelta | None) -> tuple[Scored, ...]:
            return (await self._backend.score(prompt, choices, unconditional),)

        return (await self._once(("score", prompt, choices, unconditional), ask))[0]

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        return await self._backend.commit_prefix(prompt, heads)

    async def prefetch(self, prompt: Prompt) -> Usage:
        return await self._backend.prefetch(prompt)

    async def close(self) -> None:
        """The backend is its endpoint's to close; what is under way has nobody that waits."""

    async def _once(
        self,
        key: Hashable,
        ask: Callable[[OnDelta | None], Awaitable[tuple[R, ...]]],
        on_delta: OnDelta | None = None,
    ) -> tuple[R, ...]:
        replies = self._kept.get(key)
        if replies is not None:
            if on_delta is not None:
                _tell(on_delta, _text_of(replies))
            return _shared(replies)
        flight = self._flights.get(key)
        is_first = flight is None
        if flight is None:
            flight = self._begin(key, ask, on_delta is not None)
        listener = _Listener(on_delta)
        replies = await flight.join(listener)
        if replies is None:
            if is_first:
                raise flight.error()
            if listener.n_told:  # what was shown is not begun anew
                raise _own(flight.error())
            return await ask(on_delta)
        if on_delta is not None and not is_first:
            _tell(on_delta, _text_of(replies)[listener.n_told :])
        return replies if is_first else _shared(replies)

    def _begin(self, key: Hashable, ask: Ask, streams: bool) -> _Flight:
        flight = _Flight(ask, streams)
        self._flights[key] = flight

        def end(task: asyncio.Task[Replies]) -> None:
            if self._flights.get(key) is flight:
                del self._flights[key]
            if not task.cancelled() and task.exception() is None:
                self._kept.put(key, task.result())

        flight.task.add_done_callback(end)
        flight.on_abandoned = lambda: self._flights.pop(key, None)
        return flight


class _Listener:
    """One who waits for a request. n_told: characters that it was shown."""

    def __init__(self, on_delta: OnDelta | None) -> None:
        self.on_delta = on_delta
        self.n_told = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(self, text: str) -> None:
        """Shows text; an error of who is shown it is its own, and ends only its wait."""
        if self.on_delta is None or self.failed.done():
            return
        self.n_told += len(text)
        try:
            self.on_delta(text)
        except StopIteration as error:  # which no future may hold
            self.failed.set_exception(RuntimeError(f"a callback raised {error!r}"))
        except BaseException as error:
            self.failed.set_exception(error)


class _Flight:
    """A request under way, and those who wait for it."""

    def __init__(self, ask: Ask, streams: bool) -> None:
        self._streams = streams
        self._said: list[str] = []
        self._listeners: dict[int, _Listener] = {}
        self.on_abandoned: Callable[[], object] = lambda: None
        self.task = asyncio.ensure_future(self._ask(ask))

    async def _ask(self, ask: Ask) -> Replies:
        return await ask(self._say if self._streams else None)

    def _say(self, text: str) -> None:
        self._said.append(text)
        for listener in list(self._listeners.values()):
            listener.tell(text)

    async def join(self, listener: _Listener) -> Replies | None:
        """The replies; None if the request has failed. Leaving it last cancels the request."""
        self._listeners[id(listener)] = listener
        if self._said:
            listener.tell("".join(self._said))
        try:
            waits: list[asyncio.Future[Any]] = [self.task, listener.failed]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if listener.failed.done():
                listener.failed.result()
        except GeneratorExit:  # the loop is gone, and nothing can be waited for
            raise
        except BaseException:
            if self._leave(listener):  # what it holds of the backend is free when this ends
                await asyncio.wait([self.task])
            raise
        self._leave(listener)
        is_lost = self.task.cancelled() or self.task.exception() is not None
        return None if is_lost else self.task.result()

    def _leave(self, listener: _Listener) -> bool:
        """Whether nobody waits any more, so that the request is cancelled."""
        listener.failed.cancel()
        del self._listeners[id(listener)]
        if self._listeners or self.task.done():
            return False
        self.on_abandoned()
        self.task.cancel()
        return True

    def error(self) -> BaseException:
        """What the request failed with."""
        if self.task.cancelled():  # from within: nobody has left it
            return asyncio.CancelledError()
        error = self.task.exception()
        assert error is not None
        return error


class _Kept:
    """Replies by request, the latest used last; the first go when there are too many."""

    def __init__(self, max_replies: int, max_bytes: int) -> None:
        self._max_replies, self._max_bytes = max_replies, max_bytes
        self._replies: OrderedDict[Hashable, tuple[Replies, int]] = OrderedDict()
        self._n_bytes = 0

    def get(self, key: Hashable) -> Replies | None:
        found = self._replies.get(key)
        if found is None:
            return None
        self._replies.move_to_end(key)
        return found[0]

    def put(self, key: Any, replies: Replies) -> None:
        n_bytes = _n_bytes(key[1], replies)
        self._n_bytes += n_bytes - self._replies.pop(key, (replies, 0))[1]
        self._replies[key] = (replies, n_bytes)
        while self._n_bytes > self._max_bytes or len(self._replies) > self._max_replies:
            self._n_bytes -= self._replies.popitem(last=False)[1][1]


def _n_bytes(prompt: Prompt, replies: Replies) -> int:
    """About how much memory a reply and its request take."""
    total = 1024 + sum(4 * len(segment.text) for segment in prompt)
    total += sum(8 * len(getattr(segment, "ids", ())) for segment in prompt)
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
    """An error that another one has too, for a line of its own."""
    if not isinstance(error, SgcError):
        return error
    own = copy.copy(error)
    own.where = ""
    return own


def _drawn_alike(sampling: Sampling) -> Sampling:
    """What of a sampling decides the text: a greedy one has no use for its seed."""
    return replace(sampling, seed=0) if sampling.is_greedy and sampling.seed else sampling


def _text_of(replies: Replies) -> str:
    return replies[0].text if isinstance(replies[0], Generated) else ""


def _tell(on_delta: OnDelta, text: str) -> None:
    if text:
        on_delta(text)


def _shared(replies: tuple[R, ...]) -> tuple[R, ...]:
    marked = (replace(reply.usage, from_shared=True) for reply in replies)
    return tuple(replace(r, usage=usage) for r, usage in zip(replies, marked, strict=True))
