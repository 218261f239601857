"""Every row that runs for a request is of its adapter, and rows of one adapter lie together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine.core.conftest import drive, make_core, make_model
from engine.core.test_joined import JOINS, TOKENS

from sgc.runtime.engine.model.forward import FlatBatch
from sgc.runtime.engine.requests.request import (
    Commit,
    Embed,
    EngineRequest,
    Generate,
    LogprobsAsked,
    Prefetch,
    Score,
)

VOCAB = 61


class Noting:
    """A fake model that notes the adapters of its batches' rows."""

    def __init__(self) -> None:
        self._model = make_model(4096, VOCAB)
        self.seen: list[list[int]] = []

    def run(self, batch: FlatBatch) -> Any:
        self._note(batch)
        return self._model.run(batch)

    def hidden(self, batch: FlatBatch) -> Any:
        self._note(batch)
        return self._model.hidden(batch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def _note(self, batch: FlatBatch) -> None:
        given = batch.adapters
        self.seen.append([0] * batch.n_rows if given is None else given.tolist())


KINDS: list[tuple[Any, Any]] = [
    (Generate(9), ()),
    (Generate(3, logprobs=LogprobsAsked(0, 2)), ()),
    (Score(((3, 4, 5), (3, 6), (7,))), ()),
    (Embed("mean"), ()),
    (Commit(), ()),
    (Prefetch(), ()),
    (Generate(4), JOINS),  # whose parts are encoded side by side, by requests of the engine's own
]


@pytest.mark.parametrize(("kind", "joins"), KINDS)
def test_all_rows_of_a_request(kind: Any, joins: Any) -> None:
    model = Noting()
    core = make_core(forward=model, pages=model, vocab=VOCAB)
    drive(core, [EngineRequest(0, np.asarray(TOKENS), kind, b"a", adapter=2, joins=joins)])
    assert model.seen
    assert {adapter for rows in model.seen for adapter in rows} == {2}


def test_rows_of_one_adapter_lie_together() -> None:
    model = Noting()
    core = make_core(forward=model, pages=model, vocab=VOCAB)
    asked = [
        EngineRequest(i, np.array([i, 3, 5, 7]), Generate(6), bytes([i % 3]), adapter=i % 3)
        for i in range(9)
    ]
    drive(core, asked)
    assert all(rows == sorted(rows) for rows in model.seen)
    assert sorted(max(model.seen, key=len)) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
