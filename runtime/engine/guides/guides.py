"""Follows constraints during a generation: which tokens may come next, and which must.

A constraint is compiled once for all requests that have it (`Compiled`); each request follows it
with its own `Guide`. The library runs without the GIL and within `grammar.LIMITS`. It never raises,
so its state is checked after every step.

The library is given one token more than the model has: the end of text. So no special token is ever
allowed as text, and one bit of the mask says whether the text may end here. A grammar can name
tokens by number, special ones included; such a token is never generated.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llguidance import LLExecutor, LLMatcher, LLTokenizer, TokenizerWrapper

from sgc.runtime.engine.guides.grammar import ConstraintError, first_line, library_limits
from sgc.runtime.engine.text.detokenizer import REPLACEMENT
from sgc.runtime.engine.text.token_bytes import token_bytes
from sgc.runtime.engine.text.tokenizer import Tokenizer

Mask = npt.NDArray[np.int32]
MAX_MASK_S = 1.0  # computing a mask delays the whole batch; most masks take about 10 us


class Vocabulary:
    """A model's tokens in the library's form; made once, when first needed."""

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        """Raises ConstraintError for a tokenizer that does not define its tokens' bytes."""
        table = token_bytes(tokenizer)
        if table is None:
            raise ConstraintError("this model's tokenizer does not define its tokens' bytes")
        self.size = vocab_size
        self.n_words = (vocab_size + 1 + 31) // 32
        self.tokens = [table[i] if i < tokenizer.vocab_size else b"" for i in range(vocab_size)]
        self.tokenizer = tokenizer
        self.library = LLTokenizer(TokenizerWrapper(_Source(self)), n_vocab=vocab_size + 1)
        silent = np.zeros(self.n_words * 32, np.bool_)
        silent[:vocab_size] = [not token for token in self.tokens]
        self.text_bits = ~np.packbits(silent, bitorder="little").view(np.int32)

    def encode(self, text: bytes | str) -> list[int]:
        """The model's tokens for a text that follows other text; special tokens are plain text."""
        return self.tokenizer.encode_literal(text if isinstance(text, str) else text.decode())


class _Source:
    """The tokenizer interface that the library expects."""

    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        silent = [i for i, token in enumerate(vocabulary.tokens) if not token]
        self.eos_token_id = vocabulary.size
        self.special_token_ids = [*silent, vocabulary.size]
        # Tokens without text get a name, because the library requires one of its special tokens.
        names = {i: b"<|%d|>" % i for i in self.special_token_ids}
        all_tokens = [*vocabulary.tokens, b""]
        self.tokens = [names.get(i, token) for i, token in enumerate(all_tokens)]

    def __call__(self, text: bytes | str) -> list[int]:
        return self._vocabulary.encode(text)


class Compiled:
    """A compiled constraint; each request calls `start`.

    Its automaton grows with the texts it reads, up to a limit, and all requests share it. A request
    that finds it full continues in a new one.
    """

    def __init__(self, grammar: str, vocabulary: Vocabulary, free_after: int | None = None) -> None:
        """grammar: see `grammar.composed`. free_after: bytes after which any text is allowed.

        Raises ConstraintError; may take a while.
        """
        self.vocabulary = vocabulary
        self.free_after = free_after
        self._grammar = grammar
        self._start = self._new()
        _check(self._start, "cannot be used")
        for jumps in (False, True):  # a forced beginning may lead to an unusable state
            self._try(jumps)

    def start(self, jumps: bool = True) -> Guide:
        """A guide for one request. jumps: whether forced tokens skip the model."""
        return Guide(self, self._start.deep_copy(), jumps)

    def renewed(self) -> Any:
        """A matcher at the start of the text, with a new, empty automaton."""
        self._start = self._new()
        return self._start.deep_copy()

    def _try(self, jumps: bool) -> None:
        mask = np.zeros(self.vocabulary.n_words, np.int32)
        guide = self.start(jumps)
        forced = guide.forced()
        if forced:
            guide.take(forced)
        guide.check()
        if guide.is_over:
            return
        guide.write_mask(mask)
        guide.check()
        if not mask.any():
            raise ConstraintError("no token of this model can begin a text of the constraint")

    def _new(self) -> Any:
        limits = library_limits()
        return LLMatcher(self.vocabulary.library, self._grammar, log_level=0, limits=limits)


class Guide:
    """Follows one generation. After an error of the library, no token is allowed."""

    __slots__ = ("_has_renewed", "_ids", "_is_slow", "_jumps", "_matcher", "_of")

    def __init__(self, of: Compiled, matcher: Any, jumps: bool) -> None:
        self._of = of
        self._matcher = matcher
        self._jumps = jumps
        self._ids: list[int] = []
        self._has_renewed = False
        self._is_slow = False

    def take(self, ids: Sequence[int]) -> None:
        """Advances by generated tokens."""
        self._ids += ids
        if not self._matcher.is_stopped() and not self._matcher.consume_tokens(list(ids)):
            self._renew()

    def forced(self) -> list[int]:
        """The tokens that must come next: the forced text as the model would tokenize it, without
        those at its end that later text could change. The guide does not advance."""
        if not self._jumps or self.is_over:
            return []
        ids: list[int] = self._matcher.compute_ff_tokens()
        tokens = self._of.vocabulary.tokens
        if any(i >= len(tokens) or not tokens[i] for i in ids):
            raise ConstraintError("the constraint names tokens that are no text")
        return ids

    def write_mask(self, row: Mask) -> None:
        """Writes a bit per token, and one for the end of text. row: [vocabulary.n_words]."""
        started_s = time.perf_counter()
        self._write_mask(row)
        if self._matcher.is_error() and self._renew():
            self._write_mask(row)
        self._is_slow = time.perf_counter() - started_s > MAX_MASK_S
        if self._is_slow or self._matcher.is_error():
            row[:] = 0
        row &= self._of.vocabulary.text_bits

    @property
    def is_over(self) -> bool:
        """Whether no token can follow."""
        return bool(self._matcher.is_stopped()) and not self._matcher.is_error()

    @property
    def may_end(self) -> bool:
        """Whether the text so far satisfies the constraint."""
        return bool(self._matcher.is_accepting())

    @property
    def is_free(self) -> bool:
        """Whether any text is allowed from here on."""
        if self._of.free_after is None:
            return False
        tokens = self._of.vocabulary.tokens
        return sum(len(tokens[i]) for i in self._ids) >= self._of.free_after

    def is_whole_without(self, n_chars: int) -> bool:
        """Whether the text satisfies the constraint without its last characters."""
        n_ids, rest = self._cut(n_chars)
        matcher = self._matcher.deep_copy()
        if not matcher.rollback(n_ids):
            return False
        ids = self._of.vocabulary.encode(rest)
        return matcher.validate_tokens(ids) == len(ids) and _follow(matcher, ids)

    def _cut(self, n_chars: int) -> tuple[int, str]:
        """How many tokens hold the last characters, and the text of these tokens before them."""
        tokens = self._of.vocabulary.tokens
        data, text, n_ids = b"", "", 0
        while n_ids < len(self._ids):
            n_ids += 1
            data = tokens[self._ids[-n_ids]] + data
            text = data.decode("utf-8", "replace")
            if len(text) >= n_chars and not text.startswith(REPLACEMENT):
                return n_ids, text[: len(text) - n_chars]
        return n_ids, text[: max(0, len(text) - n_chars)]

    def check(self) -> None:
        """Raises ConstraintError if the library gave up, or takes too long."""
        if self._is_slow:
            raise ConstraintError(f"the constraint takes over {MAX_MASK_S:g} s a token")
        _check(self._matcher, "failed during generation")

    def _write_mask(self, row: Mask) -> None:
        pair = [(self._matcher, 0)]
        _executor().unsafe_compute_mask_ptr(pair, row.ctypes.data, row.nbytes, 1)

    def _renew(self) -> bool:
        """Continues in a new automaton, once: a text that does not fit an empty one fits none."""
        if self._has_renewed:
            return False
        self._has_renewed = True
        self._matcher = self._of.renewed()
        return bool(self._matcher.consume_tokens(self._ids))


def _follow(matcher: Any, ids: Sequence[int]) -> bool:
    return bool((not ids or matcher.consume_tokens(list(ids))) and matcher.is_accepting())


def _check(matcher: Any, what: str) -> None:
    if not matcher.is_error():
        return
    reason = first_line(matcher.get_error())
    if reason.startswith("NoExtension"):
        raise ConstraintError("nothing can satisfy the constraint")
    raise ConstraintError(f"the constraint {what}: {reason}")


_executors: list[Any] = []


def _executor() -> Any:
    """One executor with one thread: masks are small, and the model uses the other cores."""
    if not _executors:
        _executors.append(LLExecutor(1))
    return _executors[0]
