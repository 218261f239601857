"""Maps of interpreted programs: the calls' bodies run on threads, in order of their items.

The thread that maps runs calls itself, so that a map progresses even if no other thread may be
started. A map ends with the error of the first call, in order, that fails: the calls after it are
stopped, and the calls before it continue.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from sgc.core.places import here
from sgc.core.session import Stream
from sgc.errors import UsageError
from sgc.interpreter.bodies import run_here
from sgc.interpreter.session import EagerSession
from sgc.ir.limits import MAX_NESTING
from sgc.lang.maps import KnownStates, MapCall, plain_items
from sgc.runtime.executor.run.map_places import MapPlace, call_path
from sgc.runtime.executor.run.record import Request, RunResult

if TYPE_CHECKING:
    from sgc.runtime.executor.instance import Instance

T = TypeVar("T")

GRACE_S = 5.0  # for bodies to end after an interrupt of the thread that maps


def map_eagerly(session: EagerSession, call: MapCall) -> KnownStates:
    """Makes the calls and waits for them; their results become part of the session's run."""
    items = plain_items(call.items)
    if session.depth >= MAX_NESTING:
        raise UsageError(f"maps are nested deeper than {MAX_NESTING}", where=here())
    caller, ordinal = session.stack.next_map()
    instance = session.instance

    async def begin() -> MapPlace:
        return instance.place_map(ordinal)

    place = _on_loop(session, begin())
    calls = _Calls(session, call, items, instance.context.placed(caller), place)

    async def end() -> None:
        instance.take_in(place, [calls.results[index] for index in sorted(calls.results)])
        instance.requests.made.extend(calls.spent)

    try:
        calls.run(min(call.width, len(items)) if session.loop.is_shared else 1)
    finally:
        _on_loop(session, end())  # also if the program continues after a failure
    return KnownStates(session, [calls.states[index] for index in range(len(items))])


def _on_loop(session: EagerSession, work: Coroutine[Any, Any, T]) -> T:
    return session.loop.run(work)


class _Calls:
    """The calls of one map. The state that its threads share is changed under a lock."""

    def __init__(
        self, session: EagerSession, call: MapCall, items: list[Any], caller: str, place: MapPlace
    ) -> None:
        self._session, self._call, self._items = session, call, items
        self._caller, self._place = caller, place
        self._lock = threading.Lock()
        self._n_begun = 0
        self._end = len(items)  # calls from here on are not made, since the call before failed
        self._error: BaseException | None = None
        self._failures: list[BaseException] = []  # of runs
        self._running: dict[int, EagerSession] = {}
        self.states: dict[int, Stream] = {}
        self.results: dict[int, RunResult] = {}
        self.spent: list[Request] = []  # of calls that failed

    def run(self, width: int) -> None:
        """Makes all calls; raises the error of the first that fails."""
        helpers = self._start_helpers(width - 1)
        try:
            self._work()
        except BaseException as error:  # an interrupt between two calls
            self._fail(-1, error)
        for helper in helpers:
            helper.join(GRACE_S if self._end < 0 else None)
        failure = self._session.failure()
        if failure is None and self._error in self._failures:
            self._session.fail(self._error)  # raised to all other readers of the run too
        if self._error is not None:
            raise failure or self._error

    def _start_helpers(self, n: int) -> list[threading.Thread]:
        helpers: list[threading.Thread] = []
        while len(helpers) < n and self._session.helpers.acquire(blocking=False):
            context = contextvars.copy_context()
            name = f"sgc-{self._call.function.name}-{len(helpers)}"
            helper = threading.Thread(
                target=context.run, args=(self._help,), name=name, daemon=True
            )
            helper.start()
            helpers.append(helper)
        return helpers

    def _help(self) -> None:
        try:
            self._work()
        finally:
            self._session.helpers.release()

    def _work(self) -> None:
        while (index := self._next()) is not None:
            try:
                self._make(index)
            except Exception as error:
                self._fail(index, error)
            except BaseException as error:  # an interrupt is meant for all
                self._fail(-1, error)

    def _next(self) -> int | None:
        with self._lock:
            if self._n_begun >= self._end:
                return None
            self._n_begun += 1
            return self._n_begun - 1

    def _make(self, index: int) -> None:
        function = self._call.function
        arguments = self._call.arguments(self._items[index])
        self._call.check(arguments)
        session, instance = self._session, self._session.instance
        path = call_path(self._caller, function.name, self._place.ordinal, index)

        async def begin() -> Instance:
            return instance.part(function.name, {}, path, self._place)

        part = session.part(_on_loop(session, begin()))
        try:
            self._enter(index, part)
            part.note_value(arguments)
            state = run_here(function, part, arguments)
            result = part.result()
        except BaseException as error:
            self.spent += part.instance.requests.made
            if part.failure() is error:  # the run failed, not the program's Python
                self._failures.append(error)
            raise
        finally:
            _on_loop(session, instance.work.leave(part.instance))
            with self._lock:
                self._running.pop(index, None)
        part.share(session)
        self.states[index], self.results[index] = state, result

    def _enter(self, index: int, part: EagerSession) -> None:
        with self._lock:
            self._running[index] = part
            is_wanted = index < self._end
        if not is_wanted:
            part.cancel()

    def _fail(self, index: int, error: BaseException) -> None:
        with self._lock:
            if index >= self._end:
                return
            self._end, self._error = index, error
            stopped = [part for other, part in self._running.items() if other > index]
        for part in stopped:
            part.cancel()
