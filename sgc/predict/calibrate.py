"""Finds a provider's tokens per byte from a log, by dry runs of its rows."""

from __future__ import annotations

from sgc.ir.graph import Graph
from sgc.predict.dry.dry_run import Row, dry_run
from sgc.predict.dry.provider_meter import Calibration, Rates
from sgc.predict.dry.replies import AssumedReplies, Writer
from sgc.predict.dry.samples import Samples
from sgc.runtime.executor.backends.dry import DryBackend
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.run.options import RunOptions


def rates_of(
    graph: Graph,
    facts: Facts,
    capabilities: Capabilities,
    writer: Writer,
    options: RunOptions,
    samples: Samples,
) -> Rates:
    """The rates of each generation of the program that is in the log."""
    meter = Calibration(facts, dict(samples.usages()))
    replies = AssumedReplies(capabilities, writer, samples, is_exact=True)
    names = {param.value.name for param in graph.params}
    rows = [
        Row(key, {name: v for name, v in samples.arguments(key).items() if name in names})
        for key in samples.rows
    ]
    dry_run(graph, rows, DryBackend(capabilities, replies, meter), options, samples)
    return meter.rates()
