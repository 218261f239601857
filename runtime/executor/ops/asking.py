"""How the nodes of a run send requests: to its backend, through its log, with speculation."""

from __future__ import annotations

from typing import Any

from sgc.ir.graph import Node
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.backends.speculation import Speculation
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.interface.place import Place, as_placed, of_run
from sgc.runtime.executor.log.logged_backend import Logged, log_as
from sgc.runtime.executor.run.context import Context
from sgc.runtime.executor.run.record import Request


class Asking:
    """The backend of one run. speculation: text that earlier replies already hold."""

    def __init__(self, context: Context) -> None:
        backend, log = context.backend, context.options.log
        self.speculation = Speculation()
        self._backend, self._log, self._row = backend, log, context.row
        self._of_run = of_run(backend)
        self._placed = as_placed(backend)
        if self._placed is None and log is not None:
            self._placed = Logged(backend, log)

    def backend_of(self, run: Any, node: Node, path: str, ordinal: int) -> Backend:
        """Returns the backend for a node's request, through the run's log if there is one."""
        backend, placed = self._backend, self._placed
        if self._of_run is not None:
            backend = self._of_run.in_run(run, node, path, ordinal)
            placed = Logged(backend, self._log) if self._log is not None else None
        if placed is None:
            return backend
        name = run.field(node, "name") if Flag.ASKS in node.flags else ""
        return placed.at(Place(self._row, path, ordinal, name, str(node.loc or "")))

    def log_shared(self, request: Request, drawn: Request) -> None:
        """Logs a draw that shares another draw's replies, for later runs that make both."""
        if self._log is not None:
            log_as(self._log, self._row, drawn, request)
