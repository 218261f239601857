"""The text side of one generation: streamed deltas, the cut at a stop, what the stream keeps.

Pure data in, data out; used by `session.py` for every generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgc.runtime.engine.detokenizer import IncrementalDetokenizer, split_kept
from sgc.runtime.engine.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class FinalText:
    """text: without the stop. ids[:n_kept] stay in the prompt, `tail` joins the next run."""

    text: str
    n_kept: int
    tail: str


class GeneratedText:
    """Collects a generation's ids; never lets part of a stop string out that later matches."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._detokenizer = IncrementalDetokenizer(tokenizer)
        self._prefixes = [_PrefixMatcher(text) for text in dict.fromkeys(stop)]
        self._pieces: list[str] = []
        self._unsent = ""
        self.ids: list[int] = []

    def feed(self, ids: Sequence[int]) -> str:
        """Takes further ids and gives the text that may be streamed now."""
        self.ids.extend(ids)
        new = self._detokenizer.feed(ids)
        self._pieces.append(new)
        self._unsent += new
        held = max((matcher.feed(new) for matcher in self._prefixes), default=0)
        n_sent = len(self._unsent) - held
        out, self._unsent = self._unsent[:n_sent], self._unsent[n_sent:]
        return out

    def collect(self, ids: Sequence[int]) -> None:
        """Takes further ids of a generation that is not streamed."""
        self.ids.extend(ids)
        self._pieces.append(self._detokenizer.feed(ids))

    def finish(self, matched: str, ended_by_id: bool) -> FinalText:
        """The final text, given the stop string or the fact that the last id ended it."""
        if ended_by_id:
            return self._up_to_last_id()
        text = "".join([*self._pieces, self._detokenizer.flush()])
        if not matched:
            return FinalText(text, len(self.ids), "")
        cut = self._stop_position(text, matched)
        kept, tail = split_kept(self._tokenizer, self.ids, cut)
        return FinalText(text[:cut], len(kept), tail)

    def _up_to_last_id(self) -> FinalText:
        detokenizer = IncrementalDetokenizer(self._tokenizer)
        kept = self.ids[:-1]
        return FinalText(detokenizer.feed(kept) + detokenizer.flush(), len(kept), "")

    def _stop_position(self, text: str, matched: str) -> int:
        """Where the stop string starts that the last id completed."""
        before = len(IncrementalDetokenizer(self._tokenizer).feed(self.ids[:-1]))
        start = text.find(matched, max(0, before - len(matched) + 1))
        return start if start >= 0 else len(text)


class _PrefixMatcher:
    """How much of the end of a growing text could be the beginning of a stop string (KMP)."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._fallback = [0] * len(pattern)
        self._n = 0
        k = 0
        for i in range(1, len(pattern)):
            while k and pattern[i] != pattern[k]:
                k = self._fallback[k - 1]
            k += pattern[i] == pattern[k]
            self._fallback[i] = k

    def feed(self, text: str) -> int:
        """The number of characters at the end that are a prefix of the pattern, or all of it."""
        pattern, fallback, n = self._pattern, self._fallback, self._n
        for char in text:
            if n == len(pattern):
                n = fallback[n - 1]
            while n and char != pattern[n]:
                n = fallback[n - 1]
            n += char == pattern[n]
        self._n = n
        return n
