"""Turns texts into tokens, for a model with a known tokenizer or one with only a known rate."""

from __future__ import annotations

import math
from itertools import cycle, islice

from sgc.predict.dry.engine_meter import FRESH
from sgc.predict.dry.model import OpenedModel

_TEXT = """
the and that with for this from have one not are all was but they you his her what when which there
will more about time up out so like some them other into only its then new two over
"""
WORDS = tuple(_TEXT.split())


class EngineWriter:
    """A `Writer` (`replies.py`) of an opened model. Equal requests get equal ids."""

    def __init__(self, model: OpenedModel) -> None:
        self._model = model
        self._numbers: dict[str, int] = {}  # of answered requests, from 1
        words = [f" {word}" for word in WORDS]
        self._words = [each for each in words if model.n_tokens(each) == 1] or words

    def n_tokens(self, text: str) -> int:
        return self._model.n_tokens(text)

    def placeholder(self, n_tokens: int) -> str:
        return "".join(islice(cycle(self._words), n_tokens))

    def ids(self, request: str, text: str, n_tokens: int) -> tuple[int, ...]:
        number = self._numbers.setdefault(request, len(self._numbers) + 1)
        known = self._model.tokenizer.encode_literal(text) if text else []
        filler = known[-1] if known else 0
        padded = [*known[:n_tokens], *[filler] * (n_tokens - len(known))]
        return tuple([number * FRESH + each for each in padded])


class RateWriter:
    """A `Writer` of a provider's model, whose replies have no ids."""

    def __init__(self, chars_per_token: float) -> None:
        self._chars_per_token = chars_per_token

    def n_tokens(self, text: str) -> int:
        return math.ceil(len(text) / self._chars_per_token)

    def placeholder(self, n_tokens: int) -> str:
        n_chars = round(n_tokens * self._chars_per_token)
        n_words = n_chars // 4 + 1
        return "".join(islice(cycle(f" {word}" for word in WORDS), n_words))[:n_chars]

    def ids(self, request: str, text: str, n_tokens: int) -> tuple[int, ...]:
        return ()
