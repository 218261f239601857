"""The accuracy that eight bits cost: the answers of a model that runs in eight bits, compared with
its answers in its own dtype. Measured at load, on a fixed text (`loading.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.model.forward import Accuracy, Row, flatten
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.model.self_check import own_logits

MOST_TOKENS = 256
_CHUNK = 32  # tokens whose logits are in memory as float32
TEXT = """The lighthouse stood at the end of a long pier, and every evening at six the keeper
walked out to it with a lamp, a loaf of bread and whatever book he happened to be reading. "You will
go blind," his sister used to say. He never did. In 1911 the council replaced the lamp by an
electric one, which needed no keeper at all; he went on walking out there for eleven more years.

Question: A train leaves at 9:40 and arrives at 13:05. How long does it take?
Answer: From 9:40 to 13:00 are 3 hours and 20 minutes. Five more minutes make 3 hours 25 minutes.

def mean(values: list[float]) -> float:
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)

{"name": "Ada Lovelace", "born": 1815, "fields": ["mathematics", "computing"], "living": false}

Water boils at a lower temperature on a mountain, because the pressure of the air is lower there.
This is why an egg takes longer to cook at high altitude, although the water bubbles just the same.
"""


@dataclass(frozen=True, slots=True)
class OwnText:
    """A text, [n], and the model's own logits after each of its tokens: [n, vocab]."""

    ids: Ints
    logits: Tensor


def own_text(model: Any, ids: Ints) -> OwnText:
    """Runs the model on a text, up to the length that is measured."""
    known = ids[ids < int(model.get_output_embeddings().weight.shape[0])][:MOST_TOKENS]
    return OwnText(known, own_logits(model, torch.from_numpy(known)[None])[0])


def accuracy_of(runner: ModelRunner, own: OwnText) -> Accuracy:
    """Runs the text in chunks, on a pool of its own."""
    sums = torch.zeros(4, dtype=torch.float64)
    for start, logits in _logits(runner, own.ids):
        theirs = own.logits[start : start + len(logits)].float().log_softmax(-1)
        ours = logits.log_softmax(-1)
        n = len(ours)
        following = torch.from_numpy(own.ids[start + 1 : start + n + 1])
        sums += torch.stack([
            F.nll_loss(ours[: len(following)], following, reduction="sum").double(),
            F.nll_loss(theirs[: len(following)], following, reduction="sum").double(),
            F.kl_div(ours, theirs, log_target=True, reduction="sum").double(),
            (ours.argmax(-1) == theirs.argmax(-1)).sum().double(),
        ])  # fmt: skip
    n = len(own.ids)
    counts = torch.tensor([n - 1, n - 1, n, n])
    return Accuracy(n, *(sums / counts).tolist())


def _logits(runner: ModelRunner, ids: Ints) -> Iterator[tuple[int, Tensor]]:
    """Where each chunk starts, and its logits."""
    before: Any = runner.pool
    runner.pool = runner.new_pool(len(ids))
    pages = np.arange(len(ids))
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        row = Row(chunk, start, pages[: start + len(chunk)], np.arange(len(chunk)))
        yield start, torch.from_numpy(runner.logits(flatten([row])))
    runner.pool = before
