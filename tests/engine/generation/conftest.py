"""What the tests of generation share: matchers over bytes, and the fake model over a tokenizer's
vocabulary, whose generations follow constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from engine.core.conftest import Outcome, drive
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from other_caches import CACHES

from sgc.runtime.engine.guides.grammar import composed, grammar_of, library_limits
from sgc.runtime.engine.guides.guides import Compiled, Vocabulary
from sgc.runtime.engine.guides.stops import TextStops
from sgc.runtime.engine.model.fake_model import FakeModel
from sgc.runtime.engine.model.forward import Forward
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.requests.request import EngineRequest, Generate
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.text.tokenizer import Tokenizer, load_tokenizer
from sgc.runtime.engine.worker.load import _text_like

BYTES_END = 256


class _Bytes:
    """A vocabulary of all bytes, in the form that the library wants."""

    bos_token_id = None
    eos_token_id = BYTES_END
    special_token_ids = (BYTES_END,)
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


@cache
def _byte_tokenizer() -> LLTokenizer:
    return LLTokenizer(TokenizerWrapper(_Bytes()), slices=[])


class ByteMatcher:
    """Which texts satisfy a constraint, told a byte at a time."""

    def __init__(self, field: str, text: str, prefix: str = "") -> None:
        grammar = composed(grammar_of(field, text), prefix)
        self._start = LLMatcher(_byte_tokenizer(), grammar, log_level=0, limits=library_limits())
        self.error = self._start.get_error()

    def accepts(self, text: str) -> bool:
        data = list(text.encode())
        matcher = self._start.deep_copy()
        if matcher.validate_tokens(data) < len(data):
            return False
        assert matcher.consume_tokens(data), matcher.get_error()
        is_accepting = bool(matcher.is_accepting())
        assert not matcher.is_error(), matcher.get_error()
        return is_accepting


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return load_tokenizer(DEFAULT_FOLDER)


@pytest.fixture(scope="session")
def vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary(tokenizer, tokenizer.vocab_size)


@dataclass(frozen=True)
class Rig:
    """Makes engines on the fake model that speak a tokenizer's tokens, and their requests."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    compile: Callable[..., Compiled]

    @property
    def eos(self) -> int:
        return self.tokenizer.eos_ids[0]

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode_literal(text)

    def text(self, ids: Sequence[int]) -> str:
        return b"".join(self.vocabulary.tokens[i] for i in ids).decode()

    def model(self, pool: int) -> FakeModel:
        kinds = _text_like(self.tokenizer)
        printable = [*kinds.printable, self.eos]
        size = self.tokenizer.vocab_size
        return FakeModel(pool, size, printable=printable, ends=[self.eos], breaks=kinds.breaks)

    def core(
        self,
        *,
        pool: int = 4096,
        forward: Forward | None = None,
        cache: str = "radix",
        **options: Any,
    ):
        options.setdefault("max_context", 4096)
        options.setdefault("headroom_tokens", 0)
        return EngineCore(
            forward or self.model(pool),
            pool_tokens=pool,
            vocab_size=self.tokenizer.vocab_size,
            make_stop_checker=lambda stops: TextStops(self.tokenizer, stops),
            check=True,
            **{**options, **CACHES[cache]},
        )

    def request(self, id: int, prompt: str | Sequence[int], kind: Generate) -> EngineRequest:
        tokens = self.ids(prompt) if isinstance(prompt, str) else prompt
        return EngineRequest(id, np.asarray(tokens, np.int64), kind)

    def one(self, core: EngineCore, prompt: str | Sequence[int], kind: Generate) -> Outcome:
        """Runs a request alone."""
        return drive(core, [self.request(1, prompt, kind)])[1]


def make_rig(tokenizer: Tokenizer, vocabulary: Vocabulary) -> Rig:
    @cache
    def compile_(field: str, text: str, prefix: str = "") -> Compiled:
        return Compiled(composed(grammar_of(field, text), prefix), vocabulary)

    return Rig(tokenizer, vocabulary, compile_)


@pytest.fixture(scope="session")
def rig(tokenizer: Tokenizer, vocabulary: Vocabulary) -> Rig:
    return make_rig(tokenizer, vocabulary)
