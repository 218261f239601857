"""Joins that wait for some children of a fork only: who won, and cutting off who did not.

Which children win is decided by when they end, so it is known only as the program runs. The
others are cut off: their requests are cancelled at the backend, and what is theirs is `Lost`
from then on. What was to be done before the join with a lost stream is lost too; what uses it
after, or brings something lost into the rest of the program, fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sgc.errors import CutOff, JoinFailed, UnsupportedParameter
from sgc.ir.graph import Node, Ref, operand_refs
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.run.stream import StreamState

if TYPE_CHECKING:
    from sgc.runtime.executor.instance import Instance


@dataclass(frozen=True, slots=True)
class Lost:
    """What is there in place of anything of a child that was cut off.

    is_late: the program has it from the join, so that it knows, and may not use it.
    """

    index: int
    where: str
    is_late: bool = False


def lost_error(lost: Lost) -> CutOff:
    return CutOff(
        f"child {lost.index} of a fork was cut off when the join at {lost.where} took others",
        hint="use the lists that the join has gathered; they hold the winners' values alone",
    )


def awaited(node: Node) -> Iterable[str]:
    """The values that a node waits for before it starts; it may wait for more itself."""
    if node.op == "join_first":
        return ()
    if node.op == "winner":
        return [name for key, op in node.fields if key != "stream" for name in operand_refs(op)]
    return node.refs()


class Cuts:
    """What of one run was cut off, and the requests that could be."""

    def __init__(self) -> None:
        self.is_decided = False  # a join has taken some children, so that others are lost
        self._lost: dict[str, Lost] = {}  # by the paths of children
        self._asking: dict[asyncio.Task[None], str] = {}  # the paths of the streams that ask

    def note(self, task: asyncio.Task[None], path: str) -> None:
        """A stream's request has begun."""
        self._asking[task] = path
        task.add_done_callback(lambda done: self._asking.pop(done, None))

    def cut(self, path: str, lost: Lost) -> None:
        """Cuts off a stream and all that was forked from it."""
        self._lost[path] = lost
        for task, asking in list(self._asking.items()):
            if self.at(asking) is not None:
                task.cancel()

    def at(self, path: str) -> Lost | None:
        """What has been made of the stream at a path; None if it goes on."""
        if not self._lost:
            return None
        return next(
            (lost for cut, lost in self._lost.items() if f"{path}/".startswith(f"{cut}/")), None
        )

    def of(self, run: Instance, node: Node) -> Lost | None:
        """What a node whose operands exist is to give in place of its results.

        Raises CutOff for one that would bring something lost into the rest of the program.
        """
        if not self.is_decided or Flag.TAKES_LOST in node.flags:
            return None
        path = path_of(run, node)
        if path is not None and (lost := self.at(path)) is not None:
            return lost
        found = [value for name in node.refs() if type(value := run.raw(name)) is Lost]
        if not found:
            return None
        is_stream_lost = "stream" in dict(node.fields) and path is None
        is_use = not is_stream_lost or any(lost.is_late for lost in found)
        if is_use and Flag.PURE not in node.flags:
            raise lost_error(found[0])
        return found[0]


def path_of(run: Instance, node: Node) -> str | None:
    """The path of the stream that a node appends to, where it is there and not lost."""
    stream = dict(node.fields).get("stream")
    is_appending = Flag.APPENDS in node.flags and Flag.TAKES_LOST not in node.flags
    if not isinstance(stream, Ref) or not is_appending:
        return None
    state = run.raw(stream.name)
    return state.path if isinstance(state, StreamState) else None


async def join_first(run: Instance, node: Node) -> tuple[Any, ...]:
    """The indices of the first k entries that are true, in order of the children."""
    entries, k = node.get("entries"), run.field(node, "k")
    assert isinstance(entries, tuple)
    _refuse_log(run)
    names = [entry.name if isinstance(entry, Ref) else None for entry in entries]
    found = [n for n, name in enumerate(names) if name is None and run.operand(entries[n])]
    left = {name: n for n, name in enumerate(names) if name is not None}
    while len(found) < k and len(found) + len(left) >= k:
        name = await next_of(run, list(left))
        value = run.raw(name)
        if type(value) is Lost:  # the join itself is of a child that was cut off
            return (value,)
        index = left.pop(name)
        if value:
            found.append(index)
    if len(found) < k:
        what = "no child" if k == 1 else f"only {len(found)} of {len(entries)} children"
        raise JoinFailed(
            f"{what} of a fork met the join's predicate; it waits for {k}",
            hint="give a predicate that more replies meet, a smaller k, or join() for all",
        )
    run.cuts.is_decided = True
    return (sorted(found[:k]),)


def _refuse_log(run: Instance) -> None:
    if run.options.log is not None and not run.options.ordered_joins:
        raise UnsupportedParameter(
            "which children a join takes depends on time, which a run's log does not keep",
            hint="run with ordered_joins=True (on the command line --ordered-joins): it waits for "
            "all and takes them in order",
        )


async def next_of(run: Instance, names: list[str]) -> str:
    """The value, of some, that was there first; with `ordered_joins`, the first of them all."""
    if run.options.ordered_joins:
        await asyncio.gather(*map(run.value, names))
        return names[0]
    there = run.in_order(names)
    if not there:
        waits = [asyncio.ensure_future(run.value(name)) for name in names]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                if wait.done():
                    wait.result()
        finally:
            for wait in waits:
                wait.cancel()
        there = run.in_order(names)
    return there[0]


async def winner(run: Instance, node: Node) -> tuple[Any, ...]:
    """The stream, if it is a winner's; else it is cut off."""
    winners, index = run.raw_field(node, "winners"), run.field(node, "index")
    if type(winners) is Lost:
        return (winners,)
    if index not in winners:
        run.cuts.cut(run.field(node, "start").path, Lost(index, _line(node)))
        return (Lost(index, _line(node), is_late=True),)
    stream = node.get("stream")
    assert isinstance(stream, Ref)
    return (await run.value(stream.name),)


def _line(node: Node) -> str:
    return str(node.loc or "its line")


def _ended(run: Instance, node: Node) -> tuple[Any, ...]:
    return (run.field(node, "test"),)


def _winner_value(run: Instance, node: Node) -> tuple[Any, ...]:
    winners, index = run.raw_field(node, "winners"), run.field(node, "index")
    if type(winners) is Lost:
        return (winners,)
    if index not in winners:
        return (Lost(index, _line(node), is_late=True),)
    return (run.raw_field(node, "value"),)


def _winner_values(run: Instance, node: Node) -> tuple[Any, ...]:
    winners, items = run.raw_field(node, "winners"), node.get("items")
    if type(winners) is Lost:
        return (winners,)
    assert isinstance(items, tuple)
    return (
        [
            run.operand(item)
            for owner, item in zip(run.field(node, "owners"), items, strict=True)
            if owner in winners and not (isinstance(item, Ref) and run.is_unset(item.name))
        ],
    )


WINNER_HANDLERS = {
    "ended": _ended,
    "winner_value": _winner_value,
    "winner_values": _winner_values,
}
WINNER_ASKING = {"join_first": join_first, "winner": winner}
