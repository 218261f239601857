"""Compiles the constraints and stop patterns of requests, in the step process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.guides.stop_patterns import stop_patterns
from sgc.runtime.engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from sgc.runtime.engine.guides.guides import Compiled, Vocabulary


class Compiler:
    """Compiles for one model; loads the library and the vocabulary when first needed."""

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._vocabulary: Vocabulary | None = None

    def __call__(self, message: wpb.WorkerRequest) -> Compiled | None:
        """Compiles a request's patterns and grammar; raises ValueError where it cannot."""
        if message.generate.stop_regex:
            stop_patterns(tuple(message.generate.stop_regex))
        if not message.grammar:
            return None
        from sgc.runtime.engine.guides.guides import Compiled, Vocabulary

        if self._vocabulary is None:
            self._vocabulary = Vocabulary(self._tokenizer, self._vocab_size)
        free_after = message.free_after if message.HasField("free_after") else None
        return Compiled(message.grammar, self._vocabulary, free_after)
