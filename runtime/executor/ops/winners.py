"""Joins that wait for only some children of a fork: choosing the winners, cutting off the others.

Which children win depends on when they end, so it is decided at run time. The others are cut off:
their requests are cancelled at the backend, and their values are `Lost` from then on. Nodes before
the join that use a lost stream are lost too. Nodes after the join that use a lost value fail.
"""

from __future__ import annotations

import asyncio
from typing import Any

from sgc.errors import JoinFailed, UnsupportedParameter
from sgc.ir.graph import Node, Ref
from sgc.runtime.executor.ops.run import Run
from sgc.runtime.executor.run.values import Lost


async def join_first(run: Run, node: Node) -> tuple[Any, ...]:
    """Returns the indices of the first k entries that are true, in order of the children."""
    entries, k = node.get("entries"), run.field(node, "k")
    assert isinstance(entries, tuple)
    _refuse_log(run)
    names = [entry.name if isinstance(entry, Ref) else None for entry in entries]
    found = [n for n, name in enumerate(names) if name is None and run.values.operand(entries[n])]
    left = {name: n for n, name in enumerate(names) if name is not None}
    while len(found) < k and len(found) + len(left) >= k:
        name = await next_of(run, list(left))
        value = run.values.raw(name)
        if type(value) is Lost:  # the join belongs to a child that was itself cut off
            return (value,)
        index = left.pop(name)
        if value:
            found.append(index)
    if len(found) < k:
        what = "no child" if k == 1 else f"only {len(found)} of {len(entries)} children"
        raise JoinFailed(
            f"{what} of a fork met the join's predicate; it waits for {k}",
            hint="use a predicate that more replies meet, a smaller k, or join() for all",
        )
    run.cuts.is_decided = True
    return (sorted(found[:k]),)


def _refuse_log(run: Run) -> None:
    if run.context.options.log is not None and not run.context.options.ordered_joins:
        raise UnsupportedParameter(
            "which children a join takes depends on time, and a run's log does not keep time",
            hint="run with ordered_joins=True (on the command line --ordered-joins): it waits for "
            "all and takes them in order",
        )


async def next_of(run: Run, names: list[str]) -> str:
    """Returns the name whose value came first; with `ordered_joins`, the first name."""
    if run.context.options.ordered_joins:
        await asyncio.gather(*map(run.values.value, names))
        return names[0]
    there = run.values.in_order(names)
    if not there:
        waits = [asyncio.ensure_future(run.values.value(name)) for name in names]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                if wait.done():
                    wait.result()
        finally:
            for wait in waits:
                wait.cancel()
        there = run.values.in_order(names)
    return there[0]


async def winner(run: Run, node: Node) -> tuple[Any, ...]:
    """Returns the stream of a winner; cuts off any other one."""
    winners, index = run.values.raw_field(node, "winners"), run.field(node, "index")
    if type(winners) is Lost:
        return (winners,)
    if index not in winners:
        run.cuts.cut(run.field(node, "start").path, Lost(index, _line(node)))
        return (Lost(index, _line(node), is_late=True),)
    stream = node.get("stream")
    assert isinstance(stream, Ref)
    return (await run.values.value(stream.name),)


def _line(node: Node) -> str:
    return str(node.loc or "its line")


def _winner_value(run: Run, node: Node) -> tuple[Any, ...]:
    winners, index = run.values.raw_field(node, "winners"), run.field(node, "index")
    if type(winners) is Lost:
        return (winners,)
    if index not in winners:
        return (Lost(index, _line(node), is_late=True),)
    return (run.values.raw_field(node, "value"),)


def _winner_values(run: Run, node: Node) -> tuple[Any, ...]:
    winners, items = run.values.raw_field(node, "winners"), node.get("items")
    if type(winners) is Lost:
        return (winners,)
    assert isinstance(items, tuple)
    return (
        [
            run.values.operand(item)
            for owner, item in zip(run.field(node, "owners"), items, strict=True)
            if owner in winners and not (isinstance(item, Ref) and run.values.is_unset(item.name))
        ],
    )


WINNER_HANDLERS = {
    "ended": lambda run, node: (run.field(node, "test"),),
    "winner_value": _winner_value,
    "winner_values": _winner_values,
}
WINNER_ASKING = {"join_first": join_first, "winner": winner}
