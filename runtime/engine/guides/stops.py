"""Finds stop strings and stop patterns in a generation's text, across token boundaries."""

from __future__ import annotations

from sgc.runtime.engine.guides.stop_patterns import stop_patterns
from sgc.runtime.engine.requests.request import Stops
from sgc.runtime.engine.requests.text_rules import NO_STOP, Stop
from sgc.runtime.engine.text.detokenizer import IncrementalDetokenizer, StopChecker
from sgc.runtime.engine.text.tokenizer import Tokenizer


class TextStops:
    """A `StopChecker` of the engine's core for one generation."""

    def __init__(self, tokenizer: Tokenizer, stops: Stops) -> None:
        self._detokenizer = IncrementalDetokenizer(tokenizer)
        self._strings = StopChecker(tokenizer, stops.texts)
        self._patterns = stop_patterns(stops.patterns).checker() if stops.patterns else None
        self._n_to_skip = stops.n_skipped

    def feed(self, ids: list[int], counts: bool) -> Stop:
        """The stop that ends the text within these ids, if any: the one that ends first."""
        new = self._detokenizer.feed(ids)
        if self._n_to_skip:
            n = min(self._n_to_skip, len(new))
            self._n_to_skip, new = self._n_to_skip - n, new[n:]
        if not new:
            return NO_STOP
        by_string = self._strings.feed_text(new)
        pattern_end = self._feed_pattern(new, counts)
        if not counts:
            return NO_STOP
        if by_string is not None and (pattern_end is None or by_string[1] <= pattern_end):
            string, end = by_string
            return Stop(string, n_chars=len(new) - end + len(string))
        return NO_STOP if pattern_end is None else Stop(n_over=len(new) - pattern_end)

    def _feed_pattern(self, new: str, counts: bool) -> int | None:
        """Where the first match of a pattern ends in the new text; None if none does."""
        if self._patterns is None:
            return None
        data = new.encode()
        end = self._patterns.feed(data, counts)
        return None if end is None else len(data[:end].decode())
