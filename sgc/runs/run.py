"""Runs as callers see them. A run has started, may have ended, and is read like a stream's state.

Calling a function and running a batch return runs, whether the program was compiled or
interpreted. Reading waits for the end, and raises the error that ended the run if one did.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any

from sgc.core.texts import text_of
from sgc.errors import ProgramError, UsageError
from sgc.lang.view import StreamExecutorView
from sgc.runs.streaming import StreamedText
from sgc.runtime.executor.run.loop import refuse_own_thread, shared
from sgc.runtime.executor.run.record import RunResult, StreamResult


class RunState:
    """One run of a program: its main stream, its variables, its result.

    how: "compiled", or "interpreted" and why. `await state` waits for the end and returns the
    state; cancelling the wait stops the run. Reading a stopped run raises ProgramError.
    """

    __slots__ = ("_cancel", "_outcome", "_set", "how")

    def __init__(
        self,
        outcome: Future[RunResult] | RunResult | BaseException,
        how: str = "compiled",
        cancel: Callable[[], None] | None = None,
    ) -> None:
        self._cancel = cancel
        self._outcome = outcome
        self._set: dict[str, Any] = {}  # names the caller has set since
        self.how = how

    # -- the result -----------------------------------------------------------------------

    def result(self) -> RunResult:
        """Returns the whole result: all streams, counts and requests."""
        ended = self._ended()
        if isinstance(ended, BaseException):
            raise ended
        return ended

    def _ended(self) -> RunResult | BaseException:
        """Waits; returns the result, or the error that ended the run."""
        if isinstance(self._outcome, Future):
            if not self._outcome.done():
                refuse_own_thread(shared.loop)
            return _outcome_of(self._outcome)
        if isinstance(self._outcome, asyncio.CancelledError):
            return _cancelled()
        return self._outcome

    async def _result(self) -> RunResult:
        if isinstance(self._outcome, Future):
            await _done(self._outcome)
        return self.result()

    def __await__(self) -> Any:
        return self._awaited().__await__()

    async def _awaited(self) -> RunState:
        try:
            await self._result()
        except asyncio.CancelledError:
            self.cancel()  # the run's own cancellation is a ProgramError
            raise
        return self

    @property
    def main(self) -> StreamResult:
        return self.result().main

    @property
    def ret_value(self) -> Any:
        """What the program's function returned."""
        return self.result().ret_value

    @property
    def is_done(self) -> bool:
        return not isinstance(self._outcome, Future) or self._outcome.done()

    def sync(self) -> None:
        """Waits for the end; raises the error that ended the run if one did."""
        self.result()

    def error(self) -> BaseException | None:
        """Waits for the end; returns the error that ended the run, or None."""
        ended = self._ended()
        return ended if isinstance(ended, BaseException) else None

    def cancel(self) -> None:
        """Stops the run, unless it is over, and cancels its requests."""
        if isinstance(self._outcome, Future):
            self._outcome.cancel()
            if self._cancel is not None:
                self._cancel()

    # -- reading --------------------------------------------------------------------------

    def text(self) -> str:
        """The whole text of the main stream."""
        return self.main.text

    def messages(self) -> list[dict[str, Any]]:
        """The chat as role and content pairs, in OpenAI's form."""
        return self.result().messages()

    def __getitem__(self, name: str) -> Any:
        if name in self._set:
            return self._set[name]
        return self.result()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._set[name] = value

    def __contains__(self, name: object) -> bool:
        return name in self._set or name in self.main.variables

    def get_var(self, name: str) -> Any:
        """The same as `state[name]`."""
        return self[name]

    def text_of(self, name: str) -> str:
        """The same as `state[name]`, of a variable that is a text. Raises UsageError for others."""
        return text_of(name, self[name])

    def set_var(self, name: str, value: Any) -> None:
        """The same as `state[name] = value`."""
        self[name] = value

    def variables(self) -> dict[str, Any]:
        """Every name of the main stream with its value."""
        return {**self.main.variables, **self._set}

    def get_meta_info(self, name: str) -> Any:
        """How a variable was generated; None if it was not."""
        return self.result().get_meta_info(name)

    def text_iter(self, var_name: str | Sequence[str] | None = None) -> Iterator[Any]:
        """All of a text at once; run with `stream=True` to get it as it is generated."""
        yield from self._at_once(var_name)

    async def text_async_iter(
        self, var_name: str | Sequence[str] | None = None, return_meta_data: bool = False
    ) -> AsyncIterator[Any]:
        """The same for asynchronous callers; with meta data, pairs of text and meta info.

        Meta info is that of a single variable, and `{}` if there is none.
        """
        await self._result()
        meta = self.get_meta_info(var_name) if isinstance(var_name, str) else None
        for found in self._at_once(var_name):
            yield (found, meta or {}) if return_meta_data else found

    def _at_once(self, names: str | Sequence[str] | None) -> Iterator[Any]:
        if names is None:
            yield self.text()
        elif isinstance(names, str):
            yield self[names]
        else:
            for name in names:
                yield StreamedText(self[name], name, self.main.path)

    def all_variables(self) -> dict[str | None, Any]:
        """The same, with the last generation without a name under None."""
        found: dict[str | None, Any] = {}
        result = self.result()
        for request in result.requests:
            is_unnamed = not request.name and request.kind != "commit"
            if is_unnamed and request.path == result.main.path:
                found[None] = request.value
        for name, value in self.variables().items():
            found[name] = value
        return found

    @property
    def stream_executor(self) -> StreamExecutorView:
        """SGLang's stream executor, as far as outside code reads it."""
        return StreamExecutorView(self)

    @property
    def is_finished(self) -> bool:
        """The same as `is_done`."""
        return self.is_done

    def __repr__(self) -> str:
        try:
            error = self.error()
        except UsageError as refused:  # called in a run's callback, which cannot wait
            error = refused
        return f"ProgramState({self.text() if error is None else error})"

    def _repr_html_(self) -> str:
        from sgc.core.notebook import pieces_html

        return pieces_html(self.main.pieces)


def _outcome_of(work: Future[RunResult]) -> RunResult | BaseException:
    """Returns a run's result or error; raises only if the wait is interrupted."""
    try:
        error = work.exception()
    except CancelledError:
        return _cancelled()
    if isinstance(error, (CancelledError, asyncio.CancelledError)):
        return _cancelled()
    return work.result() if error is None else error


def _cancelled() -> ProgramError:
    return ProgramError("the run was cancelled")


async def _done(work: Future[RunResult]) -> None:
    """Waits until a run is over, however it ends; cancelling the wait does not stop the run."""
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()

    def tell(_: object) -> None:
        with suppress(RuntimeError):  # the loop that waited is closed
            loop.call_soon_threadsafe(is_over.set)

    work.add_done_callback(tell)
    await is_over.wait()
