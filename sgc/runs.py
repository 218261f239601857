"""Runs as a caller sees them: started, perhaps over, read like a stream's state.

What calling a function and running a batch give, whether the program was compiled or
interpreted. Reading waits for the end, and raises the error that ended the run if one did.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from sgc.errors import UnknownVariable
from sgc.runtime.executor.loop import refuse_own_thread, shared
from sgc.runtime.executor.record import RunResult, StreamResult
from sgc.streaming import StreamedText
from sgc.view import StreamExecutorView


class RunState:
    """One run of a program: its main stream, its variables, its result.

    how: "compiled", or "interpreted" and why.
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
        """Everything the run gave: all its streams, counts and requests."""
        outcome = self._outcome
        if isinstance(outcome, RunResult):
            return outcome
        if isinstance(outcome, BaseException):
            raise outcome
        if not outcome.done():
            refuse_own_thread(shared.loop)
        return outcome.result()

    async def _result(self) -> RunResult:
        if isinstance(self._outcome, Future):
            return await asyncio.wrap_future(self._outcome)
        return self.result()

    def __await__(self) -> Any:
        return self._awaited().__await__()

    async def _awaited(self) -> RunState:
        await self._result()
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
        """Waits for the end; raises what went wrong."""
        self.result()

    def error(self) -> BaseException | None:
        """What ended the run; None if nothing did."""
        try:
            self.result()
        except Exception as error:
            return error
        return None

    def cancel(self) -> None:
        """Stops the run; what it had in flight is freed."""
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
        variables = self.main.variables
        if name not in variables:
            known = ", ".join(variables) or "none"
            raise UnknownVariable(f"no variable {name!r} was set; there are: {known}")
        return variables[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._set[name] = value

    def __contains__(self, name: object) -> bool:
        return name in self._set or name in self.main.variables

    def get_var(self, name: str) -> Any:
        """The same as `state[name]`."""
        return self[name]

    def set_var(self, name: str, value: Any) -> None:
        """The same as `state[name] = value`."""
        self[name] = value

    def variables(self) -> dict[str, Any]:
        """Every name of the main stream with its value."""
        return {**self.main.variables, **self._set}

    def get_meta_info(self, name: str) -> Any:
        """How a variable was generated; None where it was not."""
        return self.result().get_meta_info(name)

    def text_iter(self, var_name: str | Sequence[str] | None = None) -> Iterator[Any]:
        """All of a text at once; run with `stream=True` to see it as it comes."""
        yield from self._at_once(var_name)

    async def text_async_iter(
        self, var_name: str | Sequence[str] | None = None, return_meta_data: bool = False
    ) -> AsyncIterator[Any]:
        """The same for asynchronous callers; with meta data, pairs of text and meta info."""
        await self._result()
        for found in self._at_once(var_name):
            meta = self.get_meta_info(var_name) if isinstance(var_name, str) else None
            yield (found, meta) if return_meta_data else found

    def _at_once(self, names: str | Sequence[str] | None) -> Iterator[Any]:
        if names is None:
            yield self.text()
        elif isinstance(names, str):
            yield self[names]
        else:
            for name in names:
                yield StreamedText(self[name], name, self.main.path)

    def all_variables(self) -> dict[str | None, Any]:
        """The same, with what the last generation without a name gave under None."""
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
        """What outside code reads of SGLang's executor of a stream."""
        return StreamExecutorView(self)

    @property
    def is_finished(self) -> bool:
        """The same as `is_done`."""
        return self.is_done

    def __repr__(self) -> str:
        error = self.error()
        return f"ProgramState({self.text() if error is None else error})"

    def _repr_html_(self) -> str:
        from sgc.notebook import pieces_html

        return pieces_html(self.main.pieces)
