"""A stream's text as it is generated, for readers that follow an interpreted run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

from sgc.core.session import Stream
from sgc.runs.streaming import Reader, StreamedText, TextLog, follow, follow_async


def pieces_of(log: TextLog | None, state: Stream, names: Any) -> Iterator[Any]:
    """The pieces of a stream's text, or of some names' texts. log: None if nothing is streamed."""
    if log is None:
        yield from _at_once(state, names)
        return
    reader = Reader(log, state.path, names)
    if names is None and state.start_text:
        yield state.start_text
    yield from follow(reader)
    if isinstance(names, str) and not reader.n_found:
        yield from _at_once(state, names)


async def pieces_with_meta(
    log: TextLog | None, state: Stream, names: Any, with_meta: bool
) -> AsyncIterator[Any]:
    """`pieces_of` for coroutines; with_meta: whether each piece comes with its meta data."""

    def meta() -> Any:
        found = state.get_meta_info(names) if isinstance(names, str) else None
        return found or {}

    pieces = _pieces(log, state, names)
    async with aclosing(_paired(pieces, meta) if with_meta else pieces) as found:
        async for piece in found:
            yield piece


async def _pieces(log: TextLog | None, state: Stream, names: Any) -> AsyncGenerator[Any, None]:
    is_whole = log is None
    if log is not None:
        reader = Reader(log, state.path, names)
        if names is None and (start := await asyncio.to_thread(lambda: state.start_text)):
            yield start
        async for piece in follow_async(reader):
            yield piece
        is_whole = isinstance(names, str) and not reader.n_found
    if is_whole:
        for piece in await asyncio.to_thread(lambda: list(_at_once(state, names))):
            yield piece


async def _paired(
    pieces: AsyncGenerator[Any, None], meta: Callable[[], Any]
) -> AsyncGenerator[Any, None]:
    """Pairs each piece with its own meta data, or `{}`; the last, held back, with `meta()`."""
    held: list[Any] = []
    async with aclosing(pieces):
        async for piece in pieces:
            if held:
                before = held.pop()
                yield before, dict(getattr(before, "meta", {}))
            held.append(piece)
    if held:
        yield held.pop(), await asyncio.to_thread(meta)


def _at_once(state: Stream, names: Any) -> Iterator[Any]:
    """The whole text at once, if nothing is streamed or a name is not a generation's."""
    if names is None:
        yield state.text()
    elif isinstance(names, str):
        yield state[names]
    else:
        for name in names:
            yield StreamedText(state[name], name, state.path)
