"""Streams the part of a text that can no longer be taken back."""

from __future__ import annotations

from collections.abc import Callable

from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.reply import without_cut
from sgc.runtime.executor.backends.stops import first_stop, n_pending_stop_chars


class SafeStream:
    """Passes on text as it arrives, and holds back text that may begin a stop string, or repeat
    white space of the prompt. Shown text is never taken back.
    """

    def __init__(self, on_delta: Callable[[str], None], lowered: Lowered) -> None:
        self._on_delta = on_delta
        self._lowered = lowered
        self._raw = ""
        self._shown = ""

    @property
    def has_shown(self) -> bool:
        return bool(self._shown)

    def add(self, piece: str) -> None:
        self._raw += piece
        if self._lowered.cut.startswith(self._raw):
            return  # it may still repeat the whole cut
        text = without_cut(self._raw, self._lowered.cut)
        stop = self._lowered.local_stop
        found = first_stop(text, stop)
        if found is not None:
            text = text[: found[0]]
        else:
            text = text[: len(text) - n_pending_stop_chars(text, stop)]
        self._show(text)

    def begin_anew(self) -> None:
        """Restarts for a retry; nothing was shown yet."""
        assert not self._shown
        self._raw = ""

    def finish(self, text: str) -> None:
        self._show(text)

    def _show(self, text: str) -> None:
        assert text.startswith(self._shown), "shown text is never taken back"
        delta, self._shown = text[len(self._shown) :], text
        if delta:
            self._on_delta(delta)
