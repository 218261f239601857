"""Passes texts to the run's `on_text` callback as they come."""

from __future__ import annotations

from sgc.ir.graph import Node
from sgc.runtime.executor.ops.run import Run
from sgc.runtime.executor.run.stream import Piece, StreamState


def extend(run: Run, node: Node, state: StreamState, piece: Piece) -> StreamState:
    """Appends a piece that is known at once, and shows it."""
    on_text = run.context.on_text
    if on_text is not None and piece.text:
        on_text(node, state.path, piece.text)
    return state.append(piece)


class Shown:
    """Shows one text: first as it comes, then the part that was not streamed, then an empty text,
    which marks its end.
    """

    def __init__(self, run: Run, node: Node, path: str) -> None:
        self._on_text, self._node, self._path = run.context.on_text, node, path
        self._n_shown = 0

    def add(self, text: str) -> None:
        assert self._on_text is not None
        self._n_shown += len(text)
        self._on_text(self._node, self._path, text)

    def finish(self, text: str) -> None:
        if self._on_text is not None:
            if self._n_shown < len(text):
                self.add(text[self._n_shown :])
            self.add("")
