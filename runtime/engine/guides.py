"""Constraints while they run: which tokens may come next, and which must.

A constraint is compiled once for all requests that have it (`Compiled`); each request follows
it with a `Guide` of its own. The library's work is done without the interpreter's lock and
within `grammar.LIMITS`; it never raises, so its state is asked after every step.

The library is given one more token than the model has: its end of text. So no special token is
ever allowed as text, and whether a text may end here is a bit of the mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llguidance import LLExecutor, LLMatcher, LLTokenizer, TokenizerWrapper

from sgc.runtime.engine.grammar import ConstraintError, first_line, library_limits
from sgc.runtime.engine.token_bytes import token_bytes
from sgc.runtime.engine.tokenizer import Tokenizer

Mask = npt.NDArray[np.int32]


class Vocabulary:
    """A model's tokens as the library knows them; made once, when first needed."""

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        """Raises ConstraintError for a tokenizer whose tokens have no bytes of their own."""
        table = token_bytes(tokenizer)
        if table is None:
            raise ConstraintError("this model's tokenizer does not say what bytes its tokens are")
        self.size = vocab_size
        self.tokens = [table[i] if i < tokenizer.vocab_size else b"" for i in range(vocab_size)]
        self.tokenizer = tokenizer
        self.library = LLTokenizer(TokenizerWrapper(_Source(self)), n_vocab=vocab_size + 1)
        self.n_words = (vocab_size + 1 + 31) // 32

    def encode(self, text: bytes | str) -> list[int]:
        """The model's own tokens for a text that follows others; specials are plain text."""
        return self.tokenizer.encode_literal(text if isinstance(text, str) else text.decode())


class _Source:
    """What the library asks of a tokenizer."""

    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        silent = [i for i, token in enumerate(vocabulary.tokens) if not token]
        self.eos_token_id = vocabulary.size
        self.special_token_ids = [*silent, vocabulary.size]
        # What has no text of its own gets a name, as the library wants its special tokens to.
        names = {i: b"<|%d|>" % i for i in self.special_token_ids}
        all_tokens = [*vocabulary.tokens, b""]
        self.tokens = [names.get(i, token) for i, token in enumerate(all_tokens)]

    def __call__(self, text: bytes | str) -> list[int]:
        return self._vocabulary.encode(text)


class Compiled:
    """A constraint, ready to be followed; `start` for each request.

    Its automaton is built as texts ask for more of it, up to a limit, and is shared by all who
    follow it. Who finds it full goes on in a new one.
    """

    def __init__(self, grammar: str, vocabulary: Vocabulary) -> None:
        """grammar: see `grammar.composed`. Raises ConstraintError; may take a while."""
        self.vocabulary = vocabulary
        self._grammar = grammar
        self._start = self._new()
        _check(self._start, "cannot be used")
        mask = np.zeros(vocabulary.n_words, np.int32)
        first = self.start(jumps=False)
        first.write_mask(mask)
        first.check()
        if not mask.any():
            raise ConstraintError("no token of this model can begin a text of the constraint")

    def start(self, jumps: bool = True) -> Guide:
        """jumps: whether what must come next is given without asking the model."""
        return Guide(self, self._start.deep_copy(), jumps)

    def matches(self, text: str) -> bool:
        """Whether a whole text satisfies it."""
        matcher = self._start.deep_copy()
        ids = self.vocabulary.encode(text)
        return matcher.validate_tokens(ids) == len(ids) and _follow(matcher, ids)

    def renewed(self) -> Any:
        """The beginning, in an automaton that has nothing in it yet."""
        self._start = self._new()
        return self._start.deep_copy()

    def _new(self) -> Any:
        limits = library_limits()
        return LLMatcher(self.vocabulary.library, self._grammar, log_level=0, limits=limits)


class Guide:
    """Follows one generation. After an error of the library nothing is allowed any more."""

    __slots__ = ("_has_renewed", "_ids", "_jumps", "_matcher", "_of")

    def __init__(self, of: Compiled, matcher: Any, jumps: bool) -> None:
        self._of = of
        self._matcher = matcher
        self._jumps = jumps
        self._ids: list[int] = []
        self._has_renewed = False

    def take(self, ids: Sequence[int]) -> None:
        """Goes on with tokens that were generated."""
        self._ids += ids
        if not self._matcher.is_stopped() and not self._matcher.consume_tokens(list(ids)):
            self._renew()

    def forced(self) -> list[int]:
        """The tokens that must come next, whatever the model says: the model's own ones for the
        forced text, but for those at its end that what follows could change. Not yet taken."""
        if not self._jumps or self.is_over:
            return []
        return list(self._matcher.compute_ff_tokens())

    def write_mask(self, row: Mask) -> None:
        """A bit a token, and one for the end of text; [vocabulary.n_words]."""
        self._write_mask(row)
        if self._matcher.is_error() and self._renew():
            self._write_mask(row)

    @property
    def is_over(self) -> bool:
        """Whether nothing can follow."""
        return bool(self._matcher.is_stopped()) and not self._matcher.is_error()

    @property
    def may_end(self) -> bool:
        """Whether the text satisfies it as it is."""
        return bool(self._matcher.is_accepting())

    def is_whole_before(self, stop: str) -> bool:
        """Whether the text satisfies the constraint if it is cut where its last `stop` begins."""
        tokens = self._of.vocabulary.tokens
        text = b"".join([tokens[i] for i in self._ids]).decode("utf-8", "replace")
        return self._of.matches(text[: text.rfind(stop)])

    def check(self) -> None:
        """Raises ConstraintError if the library gave up."""
        _check(self._matcher, "can be followed no further")

    def _write_mask(self, row: Mask) -> None:
        pair = [(self._matcher, 0)]
        _executor().unsafe_compute_mask_ptr(pair, row.ctypes.data, row.nbytes, 1)

    def _renew(self) -> bool:
        """Goes on in a new automaton, once: what does not fit into one fits into none."""
        if self._has_renewed:
            return False
        self._has_renewed = True
        self._matcher = self._of.renewed()
        return bool(self._matcher.consume_tokens(self._ids))


def _follow(matcher: Any, ids: Sequence[int]) -> bool:
    return bool(matcher.consume_tokens(list(ids)) and matcher.is_accepting())


def _check(matcher: Any, what: str) -> None:
    if not matcher.is_error():
        return
    reason = first_line(matcher.get_error())
    if reason.startswith("NoExtension"):
        raise ConstraintError("nothing can satisfy the constraint")
    raise ConstraintError(f"the constraint {what}: {reason}")


_executors: list[Any] = []


def _executor() -> Any:
    """One for all, of one thread: masks are small, and the model has the other cores."""
    if not _executors:
        _executors.append(LLExecutor(1))
    return _executors[0]
