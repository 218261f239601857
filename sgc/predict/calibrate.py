"""The rates at which a provider counted tokens, from a log: its rows are run dry once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgc.ir.graph import Graph
from sgc.predict.dry.dry_run import Row, dry_run
from sgc.predict.dry.provider_meter import Calibration, Rates
from sgc.predict.dry.replies import AssumedReplies
from sgc.predict.dry.samples import Samples
from sgc.runtime.executor.backends.dry import DryBackend
from sgc.runtime.executor.run.options import RunOptions

if TYPE_CHECKING:
    from sgc.predict.targets import ProviderTarget


def rates_of(graph: Graph, target: ProviderTarget, options: RunOptions, samples: Samples) -> Rates:
    """Of each generation of the program that the log has."""
    meter = Calibration(target.facts, dict(samples.usages()))
    capabilities = target.capabilities
    replies = AssumedReplies(capabilities, target.writer(), samples, is_exact=True)
    names = {param.value.name for param in graph.params}
    rows = [
        Row(key, {name: v for name, v in samples.arguments(key).items() if name in names})
        for key in samples.rows
    ]
    dry_run(graph, rows, DryBackend(capabilities, replies, meter), options, samples)
    return meter.rates()
