"""Tool calls through a run's log: a call that is in the log is not made again.

A call with an effect is logged before it begins, so the log shows that it began even if the run
ends in the middle of it. The user then decides whether it was done.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sgc.errors import RunLogError, ToolError, UnknownOutcome
from sgc.ir.graph import Node
from sgc.ir.types import Kind
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.interface.log import Json, Log
from sgc.runtime.executor.interface.plain import checked
from sgc.runtime.executor.log.logged_backend import not_in_log
from sgc.runtime.executor.log.records import fingerprint
from sgc.runtime.executor.tools.threads import to_its_end

GRACE_S = 5.0  # that a call with an effect may take to end after its run has ended

_EMPTY: dict[Kind, Any] = {
    Kind.TEXT: "", Kind.INT: 0, Kind.FLOAT: 0.0, Kind.BOOL: False, Kind.LIST: [],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """The value that the program sees of a call, and the error that the value replaces, if any."""

    value: Any
    error: str = ""
    is_logged: bool = False


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One call of a run. ordinal: among its tool calls in the program's order, or among those of
    the mapped call at `path`; on_error: its value if it fails, None if a failure then fails the
    run.
    """

    log: Log
    row: str
    path: str
    ordinal: int
    node: Node
    args: Any
    on_error: Any

    async def outcome(self, make: Callable[[], Awaitable[tuple[Any, str]]]) -> Outcome:
        """Returns the outcome from the log; if it has none, calls `make` and logs its outcome."""
        found = self._find("tool")
        if found is not None:
            return self._decoded(found)
        if self.log.is_replay:
            raise not_in_log(self.log, f"the tool call {self._name!r}", self._line)
        if self._find("intent") is not None and self.log.on_unknown != "retry":
            return await self._unknown()
        if not self._has_effect:
            return await self._made(make)
        # A run that ends during the call would otherwise leave its outcome unknown.
        return await to_its_end(self._made(make), GRACE_S)

    async def _made(self, make: Callable[[], Awaitable[tuple[Any, str]]]) -> Outcome:
        has_effect = self._has_effect
        start_s = time.monotonic()
        if has_effect:
            await self._write("intent", start_s, is_durable=True)
        try:
            value, error = await make()
        except ToolError as failed:
            await self._write("failure", start_s, is_durable=False, error=failed.message)
            raise
        told: Json = {"value": value}
        if type(value) is Failed:
            told = {"value": None, "failed": value.encoded()}
        await self._write("tool", start_s, is_durable=has_effect, error=error, **told)
        return Outcome(value, error)

    async def _unknown(self) -> Outcome:
        """Handles a call that began, according to the log, but failed or did not end."""
        failure = self.log.find("failure", self.row, self.path, self.ordinal)
        if self.log.on_unknown == "stop":
            how = f"failed: {failure['error']}" if failure else "was begun and did not end"
            raise UnknownOutcome(
                f"it is not known whether the tool {self._name!r} was done: in the log it {how}",
                where=self._line,
                hint="check, and continue with --retry-effect (it is called again) or "
                "--skip-effect (it counts as done)",
            )
        empty = _EMPTY.get(self.node.results[0].type.kind)
        value = empty if self.on_error is None else self.on_error
        error = "skipped: it is not known whether it was done"
        await self._write("tool", time.monotonic(), is_durable=True, value=value, error=error)
        return Outcome(value, error)

    def _find(self, kind: str) -> Json | None:
        what = f"the tool {self._name!r}"
        key = (kind, self.row, self.path, self.ordinal)
        return self.log.find_same(key, self._fingerprint, what, self._line)

    def _decoded(self, found: Json) -> Outcome:
        try:
            if "failed" in found:
                value = Failed.decoded(self._name, found["failed"], self._line)
            else:
                value = checked(found["value"], self.node.results[0].type)
            return Outcome(value, str(found["error"]), is_logged=True)
        except (KeyError, TypeError, ValueError) as error:
            raise RunLogError(
                f"{self.log.path}: the value of the tool {self._name!r} is malformed: {error}",
                where=self._line,
            ) from error

    async def _write(self, kind: str, start_s: float, is_durable: bool, **told: Any) -> None:
        record = {
            "kind": kind,
            "row": self.row,
            "path": self.path,
            "ordinal": self.ordinal,
            "name": self._name,
            "line": self._line,
            "fingerprint": self._fingerprint,
            "effect": self.node.text("effect"),
            "args": self.args,
            "start_s": self.log.wall_s(start_s),
            "end_s": self.log.wall_s(time.monotonic()),
            **told,
        }
        if is_durable:
            await self.log.append_durably(record)
        else:
            self.log.append(record)

    @property
    def _has_effect(self) -> bool:
        return self.node.text("effect") == "effect"

    @property
    def _name(self) -> str:
        return self.node.text("name")

    @property
    def _line(self) -> str:
        return str(self.node.loc or "")

    @property
    def _fingerprint(self) -> str:
        return fingerprint("tool", self._name, self.args)
