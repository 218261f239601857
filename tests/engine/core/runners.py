"""Runners for models in memory."""

from __future__ import annotations

from typing import Any

from sgc.runtime.engine.model.runner import ModelRunner, runner_factories


def runner_of(model: Any, n_pages: int) -> ModelRunner:
    """A runner for a model, computed in the fastest way there is; it takes the model over."""
    return runner_factories(model)[0](model, n_pages)
