"""Runners for models in memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sgc.runtime.engine.model.forward import FlatBatch
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.model.ways import runner_factories


def runner_of(model: Any, n_pages: int) -> ModelRunner:
    """A runner for a model, computed in the fastest way there is; it takes the model over."""
    return runner_factories(model)[0](model, n_pages)


def logits_of(runner: ModelRunner, batch: FlatBatch) -> Tensor:
    """[n_logits, vocab]"""
    return torch.from_numpy(runner.logits(batch))
