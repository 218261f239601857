"""`sgc estimate`: what a run will use and cost, before it is made."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sgc.cli.columns import columns_of
from sgc.cli.output.tables import count, dollars, table
from sgc.cli.programs.loading import Given, load_program
from sgc.cli.programs.predicted_rows import (
    assumptions,
    open_samples,
    open_target,
    rows_of,
    run_options,
)
from sgc.errors import counted
from sgc.predict.bounds.cost import Cost
from sgc.predict.dry.totals import Total, Totals
from sgc.predict.predict import Expecting, at_most, expected
from sgc.predict.targets import ProviderTarget
from sgc.programs.program import Program


def estimate(
    program: str,
    json_args: str | None,
    single_args: tuple[str, ...],
    rows: Path | None,
    key: str | None,
    ignore_columns: bool,
    engine: str | None,
    model: str | None,
    prices: Path | None,
    like: Path | None,
    level: int,
    temperature: float | None,
    max_tokens: int | None,
    tool_tokens: int | None,
    pool_tokens: int | None,
    is_warm: bool,
    as_json: bool,
) -> None:
    """Prints the expected sums and their upper bounds; makes no request."""
    given = Given.read(json_args, single_args, rows, columns_of(key, ignore_columns))
    source = load_program(program, interpret=False, level=level, check=False, given=given)
    loaded = source.program
    assert isinstance(loaded, Program)
    todo = rows_of(given, loaded, source.bound)
    target = open_target(engine, model, prices, pool_tokens)
    graph = loaded.graph
    if loaded.level:
        graph = target.planned(graph, [row.arguments for row in todo])
    with ExitStack() as held:
        opened = open_samples(like, graph, held)
        samples = opened[0] if opened is not None else None
        options = run_options(samples, {"temperature": temperature, "max_tokens": max_tokens})
        how = Expecting(options, bool(loaded.level), is_warm)
        found = expected(graph, todo, target, how, samples)
        assumed = assumptions(samples, todo, like)
    bound = math.inf if tool_tokens is None else tool_tokens
    most = at_most(graph, todo, target, options, bound)
    is_billed = isinstance(target, ProviderTarget)
    share = target.facts.batch_price if isinstance(target, ProviderTarget) else 1.0
    if as_json:
        told = {
            "program": loaded.name,
            "model": target.name,
            "rows": len(todo),
            "expected": totals_json(found),
            "at_most": _most_json(most),
            "assumed": assumed,
            "prices": target.prices_of if isinstance(target, ProviderTarget) else None,
            "by_batch": _batch_json(found.total, most, share) if share < 1 else None,
        }
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    priced = f", prices of {target.prices_of}" if isinstance(target, ProviderTarget) else ""
    click.echo(f"{loaded.name} on {target.name}, {counted(len(todo), 'row')}{priced}")
    click.echo("\n".join(table(list(_rows(found.total, most, is_billed, share)))))
    click.echo(assumed)
    if most.why:
        click.echo(f"no bound: {most.why}")
        click.echo(f"  {_hint(most.why)}")


def _rows(
    found: Total, most: Cost, is_billed: bool, batch_share: float
) -> Iterator[tuple[str, str, str]]:
    """batch_share: of the price at once, what a request in a batch costs."""
    yield "", "expected", "at most"
    yield "requests", count(found.requests), count(most.requests)
    yield "prompt tokens", count(found.prompt_tokens), count(most.prompt_tokens)
    yield "  cached", count(found.cached_tokens), ""
    if is_billed:
        yield "  written to the cache", count(found.cache_written_tokens), ""
        fresh = found.computed_tokens - found.cache_written_tokens
        yield "  neither", count(fresh), ""
    else:
        yield "  computed", count(found.computed_tokens), ""
    yield "generated tokens", count(found.completion_tokens), count(most.completion_tokens)
    if is_billed:
        yield "cost", dollars(found.cost_usd), dollars(most.money)
        if batch_share < 1 and found.cost_usd is not None:
            expected = dollars(found.cost_usd * batch_share)
            yield "  by batch (--batch)", expected, dollars(most.money * batch_share)


def _hint(why: str) -> str:
    if "tool" in why:
        return "--tool-tokens N: a result of a tool has no more"
    if "loop" in why:
        return "sgc.turns(N), or max_turns=N of its @sgc.function, is a bound"
    return "a max_tokens of generations, and lists of a known length, are bounds"


def totals_json(found: Totals) -> dict[str, Any]:
    """The sums, in total and by generation."""
    by_generation = [
        {"line": key.where, "kind": key.kind, "name": key.name, **asdict(each)}
        for key, each in found.rows()
    ]
    told = {**asdict(found.total), "by_generation": by_generation}
    return told if found.wall_s is None else {**told, "wall_s": found.wall_s}


def _batch_json(found: Total, most: Cost, share: float) -> dict[str, float | None]:
    """The cost through the provider's batch API."""
    bound = most.money * share
    return {
        "expected_usd": None if found.cost_usd is None else found.cost_usd * share,
        "at_most_usd": None if math.isinf(bound) else bound,
    }


def _most_json(most: Cost) -> dict[str, Any]:
    """The bounds as JSON; null for a sum without a bound, whose reason is in `why`."""
    told = asdict(most)
    del told["mapped"]  # lists are known here
    return {
        name: None if isinstance(value, float) and math.isinf(value) else value
        for name, value in told.items()
    }
