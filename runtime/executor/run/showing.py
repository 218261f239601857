"""Texts as they come, for whoever watches a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgc.ir.graph import Node

if TYPE_CHECKING:
    from sgc.runtime.executor.instance import Instance


class Shown:
    """Shows a text as it comes; what was not streamed is shown at its end, then nothing more:
    a text of no length is the sign of that.
    """

    def __init__(self, run: Instance, node: Node, path: str) -> None:
        self._run, self._node, self._path = run, node, path
        self._n_shown = 0

    def add(self, text: str) -> None:
        assert self._run.on_text is not None
        self._n_shown += len(text)
        self._run.on_text(self._node, self._path, text)

    def finish(self, text: str) -> None:
        if self._run.on_text is not None:
            if self._n_shown < len(text):
                self.add(text[self._n_shown :])
            self.add("")
