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
        self._shown: list[str] = []
        self.begin_anew()

    @property
    def has_shown(self) -> bool:
        return bool(self._shown)

    def begin_anew(self) -> None:
        """Restarts for a retry; nothing was shown yet."""
        assert not self._shown
        self._has_begun = self._is_over = False
        self._held = ""

    def add(self, piece: str) -> None:
        # No stop begins in shown text, so each piece is searched with what is held back alone.
        text = self._held + piece
        if not self._has_begun and self._may_repeat(text):
            self._held = text
        elif not self._is_over:
            self._add(text if self._has_begun else without_cut(text, self._lowered.cut))

    def _add(self, text: str) -> None:
        self._has_begun = True
        stop = self._lowered.local_stop
        found = first_stop(text, stop)
        end = len(text) - n_pending_stop_chars(text, stop) if found is None else found[0]
        self._is_over = found is not None
        self._held = text[end:]
        self._show(text[:end])

    def _may_repeat(self, text: str) -> bool:
        """Whether more text may repeat a longer end of the cut."""
        cut = self._lowered.cut
        return any(cut.startswith(text, at) for at in range(len(cut) - len(text)))

    def finish(self, text: str) -> None:
        shown = "".join(self._shown)
        assert text.startswith(shown), "shown text is never taken back"
        self._show(text[len(shown) :])

    def _show(self, delta: str) -> None:
        if delta:
            self._shown.append(delta)
            self._on_delta(delta)
