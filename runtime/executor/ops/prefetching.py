"""The op `prefetch` at run time: a hint, sent in the background, for which a run never waits.

It is not one of the program's requests: the timeline and the sums show it separately. A failed
prefetch does not fail the run; it is counted, and logged at level DEBUG. A prefetch that is still
running when its run ends is cancelled, which frees it at the backend.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

from sgc.ir.graph import Lit, Node
from sgc.runtime.executor.ops.run import Run
from sgc.runtime.executor.prompts.roles import begin_role, end_role
from sgc.runtime.executor.run.record import Request
from sgc.runtime.executor.run.stream import Piece, PieceKind, StreamState, pass_gate

log = logging.getLogger("sgc.prefetch")


def prefetch(run: Run, node: Node) -> tuple[Any, ...]:
    """The handler of the op `prefetch`; does nothing if the backend does not prefetch."""
    if run.context.capabilities.prefetches:
        run.work.background(_ask(run, node))
    return ()


async def _ask(run: Run, node: Node) -> None:
    start_s = time.monotonic()
    try:
        state = _state(run, node)
        await pass_gate(state)
        prompt = run.context.prompt(state)
        usage = await run.context.backend.prefetch(prompt)
    except Exception as error:  # a hint must not fail the run
        run.requests.failed_prefetches += 1
        log.debug("the prefetch of %s failed: %s", node.loc or "a line unknown", error)
        return
    run.requests.prefetches.append(
        Request(
            "prefetch", "", state.path, state.n_draws, prompt, node.loc,
            start_s, time.monotonic(), usage,
        )
    )  # fmt: skip


def _state(run: Run, node: Node) -> StreamState:
    """Returns the stream with the pieces that will be appended; shows nothing."""
    has_stream = node.get("stream") != Lit(None)
    state: StreamState = run.field(node, "stream") if has_stream else StreamState("")
    for kind, value in zip(run.field(node, "kinds"), run.field(node, "pieces"), strict=True):
        for piece in _pieces(run, state, kind, value):
            state = state.append(piece)
    return state


def _pieces(run: Run, state: StreamState, kind: str, value: Any) -> Iterator[Piece]:
    if kind == "role_begin":
        yield from begin_role(run.context.capabilities, state, value)
    elif kind == "role_end":
        yield end_role(run.context.capabilities, value)
    elif kind == "const":
        yield Piece(PieceKind.CONSTANT, value)
    else:
        yield Piece(PieceKind.VALUE, value if isinstance(value, str) else format(value, ""))
