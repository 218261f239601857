"""Last uses: how much of a prompt later requests may begin with, as a hint to the backend.

Nothing continues a generation marked `last` (`hints/mark_last.py`). Other rows and streams may
begin with its prompt up to the stream's first draw since it began or forked; only this stream uses
the rest. The hint is not part of the request: requests are equal with and without it, and a backend
that caches no prompts never reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from sgc.ir.graph import Lit, Node
from sgc.runtime.executor.interface.backend import Joined, Prompt, TextRun, TokenRun
from sgc.runtime.executor.run.stream import StreamState

_reusable: ContextVar[Prompt | None] = ContextVar("sgc_reusable", default=None)


def last_use(node: Node, state: StreamState, prompt: Prompt) -> AbstractContextManager[None]:
    """Sets the hint while a node's request is made; does nothing for a node that is not marked."""
    if node.get("last") != Lit(True):
        return _NO_HINT
    return hinting(prompt if state.first is None else state.first)


_NO_HINT = nullcontext()


@contextmanager
def hinting(kept: Prompt) -> Iterator[None]:
    """Sets the hint: later requests may begin with so much of a prompt."""
    token = _reusable.set(kept)
    try:
        yield
    finally:
        _reusable.reset(token)


def reusable(prompt: Prompt) -> tuple[int, int] | None:
    """Returns the end of the part of a prompt with which later requests may begin.

    It is a segment's index, and a number of code points or ids in it. None if nothing is known, or
    the hint is for another prompt. Called while the prompt's request is made.
    """
    kept = _reusable.get()
    if kept is None:
        return None
    if not kept:
        return 0, 0
    if isinstance(kept[-1], Joined):
        return (len(kept), 0) if prompt[: len(kept)] == kept else None
    index, n_kept = len(kept) - 1, _length(kept[-1])
    is_of_it = len(prompt) > index and prompt[:index] == kept[:index]
    return (index, n_kept) if is_of_it and _begins_with(prompt[index], kept[index]) else None


def _length(run: Any) -> int:
    return len(run.ids if isinstance(run, TokenRun) else run.text)


def _begins_with(run: object, start: object) -> bool:
    if isinstance(run, TextRun) and isinstance(start, TextRun):
        return run.text.startswith(start.text)
    return run == start
