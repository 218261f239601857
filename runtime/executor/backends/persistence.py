"""How one request to an engine continues after failures: for how long, and after which shown text.

Every request holds its whole prompt, and a generation its own seed, so that asking again gives the
same reply. An engine that was restarted has nothing cached, and computes the prompt again. Text
that was streamed already is not streamed twice: the new text must begin with it.
"""

from __future__ import annotations

import time

from sgc.errors import BackendError, EngineUnavailable, Overloaded
from sgc.runtime.executor.backends.retrying import Retries
from sgc.runtime.executor.interface.backend import OnDelta

RETRIES = Retries(
    (Overloaded, EngineUnavailable),
    max_tries=1000,  # `Persistence` ends it earlier
    first_wait_s=0.1,
    longest_wait_s=5.0,
    least=0.5,
)
MAX_REFUSALS = 6  # of an engine that does not say when to try again
MAX_TOLD_S = 600.0  # in all, of waits that it asks for
MAX_LOST = 3
"""Connections that one request may lose, since the request may be what ends the engine."""


class Persistence:
    """max_refusals: by an engine without room. reconnect_s: how long to wait for an engine that is
    gone."""

    def __init__(self, max_refusals: int, reconnect_s: float) -> None:
        self._n_refusals_left, self._told_left_s = max_refusals, MAX_TOLD_S
        self._is_one_try = max_refusals == 1
        self._reconnect_s, self._gone_since = reconnect_s, 0.0
        self.n_lost = 0

    def goes_on(self, error: BackendError, wait_s: float) -> bool:
        """Whether to try again after so many seconds."""
        if isinstance(error, Overloaded):
            self._gone_since = 0.0
            if error.retry_after_s and not self._is_one_try:
                self._told_left_s -= wait_s
                return self._told_left_s >= 0
            self._n_refusals_left -= 1
            return self._n_refusals_left > 0
        if self.n_lost >= MAX_LOST:
            return False
        now = time.monotonic()
        self._gone_since = self._gone_since or now
        return now + wait_s <= self._gone_since + self._reconnect_s

    def lost(self) -> None:
        """Notes that the connection was lost while the request was under way."""
        self.n_lost += 1
        self._gone_since = 0.0


class Shown:
    """The text of a generation that its caller has seen, over all tries."""

    def __init__(self, on_delta: OnDelta) -> None:
        self._on_delta = on_delta
        self._text, self._n_again = "", 0

    def begin(self) -> None:
        """Begins a try, whose text starts from the beginning."""
        self._n_again = 0

    def take(self, text: str) -> None:
        """Passes on the new part of the next text."""
        known = self._text[self._n_again : self._n_again + len(text)]
        if not text.startswith(known):
            raise _differs()
        self._n_again += len(text)
        if len(text) > len(known):
            self._text += text[len(known) :]
            self._on_delta(text[len(known) :] if known else text)  # with its facts

    def check(self, whole: str) -> None:
        """Raises BackendError if a reply's whole text does not begin with the shown text."""
        if not whole.startswith(self._text):
            raise _differs()


def _differs() -> BackendError:
    return BackendError(
        "the engine was lost in the middle of a text, and after that gave another one",
        hint="run it again; with `sgc serve --deterministic` a text is always the same",
    )
