"""Batches of functions and of compiled programs: one run for each row."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from sgc.runs.batch import MAX_CONCURRENCY, Batch, BatchOptions
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import resolve_backend
from sgc.runs.row_iterator import arun_each, run_all, run_each
from sgc.runs.run import RunState
from sgc.runtime.executor.run.loop import refuse_own_thread, shared


class Batched(ABC):
    """A program that can be run once for each row."""

    __slots__ = ()

    @property
    @abstractmethod
    def default_order(self) -> str:
        """The order of rows if a batch names none."""

    @abstractmethod
    def _batch(
        self, rows: Any, how: BatchOptions, endpoint: Endpoint, options: Mapping[str, Any]
    ) -> Batch:
        """Makes the batch and its rows. May trace and compile, so never call it on the loop."""

    def run_batch(
        self,
        batch_kwargs: Any,
        *,
        backend: Any = None,
        num_threads: int | str = "auto",
        progress_bar: bool = False,
        generator_style: bool = False,
        ordered: bool = True,
        max_errors: int | None = None,
        max_concurrency: int = MAX_CONCURRENCY,
        order: str | None = None,
        reorder_fields: bool = False,
        **options: Any,
    ) -> Any:
        """Runs the program once for each row: a dict of arguments, or a tuple of them.

        Returns their `RunState`s in order; a row that failed raises its error when it is read. Row
        i samples as a run with the row key i. Options that are not named here are those of `run`.

        Args:
            generator_style: returns an iterator of rows, in order; with ordered=False as they end.
            max_errors: more failed rows end the batch with BatchFailed.
            num_threads: for interpreted rows.
            max_concurrency: rows under way at a time.
            order: "plan": compiled rows that begin alike start one after another, unless a tool has
                effects; "given" keeps the given order; None is "given" for a program compiled at
                -O0, else "plan".
            reorder_fields: also reorders the fields of prompts that are tables, which changes the
                prompts (docs/batches.md).
        """
        refuse_own_thread(shared.loop)
        how = BatchOptions(
            num_threads, max_concurrency, max_errors, progress_bar,
            order or self.default_order, reorder_fields,
        )  # fmt: skip
        batch = self._batch(batch_kwargs, how, resolve_backend(backend), options)
        if generator_style or not ordered:
            return run_each(batch, ordered)
        return run_all(batch)

    async def abatch(
        self,
        batch_kwargs: Any,
        *,
        backend: Any = None,
        num_threads: int | str = "auto",
        progress_bar: bool = False,
        ordered: bool = True,
        max_errors: int | None = None,
        max_concurrency: int = MAX_CONCURRENCY,
        order: str | None = None,
        reorder_fields: bool = False,
        **options: Any,
    ) -> AsyncIterator[RunState]:
        """The same as an asynchronous iterator; closing it stops the rows under way."""
        how = BatchOptions(
            num_threads, max_concurrency, max_errors, progress_bar,
            order or self.default_order, reorder_fields,
        )  # fmt: skip

        def made() -> Batch:
            return self._batch(batch_kwargs, how, resolve_backend(backend), options)

        # Making the rows may start an engine, trace and compile, which would block the loop.
        async with aclosing(arun_each(await asyncio.to_thread(made), ordered)) as states:
            async for state in states:
                yield state
