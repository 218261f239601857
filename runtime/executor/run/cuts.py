"""The streams of one run that were cut off, and their nodes."""

from __future__ import annotations

from collections.abc import Iterable

from sgc.ir.graph import Node, Ref, operand_refs
from sgc.ir.op_specs import Flag
from sgc.ir.ops import ops_with
from sgc.runtime.executor.run.stream import StreamState
from sgc.runtime.executor.run.values import Lost, Values, lost_error
from sgc.runtime.executor.run.work import Work

# Ops that are lost with their stream; computed once, since each request reads it.
_CUT = ops_with(Flag.APPENDS) - ops_with(Flag.TAKES_LOST)


def awaited(node: Node) -> Iterable[str]:
    """Returns the values that a node waits for before it starts; its handler may wait for more."""
    if node.op in ("join_first", "future"):
        return ()
    if node.op == "winner":
        return [name for key, op in node.fields if key != "stream" for name in operand_refs(op)]
    return node.refs()


class Cuts:
    """The streams of one run that were cut off. work: the tasks of their requests."""

    def __init__(self, work: Work) -> None:
        self.is_decided = False  # whether a join has chosen its winners, so others may be lost
        self._lost: dict[str, Lost] = {}  # by the paths of children
        self._work = work

    def cut(self, path: str, lost: Lost) -> None:
        """Cuts off a stream and all streams forked from it."""
        self._lost[path] = lost
        self._work.cancel_asking(lambda asking: self.at(asking) is not None)

    def at(self, path: str) -> Lost | None:
        """Returns how the stream at a path was lost; None if it continues."""
        if not self._lost:
            return None
        return next(
            (lost for cut, lost in self._lost.items() if f"{path}/".startswith(f"{cut}/")), None
        )

    def of(self, values: Values, node: Node) -> Lost | None:
        """Returns the value of a lost node's results; None for a node that is not lost.

        Raises CutOff for a node that would use a lost value in the rest of the program.
        """
        if not self.is_decided or Flag.TAKES_LOST in node.flags:
            return None
        path = path_of(values, node)
        if path is not None and (lost := self.at(path)) is not None:
            return lost
        found = [value for name in node.refs() if type(value := values.raw(name)) is Lost]
        if not found:
            return None
        is_stream_lost = "stream" in dict(node.fields) and path is None
        is_use = not is_stream_lost or any(lost.is_late for lost in found)
        if is_use and Flag.PURE not in node.flags:
            raise lost_error(found[0])
        return found[0]


def path_of(values: Values, node: Node) -> str | None:
    """The path of the stream that a node appends to; None if there is none or it is lost."""
    stream = node.get("stream") if node.op in _CUT else None
    if not isinstance(stream, Ref):
        return None
    state = values.raw(stream.name)
    return state.path if isinstance(state, StreamState) else None
