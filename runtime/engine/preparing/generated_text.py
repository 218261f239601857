"""The text of one generation: streamed deltas, the cut at a stop, and the tokens to keep.

Pure data in, data out; used by `updates.py` for every generation. Text of the prompt that a healed
generation repeats is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgc.runtime.engine.guides.stop_patterns import HoldBack, stop_patterns
from sgc.runtime.engine.text.detokenizer import IncrementalDetokenizer, split_kept
from sgc.runtime.engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class FinalText:
    """text: without the stop. ids[:n_healed] are the repeated text of the prompt and `head`, which
    joins the prompt's text; ids[n_healed:n_kept] stay in the prompt; `tail` joins the next text
    run. matched: the text that a stop matched."""

    text: str
    n_kept: int
    tail: str
    n_healed: int = 0
    head: str = ""
    matched: str = ""


class GeneratedText:
    """Collects a generation's ids; it never streams part of a text that a stop later matches.

    n_skipped: characters at the beginning that repeat the prompt.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop: Sequence[str],
        stop_regex: tuple[str, ...] = (),
        n_skipped: int = 0,
    ) -> None:
        self._tokenizer = tokenizer
        self._detokenizer = IncrementalDetokenizer(tokenizer)
        self._prefixes: list[_PrefixMatcher | HoldBack] = [
            _PrefixMatcher(text) for text in dict.fromkeys(stop)
        ]
        self._patterns = stop_patterns(stop_regex) if stop_regex else None
        if self._patterns is not None:
            self._prefixes.append(HoldBack(self._patterns))
        self._n_skipped = self._n_to_skip = n_skipped
        self._pieces: list[str] = []
        self._unsent = ""
        self.ids: list[int] = []

    def feed(self, ids: Sequence[int]) -> str:
        """Adds ids and returns the text that may be streamed now."""
        new = self._collected(ids)
        self._unsent += new
        held = max((matcher.feed(new) for matcher in self._prefixes), default=0)
        n_sent = len(self._unsent) - held
        out, self._unsent = self._unsent[:n_sent], self._unsent[n_sent:]
        return out

    def collect(self, ids: Sequence[int]) -> None:
        """Adds ids of a generation that is not streamed."""
        self._collected(ids)

    def finish(self, matched: str, ended_by_id: bool, n_over: int | None = None) -> FinalText:
        """The final text. matched: the stop string; ended_by_id: the last id ended it; n_over: the
        characters after a stop pattern's match. Raises PatternError if finding the match's start is
        too costly."""
        if ended_by_id:
            return self._healed(self._up_to_last_id())
        if n_over is not None:
            return self._healed(self._up_to_pattern(n_over))
        text = "".join([*self._pieces, self._detokenizer.flush()])
        if not matched:
            return self._healed(FinalText(text, len(self.ids), ""))
        return self._healed(self._up_to(text, self._stop_position(text, matched), matched))

    def _collected(self, ids: Sequence[int]) -> str:
        """The new text, without what repeats the prompt."""
        self.ids.extend(ids)
        new = self._detokenizer.feed(ids)
        if self._n_to_skip:
            n = min(self._n_to_skip, len(new))
            self._n_to_skip, new = self._n_to_skip - n, new[n:]
        self._pieces.append(new)
        return new

    def _up_to(self, text: str, cut: int, matched: str) -> FinalText:
        kept, tail = split_kept(self._tokenizer, self.ids, self._n_skipped + cut)
        return FinalText(text[:cut], len(kept), tail, matched=matched)

    def _up_to_last_id(self) -> FinalText:
        detokenizer = IncrementalDetokenizer(self._tokenizer)
        kept = self.ids[:-1]
        text = detokenizer.feed(kept) + detokenizer.flush()
        return FinalText(text[self._n_skipped :], len(kept), "")

    def _up_to_pattern(self, n_over: int) -> FinalText:
        assert self._patterns is not None
        text = "".join(self._pieces)
        end = len(text) - n_over
        start = self._patterns.locate(text, end)
        return self._up_to(text, start, text[start:end])

    def _stop_position(self, text: str, matched: str) -> int:
        """Where the stop string starts that the last id completed."""
        whole = IncrementalDetokenizer(self._tokenizer).feed(self.ids[:-1])
        before = max(0, len(whole) - self._n_skipped)
        start = text.find(matched, max(0, before - len(matched) + 1))
        return start if start >= 0 else len(text)

    def _healed(self, final: FinalText) -> FinalText:
        """The final text with its healed tokens separated: their text joins the prompt's and is
        tokenized with it from now on."""
        if self._n_skipped == 0:
            return final
        detokenizer, text = IncrementalDetokenizer(self._tokenizer), ""
        for n, token in enumerate(self.ids[: final.n_kept], start=1):
            text += detokenizer.feed([token])
            if len(text) >= self._n_skipped and detokenizer.is_whole:
                head = text[self._n_skipped :]
                return FinalText(final.text, final.n_kept, final.tail, n, head, final.matched)
        # The generation ended before or within the token that holds the prompt's end.
        return FinalText(final.text, final.n_kept, final.text, final.n_kept, "", final.matched)


class _PrefixMatcher:
    """Tracks how much of the end of a growing text could begin a stop string (KMP)."""

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
