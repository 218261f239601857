"""Which log-probabilities go with which streamed text: those of the tokens that begin in it.

Text, and its tokens with it, waits while a stop could match it or a character is unfinished. So the
log-probabilities streamed so far are always the first ones of the whole reply. Used by
`updates.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.text.detokenizer import IncrementalDetokenizer
from sgc.runtime.engine.text.tokenizer import Tokenizer


class StreamedLogprobs:
    """The log-probabilities of one generation that is not healed."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._detokenizer = IncrementalDetokenizer(tokenizer)
        self._waiting: deque[tuple[int, pb.TokenLogprob]] = deque()  # each with its position
        self._prompt: list[pb.TokenLogprob] = []
        self._n_rows = self._n_chars = 0
        self._has_begun = False

    def add(self, update: wpb.Update) -> None:
        """Takes the log-probabilities that came with an update's ids."""
        self._prompt.extend(update.prompt_logprobs)
        self._has_begun = True
        self._take(update.logprobs)

    def add_last(self, update: wpb.Update) -> None:
        """Takes the remaining log-probabilities; the final update has all."""
        if not self._has_begun:
            self._prompt.extend(update.prompt_logprobs)
        self._take(update.logprobs[self._n_rows :])

    def up_to(self, n_chars: int) -> list[pb.TokenLogprob]:
        """Returns those of tokens that begin in the first n_chars of the text, once each."""
        found = []
        while self._waiting and self._waiting[0][0] < n_chars:
            found.append(self._waiting.popleft()[1])
        return found

    def of_prompt(self) -> list[pb.TokenLogprob]:
        """Returns those of the prompt, once."""
        found, self._prompt = self._prompt, []
        return found

    def _take(self, rows: Iterable[pb.TokenLogprob]) -> None:
        for row in rows:
            self._waiting.append((self._n_chars, row))
            self._n_chars += len(self._detokenizer.feed([row.id]))
            self._n_rows += 1
