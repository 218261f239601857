"""What the tests of the engine core share: a small fake engine, a driver, and the naive model
of what it must answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from other_caches import CACHES

from sgc.runtime.engine.model.fake_model import FakeModel
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.requests.request import (
    Embed,
    EngineRequest,
    Generate,
    Score,
    Stops,
    Update,
)
from sgc.runtime.engine.requests.text_rules import Stop
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.step.sampler import sample

VOCAB = 997
END = 1
BREAK = 2


class Letters:
    """A checker over the text in which token t is the t-th letter of a long alphabet."""

    def __init__(self, stops: Stops) -> None:
        self._stop, self._text = stops.texts, ""

    def feed(self, ids: list[int], counts: bool) -> Stop:
        before = len(self._text)
        self._text += "".join(map(letter, ids))
        for stop in self._stop:
            if counts and self._text.find(stop, max(0, before - len(stop) + 1)) >= 0:
                return Stop(stop)
        return Stop()


def letter(token: int) -> str:
    return chr(0x4E00 + token)


def make_model(n_pages: int, vocab: int = VOCAB) -> FakeModel:
    return FakeModel(n_pages, vocab, ends=[END], breaks=[BREAK])


def make_core(
    *, pool: int = 4096, vocab: int = VOCAB, forward=None, cache: str = "radix", **options
) -> EngineCore:
    options.setdefault("max_context", 4096)
    options.setdefault("headroom_tokens", 1)  # so that small pools lead to preemption
    return EngineCore(
        forward or make_model(pool, vocab),
        pool_tokens=pool,
        vocab_size=vocab,
        make_stop_checker=Letters,
        check=True,
        **{**options, **CACHES[cache]},
    )


def request(id: int, tokens: Sequence[int], kind: object) -> EngineRequest:
    return EngineRequest(id, np.asarray(tokens, np.int64), kind)


@dataclass
class Outcome:
    ids: list[int] = field(default_factory=list)
    last: Update | None = None

    @property
    def answer(self) -> tuple:
        """All that must not depend on how it was computed."""
        u = self.last
        assert u is not None
        said = (u.finish_reason, u.matched, u.matched_id, u.choices, u.embedding)
        return tuple(self.ids), *said


def drive(
    core: EngineCore,
    requests: Iterable[EngineRequest],
    *,
    per_step: int | None = None,
    max_steps: int = 20000,
) -> dict[int, Outcome]:
    """Runs to the end; `per_step` requests arrive before each step (all at once if None)."""
    todo = list(requests)
    outcomes = {r.id: Outcome() for r in todo}
    for _ in range(max_steps):
        n = len(todo) if per_step is None else per_step
        for r in todo[:n]:
            core.submit(r)
        del todo[:n]
        for update in core.step():
            outcome = outcomes[update.id]
            assert outcome.last is None, "something was said after the end"
            outcome.ids += update.new_ids
            if update.final:
                outcome.last = update
        if not todo and not core.has_work:
            return outcomes
    raise AssertionError("the engine does not come to an end")


def logits_of(tokens: Sequence[int], vocab: int = VOCAB) -> np.ndarray:
    """What the fake model says after `tokens`, computed in one run of its own."""
    n = len(tokens)
    row = Row(np.asarray(tokens, np.int64), 0, np.arange(n), np.array([n - 1]))
    return make_model(n, vocab).run(flatten([row]))


class Naive:
    """Answers requests one token at a time, with no cache, batch or scheduler."""

    def __init__(self, vocab: int = VOCAB) -> None:
        self.vocab = vocab
        self._model = make_model(1, vocab)

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        n = len(tokens)
        self._model._prefix = np.zeros(n, np.uint64)
        row = Row(np.asarray(tokens, np.int64), 0, np.arange(n), np.array([n - 1]))
        return self._model.run(flatten([row]))

    def generate(self, prompt: Sequence[int], kind: Generate) -> list[int]:
        tokens, out, checker = list(prompt), [], Letters(kind.stop)
        state = Penalties(np.asarray(prompt), self.vocab) if kind.params.has_penalties else None
        while len(out) < kind.max_tokens:
            banned = kind.stop_ids if len(out) < kind.min_tokens else ()
            token = sample(self.logits(tokens), [Draw(kind.params, len(out), state, banned)])[0]
            tokens.append(token)
            out.append(token)
            if state is not None:
                state.add(token)
            matched = checker.feed([token], len(out) >= kind.min_tokens)
            if token in kind.stop_ids or matched:
                break
        return out

    def score(self, prompt: Sequence[int], kind: Score) -> list[list[float]]:
        return [self._logprobs(list(prompt), choice) for choice in kind.choices]

    def embed(self, prompt: Sequence[int], kind: Embed) -> tuple[float, ...]:
        n = len(prompt)
        self._model._prefix = np.zeros(n, np.uint64)
        row = Row(np.asarray(prompt, np.int64), 0, np.arange(n), np.arange(n))
        hidden = self._model.hidden(flatten([row])).astype(np.float64)
        found = {"last": hidden[-1], "first": hidden[0], "mean": hidden.mean(0)}[kind.pooling]
        return tuple(found.astype(np.float32).tolist())

    def _logprobs(self, tokens: list[int], choice: Sequence[int]) -> list[float]:
        out = []
        for token in choice:
            row = self.logits(tokens)[0].astype(np.float64)
            out.append(float(row[token] - np.logaddexp.reduce(row)))
            tokens.append(token)
        return out


@pytest.fixture(scope="session")
def lab() -> SimpleNamespace:
    tools: dict[str, Callable] = {
        "make_core": make_core,
        "make_model": make_model,
        "request": request,
        "drive": drive,
        "letter": letter,
        "Naive": Naive,
        "Outcome": Outcome,
    }
    return SimpleNamespace(**tools, VOCAB=VOCAB, END=END, BREAK=BREAK)
