"""Who a command asks: an engine that runs, a provider, or a model that it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from sgc.errors import UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import Runtime, connect
from sgc.runtime.engine.model.models import DEFAULT_NAMES
from sgc.runtime.executor.backends.providers.wire.addresses import VENDORS

DEMO = "sgc-tiny"
DEMO_NOTE = f"sgc: a demo model answers, {DEMO}: name a real one with --model or --engine"


@dataclass(frozen=True, slots=True)
class Asked:
    """limits: of a provider, as `connect` takes them; tells: whether to report the demo model."""

    engine: str | None = None
    model: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    tells: bool = False

    def __post_init__(self) -> None:
        if self.engine is not None and self.model is not None:
            raise UsageError(
                "--model and --engine exclude each other: a running engine has its model"
            )

    @staticmethod
    def of(named: str) -> Asked:
        """For an engine's address, or for a model by its name."""
        is_address = "://" in named or named.startswith((*VENDORS, "unix:"))
        engine, model = (named, None) if is_address else (None, named)
        return Asked(engine, model)

    @property
    def known_model(self) -> str | None:
        """The model's name; None if only the engine knows it."""
        if self.engine is not None:
            vendor, _, model = self.engine.partition(":")
            return model.partition("?")[0] if f"{vendor}:" in VENDORS else None
        if self.model is None or self.model in DEFAULT_NAMES:
            return DEMO
        folder = Path(self.model).expanduser()
        return folder.resolve().name if folder.is_dir() else self.model

    def open(self) -> Endpoint:
        if self.engine is not None:
            return connect(self.engine, **self.limits)
        if self.model is None and self.tells:
            click.echo(DEMO_NOTE, err=True)
        return Runtime(self.model)
