"""The target of a prediction: our engine with a model, or a provider's model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from sgc.errors import UsageError, closest
from sgc.ir.graph import Graph
from sgc.predict.bounds.requests import Asking
from sgc.predict.dry.replies import Writer
from sgc.predict.dry.samples import Samples
from sgc.runs.cache_rules import Plans, rules_of
from sgc.runs.endpoints import require_engine
from sgc.runtime.executor.backends.dry import Meter
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.run.options import RunOptions


class Target(Protocol):
    """The model that a run would use."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def planned(self, graph: Graph, rows: Sequence[Mapping[str, Any]]) -> Graph:
        """The program as planned for a run of rows with these arguments."""
        ...

    def writer(self) -> Writer: ...

    def is_exact(self, samples: Samples) -> bool:
        """Whether a log's tokens were counted by this model."""
        ...

    def meter(self, graph: Graph, options: RunOptions, samples: Samples | None) -> Meter:
        """A new meter."""
        ...

    def asking(self, graph: Graph) -> Asking:
        """The bounds of requests' costs."""
        ...


class EngineTarget:
    """Our engine. model: a folder or a hub id, None for the default; pool_tokens: the size of its
    pool, None for unlimited.
    """

    def __init__(self, model: str | None = None, pool_tokens: int | None = None) -> None:
        require_engine()
        from sgc.predict.dry.model import open_model

        self._model = open_model(model)
        self._pool_tokens = pool_tokens

    @property
    def name(self) -> str:
        return self._model.capabilities.model

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    def planned(self, graph: Graph, rows: Sequence[Mapping[str, Any]]) -> Graph:
        return graph

    def writer(self) -> Writer:
        from sgc.predict.dry.writers import EngineWriter

        return EngineWriter(self._model)

    def is_exact(self, samples: Samples) -> bool:
        logged = samples.capabilities.fingerprints.get("tokenizer")
        return logged == self.capabilities.fingerprints["tokenizer"]

    def meter(self, graph: Graph, options: RunOptions, samples: Samples | None) -> Meter:
        from sgc.predict.dry.engine_meter import EngineMeter

        return EngineMeter(self._model, self._pool_tokens)

    def asking(self, graph: Graph) -> Asking:
        from sgc.predict.bounds.requests import EngineAsking

        # A tokenizer may put a token of its own before a text.
        return EngineAsking(self.capabilities, len(self._model.tokenizer.prefix_ids) + 1)


class ProviderTarget:
    """A provider's model. Raises UsageError if its prices are not known."""

    def __init__(self, uri: str, prices: Path | None = None) -> None:
        from sgc.runtime.executor.backends.providers.connect import NO_KEY, parse_target
        from sgc.runtime.executor.backends.providers.models.models import as_of, model_names
        from sgc.runtime.executor.backends.providers.models.prices import read_prices

        found = parse_target(uri, key=NO_KEY)  # no request is made
        if not found.model:
            raise UsageError(f"no model is named in {uri}", hint="an estimate asks nobody: #MODEL")
        self.facts = found.facts()
        given = read_prices(prices, found.model) if prices is not None else None
        if given is not None:
            self.facts = replace(self.facts, prices=given)
        self.prices_of = str(prices) if given is not None else f"the table of {as_of()}"
        if self.facts.prices is None:
            meant = closest(found.model, model_names(found.provider))
            raise UsageError(
                f"no prices of {found.model} are known{meant}",
                hint='give --prices FILE, with {"MODEL": {"input": 1.0, "output": 2.0}}, dollars a '
                "million tokens; ?like=MODEL, after the name, takes those of a model that is known",
            )

    @property
    def name(self) -> str:
        return self.facts.model

    @cached_property
    def capabilities(self) -> Capabilities:
        from sgc.runtime.executor.backends.providers.backend import capabilities_of

        return capabilities_of(self.facts)

    def planned(self, graph: Graph, rows: Sequence[Mapping[str, Any]]) -> Graph:
        """The program with a batch's cache marks (`sgc/runs/cache_rules.py`)."""
        rules = rules_of(self.facts)
        if rules is None or not rows or any(node.op == "cache" for node in graph.all_nodes()):
            return graph
        plans = Plans()
        plans.announce(graph, list(rows))
        return plans.marked(graph, rows[0], rules, math.inf)

    def writer(self) -> Writer:
        from sgc.predict.dry.writers import RateWriter

        return RateWriter(self.facts.bytes_per_token)

    def is_exact(self, samples: Samples) -> bool:
        return samples.capabilities.model == self.facts.model

    def meter(self, graph: Graph, options: RunOptions, samples: Samples | None) -> Meter:
        from sgc.predict.calibrate import rates_of
        from sgc.predict.dry.provider_meter import ProviderMeter

        if samples is None or not self.is_exact(samples):
            return ProviderMeter(self.facts)
        rates = rates_of(graph, self.facts, self.capabilities, self.writer(), options, samples)
        return ProviderMeter(self.facts, rates)

    def asking(self, graph: Graph) -> Asking:
        from sgc.predict.bounds.requests import ProviderAsking

        is_marked = any(node.op == "cache" for node in graph.all_nodes())
        return ProviderAsking(self.capabilities, self.facts, is_marked)
