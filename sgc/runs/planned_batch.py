"""Makes batches of rows, with a plan if there can be one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from sgc.errors import SgcWarning
from sgc.ir.graph import Graph
from sgc.ir.op_specs import Flag
from sgc.passes.changing.reorder_fields import find_table, reorder_fields
from sgc.passes.pipeline import run_pass
from sgc.planning.fields import order_fields
from sgc.planning.known import Known, Reader
from sgc.planning.plan import BatchPlan, plan_known
from sgc.runs.batch import Batch, BatchOptions, Compiled, Row
from sgc.runs.cache_rules import announce_rows
from sgc.runtime.executor.interface.backend import Backend

_NOTHING = Known((), 0, 0)


def make_batch(
    rows: Sequence[Row], options: BatchOptions, backend: Backend, max_tokens: int
) -> Batch:
    """A batch of rows in the order that the options ask for. max_tokens: the run's default."""
    notes: list[str] = []
    if options.reorder_fields:
        rows, notes = with_fields_reordered(rows)
    announce_rows(backend, [(r.program.graph, r.arguments) for r in rows if r.program is not None])
    graphs = {id(row.program): row.program.graph for row in rows if row.program is not None}
    plan = None
    if options.order == "plan" and graphs:
        if any(map(has_effects, graphs.values())):
            notes.append("rows keep their order: a tool that they call has effects")
        else:
            plan = plan_batch(rows, max_tokens)
            notes.insert(0, plan.report())
    return Batch(rows, options, plan, backend, tuple(notes))


def with_fields_reordered(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """Rows with the fields of their tables reordered, and reports; warns if none can be moved."""
    found, notes = list(rows), list[str]()
    by_program: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        by_program.setdefault(id(row.program), []).append(index)
    for indices in by_program.values():
        program = rows[indices[0]].program
        if program is None:
            _warn(f"the fields of {len(indices)} rows stay: they are interpreted, not compiled")
            continue
        table = find_table(program.graph)
        if table is None:
            _warn(f"the prompts of {program.name} stay: no two labelled arguments follow another")
            continue
        ordered = order_fields(table, program.graph, [rows[i].arguments for i in indices])
        variants = {order: _variant(program, order) for order in set(ordered.orders)}
        for index, order in zip(indices, ordered.orders, strict=True):
            found[index] = replace(rows[index], program=variants[order])
        notes += ordered.report()
    return found, notes


def _variant(program: Compiled, order: tuple[int, ...]) -> Compiled:
    found: Compiled = program.with_graph(run_pass(reorder_fields(order), program.graph))
    return found


def _warn(message: str) -> None:
    warnings.warn(SgcWarning(message), stacklevel=2)


def plan_batch(rows: Sequence[Row], max_tokens: int) -> BatchPlan:
    """The plan of the rows; the prompts of rows that are not compiled are unknown."""
    readers: dict[int, Reader] = {}
    known = []
    for row in rows:
        if row.program is None:
            known.append(_NOTHING)
            continue
        graph = row.program.graph
        reader = readers.get(id(graph))
        if reader is None:
            reader = readers[id(graph)] = Reader(graph, max_tokens)
        known.append(reader.read(row.arguments))
    return plan_known(known)


def has_effects(graph: Graph) -> bool:
    """Whether a program calls a tool that has effects, so that its rows keep their order."""
    tools = (node for node in graph.all_nodes() if Flag.LOGGED in node.flags)
    return any(node.text("effect") == "effect" for node in tools)
