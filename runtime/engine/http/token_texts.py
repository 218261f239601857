"""The bytes of tokens and their offsets in the text, for log-probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.text.detokenizer import IncrementalDetokenizer
from sgc.runtime.engine.text.token_bytes import token_bytes
from sgc.runtime.engine.text.tokenizer import Tokenizer

LOWEST = -9999.0  # JSON has no -infinity; OpenAI's servers write this


class TokenTexts:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._bytes = token_bytes(tokenizer)

    def bytes_of(self, found: pb.TokenLogprob) -> bytes:
        """The bytes that the token adds to a text. `found.text` may lack a leading space, and bytes
        that are not whole characters."""
        known = self._bytes[found.id] if self._bytes is not None else b""
        return known or found.text.encode()

    def text_of(self, found: pb.TokenLogprob) -> str:
        return self.bytes_of(found).decode(errors="replace")

    def offsets(self, ids: Iterable[int], start: int = 0) -> list[int]:
        """Where each token's text begins, in code points from `start` on."""
        return self.offsets_from(start)(ids)

    def offsets_from(self, start: int) -> Callable[[Iterable[int]], list[int]]:
        """The same for tokens that come one after another."""
        detokenizer = IncrementalDetokenizer(self._tokenizer)

        def of(ids: Iterable[int]) -> list[int]:
            nonlocal start
            found = []
            for token in ids:
                found.append(start)
                start += len(detokenizer.feed([token]))
            return found

        return of

    def shown(self, generated: pb.Generated) -> list[pb.TokenLogprob]:
        """The log-probabilities of tokens in the text, without those that a stop cut off and the
        token that ended it."""
        rows = list(generated.logprobs)
        if not generated.matched and generated.matched_id < 0:
            return rows
        offsets = self.offsets([each.id for each in rows])
        length = len(generated.text)
        return [row for row, start in zip(rows, offsets, strict=True) if start < length]

    def prompt_offsets(self, ids: list[int], n_chars: int) -> list[int]:
        """The same for a prompt of `n_chars` code points; its first token may decode to a space
        that the prompt does not have."""
        detokenizer = IncrementalDetokenizer(self._tokenizer)
        n_over = max(0, len(detokenizer.feed(ids) + detokenizer.flush()) - n_chars)
        return [max(0, offset - n_over) for offset in self.offsets(ids)]

    def decoded(self, ids: list[int]) -> str:
        text: str = self._tokenizer.backend.decode(ids, skip_special_tokens=True)
        return text


def logprob_of(value: float) -> float:
    """A log-probability as JSON can express it."""
    return max(value, LOWEST)
